import type { Catalogue } from '../types';

export const rows: Catalogue['settings'] = {
  language: {
    label: '言語',
    help: '画面の表示言語です。モデルはあなたが書いた言語で回答します。',
    options: { system: 'システムに合わせる' },
  },
  model: {
    label: '既定のモデル',
    help: '新しいチャットで使われます。',
  },
  temperature: {
    label: '温度',
    help: '0 では常に最も確率の高いトークンを選びます。値が大きいほど回答が多様になります。',
  },
  top_k: {
    label: 'Top-k',
    help: '最も確率の高い k 個のトークンだけから選びます。0 でオフ。',
  },
  top_p: {
    label: 'Top-p',
    help: '確率の合計がこの値に達するまでの上位トークンだけから選びます。1 でオフ。',
  },
  min_p: {
    label: 'Min-p',
    help: '最も確率の高いトークンに対して、この割合を下回るトークンを除外します。0 でオフ。',
  },
  repeat_penalty: {
    label: '繰り返しペナルティ',
    help: '最近使われたトークンを選ばれにくくします。1 でオフ。',
  },
  seed: {
    label: 'シード',
    help: '同じシードとプロンプトからは同じ回答が得られます。',
    absent: 'ランダム',
  },
  max_tokens: {
    label: '回答の最大長',
    help: 'トークン数。',
    absent: 'コンテキストがいっぱいになるまで',
  },
  titles: {
    label: 'チャットのタイトルを自動生成',
    help: '最初の回答の後、モデルが空いているときに名前を付けます。自分で付けたタイトルは変わりません。',
  },
  thinking: {
    label: '回答の前に思考する',
    help: '思考のオン・オフを切り替えられるモデル向けです。メッセージ内の /think や /no_think に対応するモデルもあります。',
    options: { model: 'モデルの既定', on: 'オン', off: 'オフ' },
  },
  reasoning_effort: {
    label: '推論の深さ',
    help: 'gpt-oss のように段階を持つモデルが、どれだけ長く思考するか。',
    options: { model: 'モデルの既定', low: '低', medium: '中', high: '高' },
  },
  reasoning_budget: {
    label: '思考の最大長',
    help: 'トークン数。達すると回答に移ります。',
    absent: 'モデルの既定',
  },
  template_fallback: {
    label: '壊れたチャットテンプレートを置き換える',
    help: 'モデルのチャットテンプレートが使えない場合、同じ系列のテンプレートを使い、その旨を表示します。',
  },
  chat_templates: {
    label: 'カスタムチャットテンプレート',
    help: 'モデル内蔵のテンプレートに代わるファイルを「モデル=ファイル」で指定します。複数はセミコロンで区切ります。',
    placeholder: 'model=/path/to/template.jinja',
  },
  speculation: {
    label: '投機的デコーディング',
    help: '予測した複数のトークンをまとめて検証します。回答は変わらず、速くなります。効果がないときは休止します。',
    options: { lookup: 'チャットから予測', draft: 'ドラフトモデルで予測', off: 'オフ' },
  },
  draft_model: {
    label: 'ドラフトモデル',
    help: 'トークンを予測する小さなモデルです。メインのモデルと同じ語彙と、追加のメモリが必要です。',
  },
  threads: {
    label: 'CPU スレッド数',
    help: '計算に使うスレッドの数。',
    absent: '高性能コアごとに 1（バッテリー駆動時は半分）',
  },
  affinity: {
    label: 'CPU アフィニティ',
    help: 'スレッドを CPU コアに固定します。速くなるコンピューターもありますが、ほかのプログラムが計算していると遅くなります。',
  },
  numa: {
    label: 'NUMA',
    help: '複数の CPU ソケットを持つコンピューターでのスレッド配置です。ほかのコンピューターには影響しません。',
    options: { off: 'システムの既定', node: '1 つの NUMA ノード', spread: 'すべての NUMA ノード' },
  },
  context: {
    label: 'コンテキスト長',
    help: 'モデルが参照できるチャットの最大トークン数。長いほどメモリを使います。',
    absent: 'モデルの値（最大 8192）',
  },
  compression: {
    label: 'コンテキストがいっぱいになったとき',
    help: 'チャットがコンテキストに収まらなくなったとき、モデルに渡す内容です。メッセージが削除されることはありません。',
    options: {
      window: '古いメッセージを省略する',
      summary: '古いメッセージを要約する',
      attention: '重要度の低いトークンを破棄する（近似）',
      off: 'エラーで停止する',
    },
  },
  refusal_patterns: {
    label: 'ブロックするパターン',
    help: 'これらの正規表現に一致するメッセージはモデルに送信されません。複数は ;; で区切ります。',
    placeholder: 'なし',
  },
  kv: {
    label: 'KV キャッシュの精度',
    help: '精度を下げるとメモリは減りますが、正確さも下がります。',
    options: {
      f16: '16 ビット浮動小数点',
      f32: '32 ビット浮動小数点',
      q8_0: '8 ビット（メモリ半分）',
      q4_0: '4 ビット（メモリ 4 分の 1、精度は低下）',
    },
  },
  kv_aging: {
    label: '古い KV キャッシュを圧縮',
    help: '古いトークンを 8 ビットで保存し、メモリを約半分にします。回答がわずかに変わることがあります。16 ビットと 32 ビットのキャッシュが対象です。GPU では元の領域を保ったまま、圧縮分の領域を追加します。',
    options: { off: 'オフ', pressure: 'メモリが不足したとき', after: '最新のトークンより前' },
  },
  kv_aging_after: {
    label: '圧縮しないトークン数',
    help: '古いトークンを圧縮するとき、完全な精度で残す最新のトークン数です。',
  },
  kv_window: {
    label: 'スライディングウィンドウ',
    help: 'RoPE を使う層のアテンションを、直近のトークンに制限します。メモリは減りますが、モデルの学習時と異なるため回答の質は下がります。',
    absent: 'モデルの既定',
  },
  context_stretch: {
    label: 'RoPE スケーリング',
    help: 'モデルの最大コンテキストを拡大します（YaRN）。1 でオフ。値が大きいほど回答の質は下がります。',
  },
  resident_budget: {
    label: '重みに使うメモリ（MB）',
    help: '残りの重みは必要なときにディスクから読み込まれ、遅くなります。',
    absent: '収まる分だけ',
  },
  large_pages: {
    label: 'ヒュージページ',
    help: 'システムが対応していれば、モデルを 2 MB のページで読み込み、次回の起動を速くします。',
  },
  log_level: {
    label: 'ログレベル',
    help: 'ログフォルダーに記録する詳しさです。プロンプトと回答が記録されることはありません。',
    options: { error: 'エラー', warn: '警告', info: '標準', debug: '詳細' },
  },
  data_dir: {
    label: 'データフォルダー',
    help: '起動時の --data-dir または INGLENOOK_DATA_DIR で決まります。',
  },
  other_programs: {
    label: 'ほかのプログラムのモデルを表示',
    help: 'Hugging Face と LM Studio のフォルダーにあるモデルを表示し、その場で使います。コピーも変更もしません。',
  },
  idle_unload: {
    label: 'アンロードまでの時間（分）',
    help: 'この時間使われなかったモデルをアンロードします。次のメッセージで再び読み込まれます。',
    absent: 'しない',
  },
  theme: {
    label: 'テーマ',
    help: 'ライト、ダーク、またはシステムに合わせます。',
    options: { system: 'システム', light: 'ライト', dark: 'ダーク' },
  },
  send_key: {
    label: '送信キー',
    help: 'もう一方の組み合わせは改行になります。',
    options: { enter: 'Enter', mod_enter: 'Ctrl+Enter（Mac では ⌘+Enter）' },
  },
  wide: {
    label: '幅の広いチャット',
    help: '読みやすい行の長さの代わりに、ウィンドウの幅いっぱいを使います。',
  },
  follow: {
    label: '回答に合わせてスクロール',
    help: '回答の生成中、上にスクロールするまで自動でスクロールします。',
  },
  thinking_open: {
    label: '思考を表示',
    help: 'モデルの思考を、回答の上に展開して表示します。',
  },
  notify: {
    label: '長い回答が完了したら通知',
    help: 'ウィンドウが背面にあり、回答に 10 秒以上かかった場合だけ通知します。',
  },
  tray: {
    label: 'システムトレイに表示',
    help: 'ウィンドウを閉じるとトレイに隠れます。回答とダウンロードは続きます。',
  },
  welcome: {
    label: '初回ガイド',
    help: 'ウィンドウを開いたとき、チャットがまだなければ初回ガイドを表示します。',
  },
  zoom: {
    label: 'ズーム（%）',
    help: 'ウィンドウ全体の表示倍率です。',
  },
  shortcuts: {
    label: 'ショートカット',
    help: '既定と異なるショートカットです。空のリストはオフを意味します。',
  },
};

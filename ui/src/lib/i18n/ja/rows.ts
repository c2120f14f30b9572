import type { Catalogue } from '../types';

const BY_MODEL = 'モデルに任せる';

export const rows: Catalogue['settings'] = {
  language: {
    label: '言語',
    help: 'このページの言葉です。モデルは、話しかけた言語で答えます。',
    options: { system: 'システムに合わせる' },
  },
  model: { label: '既定のモデル', help: '新しい会話で回答します。' },
  temperature: {
    label: '温度',
    help: '0 では常に最も確からしいトークンを選び、値が大きいほど変化が増えます。',
  },
  top_k: {
    label: 'Top-k',
    help: '最も確からしい k 個のトークンだけを候補にします。0 ではすべて。',
  },
  top_p: {
    label: 'Top-p',
    help: '合計でこの確率に達するまでの、確からしいトークンだけを候補にします。1 ではすべて。',
  },
  min_p: {
    label: 'Min-p',
    help: '最も確からしいトークンに対してこの割合より低いものを除きます。0 では何も除きません。',
  },
  repeat_penalty: {
    label: '繰り返しの抑制',
    help: '最近出たトークンを出にくくします。1 でオフ。',
  },
  seed: {
    label: 'シード',
    help: '同じシードとプロンプトからは同じ回答が得られます。',
    absent: 'ランダム',
  },
  max_tokens: {
    label: '最長の回答',
    help: 'トークン数です。',
    absent: 'コンテキストがいっぱいになるまで',
  },
  titles: {
    label: '会話の名前をモデルに付けさせる',
    help: '最初の回答の後、ほかにすることがないときに。あなたが付けた名前はそのままです。',
  },
  thinking: {
    label: '回答の前に考える',
    help: 'どちらもできるモデル向けです。/think や /no_think という語を知るモデルには、メッセージの中でも指示できます。',
    options: { model: BY_MODEL, on: 'はい', off: 'いいえ' },
  },
  reasoning_effort: {
    label: '考える深さ',
    help: 'gpt-oss のように段階のあるモデルが、どれだけ長く考えるか。',
    options: { model: BY_MODEL, low: '浅く', medium: '中くらい', high: '深く' },
  },
  reasoning_budget: {
    label: '最長の思考',
    help: 'トークン数です。達すると回答に移ります。',
    absent: 'モデルの好きなだけ',
  },
  template_fallback: {
    label: '壊れたチャットテンプレートを補う',
    help: 'モデル自身のチャットテンプレートが使えないとき、同じ系列のものを使い、その旨を知らせます。',
  },
  chat_templates: {
    label: 'ほかのチャットテンプレート',
    help: 'モデル付属のテンプレートの代わりに使うファイル：モデルの ID、=、ファイル。二つ以上はセミコロンで区切ります。',
    placeholder: 'model=/path/to/template.jinja',
  },
  speculation: {
    label: '先読み',
    help: 'これまでの文や小さなモデルから予想できるところでは、複数のトークンを一度に確かめます。回答は同じで、速くなります。効果がないときは休みます。',
    options: { lookup: 'これまでの文から', draft: '小さなモデルで', off: 'オフ' },
  },
  draft_model: {
    label: '先読みに使う小さなモデル',
    help: '回答するモデルと同じ系列で、トークンが同じである必要があります。別にメモリを使います。',
  },
  threads: {
    label: 'スレッド数',
    help: '計算に使うスレッドの数。',
    absent: '高速コアごとに一つ（バッテリー時は半分）',
  },
  affinity: {
    label: 'スレッドをコアに固定',
    help: 'システムがスレッドを移さないようにします。役立つマシンもありますが、ほかの計算があると遅くなります。',
  },
  numa: {
    label: '複数のメモリ（NUMA）',
    help: '複数ソケットのコンピューター向けです。ほかでは選ぶものはありません。',
    options: {
      off: 'システムに任せる',
      node: '一つのメモリのそばに',
      spread: '各メモリに順番に',
    },
  },
  context: {
    label: 'コンテキスト長',
    help: 'モデルが会話を何トークン保持するか。多いほどメモリを使います。',
    absent: 'モデル本来の長さ（最大 8192）',
  },
  compression: {
    label: '長い会話',
    help: '会話がコンテキストより長いとき、モデルに何を見せるか。あなたのメッセージは常に残ります。',
    options: {
      window: '最も古いメッセージを省く',
      summary: '最も古いメッセージを要約する',
      attention: '重要でないものを忘れる（厳密ではない）',
      off: '止めて知らせる',
    },
  },
  refusal_patterns: {
    label: '拒むパターン',
    help: '正規表現です。二つ以上は ;; で区切ります。一致したものはモデルに送りません。',
    placeholder: 'なし',
  },
  attachment_megabytes: {
    label: '最大のファイル',
    help: 'メガバイト。メッセージに添えるファイル一つの大きさです。',
  },
  attachment_count: {
    label: 'メッセージのファイル数',
    help: 'これより多いと断ります。',
  },
  attachment_passages: {
    label: '長いファイルからの抜粋',
    help: 'トークン。全体が入らないファイルから、質問ごとにモデルに渡す量です。',
  },
  embedding_model: {
    label: '埋め込みモデル',
    help: '長いファイルの箇所を、言葉だけでなく意味でも探します。そのためのモデルと、その分のメモリが要ります。',
  },
  guard_marks: {
    label: 'ツールの文に隠れたものを示す',
    help: '見えない文字を書き出し、モデルへの指示のように読める文を知らせます。',
  },
  kv: {
    label: 'コンテキストの精度',
    help: 'コンテキストをメモリにどう持つか。',
    options: {
      f16: '16 ビット浮動小数点',
      f32: '32 ビット浮動小数点',
      q8_0: '8 ビットブロック（メモリ半分）',
      q4_0: '4 ビットブロック（4 分の 1、精度は下がる）',
    },
  },
  kv_aging: {
    label: '長いコンテキストの古い部分',
    help: '8 ビットブロックにするとメモリは約半分になり、回答が少し変わることがあります。対象は 16 または 32 ビットのコンテキストだけです。グラフィックカードでは両方の領域を最初から確保します。',
    options: {
      off: '正確なまま',
      pressure: 'メモリから外す前に縮める',
      after: '末尾からの距離で縮める',
    },
  },
  kv_aging_after: {
    label: '正確なまま残す最新のトークン数',
    help: '古い部分を末尾からの距離で縮めるとき、末尾の手前に残すトークン数。',
  },
  kv_window: {
    label: 'ウィンドウ',
    help: '回転で位置を知る層が、何トークン前まで見るか。メモリは減りますが、モデルの訓練とは異なるため回答は悪くなります。',
    absent: 'モデルのまま',
  },
  context_stretch: {
    label: 'コンテキストの引き伸ばし',
    help: 'モデルが保持できるトークン数を何倍にするか（YaRN）。1 でオフ。大きいほど回答は悪くなります。',
  },
  resident_budget: {
    label: '重みに使うメモリ',
    help: 'メガバイト単位。超えた分は必要なときにディスクから読み、遅くなります。',
    absent: 'マシンに余裕のある分',
  },
  large_pages: {
    label: '大きなページ',
    help: 'システムが対応していれば、モデルを 2 メガバイトのページで読み、次の起動が速くなります。',
  },
  log_level: {
    label: 'ログの詳しさ',
    help: 'ログフォルダーに書くもの。プロンプトと回答は決して記録しません。',
    options: { error: 'エラー', warn: '警告', info: '標準', debug: '詳細' },
  },
  data_dir: {
    label: 'データフォルダー',
    help: '起動時の --data-dir または INGLENOOK_DATA_DIR で決まります。',
  },
  other_programs: {
    label: 'ほかのプログラムのモデルを表示',
    help: 'Hugging Face と LM Studio のキャッシュにあるモデルを一覧に出し、その場で読みます。コピーも変更もしません。',
  },
  idle_unload: {
    label: 'メモリから降ろすまで',
    help: '使われないモデルがメモリから降りるまでの分数。次の質問で再び読み込まれます。',
    absent: '降ろさない',
  },
  theme: {
    label: 'テーマ',
    help: '明るい、暗い、またはシステムに合わせる。',
    options: { system: 'システム', light: 'ライト', dark: 'ダーク' },
  },
  send_key: {
    label: '送信キー',
    help: 'もう一方の組み合わせは改行になります。',
    options: { enter: 'Enter', mod_enter: 'Ctrl+Enter（Mac では ⌘+Enter）' },
  },
  wide: { label: '幅の広い会話', help: 'ウィンドウの幅いっぱいに表示します。' },
  follow: {
    label: '回答に追従する',
    help: '回答が書かれる間、上へスクロールするまでページが追いかけます。オフなら読んでいる位置にとどまります。',
  },
  thinking_open: {
    label: '思考を開いて表示',
    help: 'モデルの思考を折りたたまず、回答の上に開いて表示します。',
  },
  notify: {
    label: '長い回答が終わったら知らせる',
    help: 'ウィンドウが前面になく、回答に 10 秒以上かかったときに通知します。',
  },
  tray: {
    label: 'トレイに常駐する',
    help: 'トレイにアイコンを置きます。ウィンドウを閉じても隠れるだけで、回答やダウンロードは続きます。',
  },
  welcome: {
    label: 'はじめに',
    help: 'ウィンドウを開いたとき、会話がまだなければ「はじめに」を表示します。',
  },
  zoom: { label: '拡大', help: 'ウィンドウ全体の倍率（パーセント）。' },
  shortcuts: {
    label: 'ショートカット',
    help: '初期のものと異なるキー。空の一覧はオフを意味します。',
  },
  tools: {
    label: 'モデルにツールを提供する',
    help: 'オンになっているサーバーのツールです。チャットごとに変えられます。',
  },
  tool_rounds: {
    label: '確認なしの回数',
    help: '呼び出しと結果がこの回数続くと、許可済みでも確認します。',
  },
  tool_seconds: {
    label: 'ツールを待つ時間',
    help: '秒単位。これより長い呼び出しは打ち切られ、モデルに伝えられます。',
  },
  tool_characters: {
    label: '結果の最大の長さ',
    help: '文字数。これを超える部分は省かれ、モデルに伝えられます。',
  },
};

/** The settings of GPUs, contexts, limits, downloads, the network, tools and attachments. */
import type { Catalogue } from '../types';

export const machine: Catalogue['settings'] = {
  backend: {
    label: '計算に使うデバイス',
    help: '自動では、実測で CPU より速い場合に GPU を使います。GPU カーネルはドライバーごとに初回使用時に検査され、GPU が失敗すると CPU が引き継ぎます。',
    options: { auto: '自動', cpu: 'CPU', gpu: 'GPU' },
  },
  gpu_layers: {
    label: 'GPU レイヤー数',
    help: 'GPU で計算するモデルの層の数。残りは CPU が計算します。必要なメモリはモデルの詳細で確認できます。',
    absent: '収まる分だけ',
  },
  gpu_memory: {
    label: 'GPU メモリの上限（MB）',
    help: 'モデルが各 GPU で使えるメモリです。',
    absent: 'ほぼすべて',
  },
  gpu_precision: {
    label: 'GPU の精度',
    help: 'GPU の行列積の精度です。「自動」では、GPU に Tensor コアがあればプロンプトを 16 ビットで数倍速く処理し、回答は 32 ビットで計算します。プロンプトの処理中に別の回答が進んでいたかどうかで、回答がわずかに変わることがあります。「16 ビット」は両方を丸めますが、誤差は CPU の整数演算よりずっと小さくなります。GPU が対応していない、または正しく計算できないモードは使われません。',
    options: {
      auto: '自動',
      f32: '32 ビット',
      f16: '16 ビット',
      matrices: 'プロンプトを Tensor コアで 16 ビット処理',
    },
  },
  gpu_devices: {
    label: '使用する GPU',
    help: '`nook devices` に表示される番号か名前の一部を、コンマで区切って指定します。',
    placeholder: '最適な GPU',
  },
  gpu_spread: {
    label: '複数の GPU',
    help: '各 GPU にモデル全体を置くと、チャットが分散されます。同時の回答が速くなり、1 つの GPU が失敗してもほかが続けます。層を分割すると、より大きなモデルが収まります。',
    options: {
      auto: '収まればモデル全体を各 GPU に',
      layers: '層を GPU に分割',
      copies: '常にモデル全体を各 GPU に',
    },
  },
  context_store_every: {
    label: 'コンテキストの保存間隔（回答数）',
    help: 'チャットのコンテキストをディスクに保存し、再起動後すぐに続けられるようにします。',
    absent: '保存しない',
  },
  context_disk: {
    label: 'コンテキスト用のディスク容量（MB）',
    help: 'いっぱいになると、最も長く使われていないコンテキストから削除されます。メッセージは失われません。',
  },
  idle_memory: {
    label: '待機中のコンテキスト用メモリ（MB）',
    help: 'モデルごと。現在生成中でないチャットに使います。',
  },
  idle_minutes: {
    label: '待機中のコンテキストを解放するまで（分）',
    help: '先にディスクに保存され、次のメッセージで読み込まれます。',
    absent: 'メモリが必要になったとき',
  },
  limits: {
    label: '上限',
    help: '「厳格」は外部に公開するサーバー向けです。プロンプトは 2,048 トークン・10,000 文字まで、回答は 512 トークン・30 秒まで、同時 32 件です。',
    options: { own: 'カスタム', bounded: '厳格' },
  },
  limit_prompt_tokens: {
    label: 'プロンプトの最大長',
    help: 'チャット全体を含むトークン数。',
    absent: 'コンテキスト長まで',
  },
  limit_characters: {
    label: 'メッセージの最大長',
    help: '文字数。',
    absent: '制限なし',
  },
  limit_answer_tokens: {
    label: '回答の最大長',
    help: 'トークン数。これより長い要求は、この長さに制限されます。',
    absent: 'コンテキストがいっぱいになるまで',
  },
  limit_seconds: {
    label: '回答のタイムアウト（秒）',
    help: '待ち時間を含みます。それまでに書かれた分は残ります。',
    absent: 'なし',
  },
  limit_concurrent: {
    label: '同時回答数',
    help: 'それを超えるリクエストはキューで待ちます。',
  },
  limit_waiting: {
    label: 'キューの長さ',
    help: 'キューがいっぱいになると、リクエストは拒否されます。',
  },
  api_model_alias: {
    label: 'すべてのモデル名を受け付ける',
    help: '不明なモデル名のリクエストには、エラーの代わりに既定のモデルが回答します。',
  },
  context_memory: {
    label: 'コンテキスト用メモリ（MB）',
    help: 'モデルのすべてのチャットの合計です。コンテキスト 1 つ分は常に確保されます。',
    absent: '空きメモリの一部',
  },
  download_place: {
    label: 'ダウンロード先',
    help: '共有キャッシュは Hugging Face のモデルを使うほかのプログラムと共用され、モデルの保存は 1 つで済みます。',
    options: { app: 'Inglenook のフォルダー', hub_cache: 'Hugging Face の共有キャッシュ' },
  },
  download_limit: {
    label: 'ダウンロード速度の上限（KB/秒）',
    help: 'すべてのダウンロードの合計です。',
    absent: 'なし',
  },
  download_connections: {
    label: 'ファイルあたりの接続数',
    help: '1 つのファイルを同時にダウンロードする分割数です。',
  },
  download_patience: {
    label: '接続のタイムアウト（秒）',
    help: 'この時間データが届かないと再接続します。',
  },
  hub: {
    label: 'Hugging Face のアドレス',
    help: 'ミラーのアドレスです。HF_ENDPOINT が優先されます。',
    placeholder: 'https://huggingface.co',
  },
  trusted_keys: {
    label: '信頼する鍵',
    help: 'minisign の公開鍵を空白で区切って指定します。これらで署名されたモデル一覧とファイルを検証します。',
    placeholder: 'RW…',
  },
  offline: {
    label: 'オフラインモード',
    help: 'ほかのサーバーと Hugging Face への接続を遮断します。リモートの回答、モデル検索、ダウンロード、更新の確認は行われず、進行中のダウンロードは一時停止します。',
  },
  proxy: {
    label: 'プロキシ',
    help: 'Hugging Face、ほかのサーバー、ツールサーバー、更新への接続に使うプロキシのアドレス。空の場合はシステムの設定を使います。NO_PROXY のホストには直接接続します。アドレスに含まれるパスワードは暗号化されずに保存されます。',
    placeholder: 'http://proxy.example:8080',
  },
  check_updates: {
    label: '更新を確認',
    help: 'ウィンドウを開くたびに、新しいバージョンがあるかを更新サーバーに確認します。送信されるのは 1 つのファイルの要求だけです。同意するまで何もダウンロードしません。',
  },
  audit_log: {
    label: '監査ログ',
    help: 'すべての回答をデータフォルダーの audit/audit.jsonl に記録します：時刻、インターフェース、キー、モデル、トークン数。',
  },
  audit_text: {
    label: '監査ログに回答の本文を含める',
    help: '回答の本文も記録します。',
  },
  allow_image_urls: {
    label: 'アドレスから画像を取得',
    help: 'サーバーを使うプログラムは、画像の代わりにその Web アドレスを送れます。自分のネットワークのアドレスを許可すると、このコンピューターだけが届く機器にもプログラムが届きます。',
    options: {
      off: 'しない',
      public: '公開インターネットから',
      any: '自分のネットワークからも',
    },
  },
  endpoint_silence: {
    label: 'サーバーのタイムアウト（秒）',
    help: 'ほかのサーバーが回答中にこの時間何も送らないと、切断します。',
  },
  key_place: {
    label: 'キーの保存先',
    help: 'ほかのサーバーの API キーと Hugging Face トークンの保存場所です。',
    options: {
      auto: 'システムのキーチェーン（使えない場合は暗号化ファイル）',
      file: 'データフォルダーの暗号化ファイル',
    },
  },
  tools: {
    label: 'モデルにツールを提供する',
    help: 'オンになっているすべてのサーバーのツールを提供します。チャットごとに変更できます。',
  },
  tool_rounds: {
    label: '確認なしのツール呼び出し回数',
    help: 'ツールの呼び出しがこの回数続くと、常に許可したツールでも確認します。',
  },
  tool_seconds: {
    label: 'ツールのタイムアウト（秒）',
    help: 'これより長い呼び出しを中止し、モデルに知らせます。',
  },
  tool_characters: {
    label: '結果の最大長',
    help: '文字数。長いツール結果は切り詰められ、モデルに知らされます。',
  },
  attachment_megabytes: {
    label: 'ファイルの最大サイズ（MB）',
    help: 'メッセージに添付できる最大のファイルサイズです。',
  },
  attachment_count: {
    label: 'メッセージあたりのファイル数',
    help: '添付できるファイルの最大数です。',
  },
  attachment_passages: {
    label: '長いファイルからの抜粋',
    help: 'コンテキストに収まらないファイルから、質問ごとに渡すトークン数です。',
  },
  embedding_model: {
    label: '埋め込みモデル',
    help: '長いファイルを言葉だけでなく意味でも検索します。埋め込み用のモデルと追加のメモリが必要です。',
  },
  guard_marks: {
    label: 'ツール結果の不審なテキストを示す',
    help: '不可視文字を表示し、モデルに指示しようとするテキストを示します。',
  },
};

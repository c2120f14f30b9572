/** The settings of graphics cards, contexts, limits, downloads and the network. */
import type { Catalogue } from '../types';

export const machine: Catalogue['settings'] = {
  backend: {
    label: '計算するもの',
    help: '自動では、測ってプロセッサーより速いときにグラフィックカードが計算します。ドライバーごとに初めて使うとき、カーネルを検査します。失敗したときはプロセッサーが続けます。',
    options: { auto: '速いほう', cpu: 'プロセッサー', gpu: 'グラフィックカード' },
  },
  gpu_layers: {
    label: 'GPU の層',
    help: 'モデルの何層をグラフィックカードが計算するか。残りはプロセッサーに残ります。モデルが使う量はその詳細に出ます。',
    absent: '収まるだけ',
  },
  gpu_memory: {
    label: 'グラフィックカードのメモリ',
    help: 'メガバイト単位。モデルがカードごとに使ってよい量です。',
    absent: 'ほとんど',
  },
  gpu_precision: {
    label: 'グラフィックカードの精度',
    help: '浮動小数点数がいちばん正確です。半精度はプロンプトを速く読めることがあり、誤差はプロセッサーの整数よりずっと小さくなります。テンソルコアはさらに速くなりますが、回答は同時に読まれるものに少し左右されます。カードにないもの、誤るものは使いません。',
    options: {
      auto: '浮動小数点数',
      f32: '常に浮動小数点数',
      f16: '半精度',
      matrices: 'テンソルコアで半精度（実験的）',
    },
  },
  gpu_devices: {
    label: '使うグラフィックカード',
    help: '`nook devices` が挙げる番号か名前の一部をコンマで区切ります。',
    placeholder: 'いちばんよいもの',
  },
  gpu_spread: {
    label: '複数のグラフィックカード',
    help: 'それぞれがモデル全体を持つときは、チャットがカードに振り分けられます。同時に答えるものが早くなり、一枚が失敗してもほかのカードが続けます。層を分けると、より大きなモデルが収まります。',
    options: {
      auto: '収まるならモデル全体',
      layers: 'モデルの層を分ける',
      copies: 'それぞれにモデル全体',
    },
  },
  context_store_every: {
    label: 'コンテキストの保存',
    help: '会話のコンテキストを何回の回答ごとに保存するか。再起動後すぐに続けられます。',
    absent: '保存しない',
  },
  context_disk: {
    label: 'コンテキスト用のディスク',
    help: 'メガバイト単位。最も長く使われていないものから消えます。言葉は失われません。',
  },
  idle_memory: {
    label: '休止中のコンテキスト用メモリ',
    help: 'メガバイト単位、モデルごと：今は誰も質問していない会話のコンテキスト。',
  },
  idle_minutes: {
    label: '休止中のコンテキストを降ろす',
    help: '質問がない分数です。先に保存され、次の質問で戻ります。',
    absent: 'メモリが必要になったとき',
  },
  limits: {
    label: '適用する上限',
    help: '制限付き：プロンプト 2,048 トークンと 10,000 文字、回答 512 トークンと 30 秒、同時に 32 件。他人が質問できるプログラム向け。',
    options: { own: '下の値', bounded: '制限付き' },
  },
  limit_prompt_tokens: {
    label: '最長のプロンプト',
    help: '会話全体を含むトークン数。',
    absent: 'コンテキストに収まるだけ',
  },
  limit_characters: {
    label: '最長のメッセージ',
    help: '文字数です。',
    absent: '保存できるかぎり',
  },
  limit_answer_tokens: {
    label: '要求できる最長の回答',
    help: 'トークン数。それより多く求めるプログラムにも、この数までです。',
    absent: 'コンテキストがいっぱいになるまで',
  },
  limit_seconds: {
    label: '回答の最長時間',
    help: '待ち時間を含む秒数。それまでに書かれた分は残ります。',
    absent: 'かかるだけ',
  },
  limit_concurrent: { label: '同時の回答数', help: 'それを超える分は順番を待ちます。' },
  limit_waiting: {
    label: '待てる回答の数',
    help: 'それを超える質問はすぐに断ります。',
  },
  context_memory: {
    label: 'コンテキスト用メモリ',
    help: 'メガバイト単位。モデルが同時に持つすべての会話の分です。コンテキスト一つ分は常に確保されます。',
    absent: '空きの一部',
  },
  download_place: {
    label: 'モデルの保存先',
    help: '共有キャッシュは Hugging Face のモデルを使うほかのプログラムも読むもので、コピーが一つで済みます。',
    options: { app: 'このプログラムのフォルダー', hub_cache: 'Hugging Face の共有キャッシュ' },
  },
  download_limit: {
    label: '速度の上限',
    help: '毎秒キロバイト、すべてのダウンロードの合計。',
    absent: 'なし',
  },
  download_connections: {
    label: '接続数',
    help: '一つのファイルを同時にいくつに分けて受け取るか。',
  },
  download_patience: {
    label: '待ち時間',
    help: '秒数：接続が黙ったままのとき、つなぎ直すまで待つ長さ。',
  },
  hub: {
    label: 'ハブ',
    help: 'Hugging Face のミラーのアドレス。HF_ENDPOINT が優先されます。',
    placeholder: 'https://huggingface.co',
  },
  trusted_keys: {
    label: '信頼する鍵',
    help: 'minisign の公開鍵。二つ以上は空白で区切ります。それで署名されたモデル一覧とファイルを照合します。',
    placeholder: 'RW…',
  },
  offline: {
    label: 'オフラインのまま使う',
    help: 'ほかのサーバーにもハブにも何も送りません。回答も検索もダウンロードもしません。進行中のものは休みます。',
  },
  endpoint_silence: {
    label: 'ほかのサーバーを待つ時間',
    help: '秒数：回答中にこれだけ黙ったサーバーはあきらめます。',
  },
  key_place: {
    label: 'キーの保存先',
    help: 'ほかのサーバーのキーとハブのトークンを、入力されたときに保存する場所。',
    options: {
      auto: 'システムのキーチェーン。なければファイル',
      file: 'データフォルダーの暗号化したファイル',
    },
  },
};

/** The settings of how the window looks and begins, of texts that the user writes once, and of its server. */
import type { Catalogue } from '../types';

export const look: Catalogue['settings'] = {
  start_with: {
    label: '起動時に開くもの',
    help: 'ウィンドウを開いたときに表示するものです。',
    options: { new: '新しいチャット', last: '最後に開いたチャット' },
  },
  accent: {
    label: 'アクセントカラー',
    help: 'ボタン、リンク、選択中の項目の色です。',
    options: {
      ember: '残り火',
      blue: '青',
      green: '緑',
      violet: '紫',
      rose: 'ローズ',
      gray: 'グレー',
    },
  },
  text_size: {
    label: '文字サイズ',
    help: 'すべての文字の大きさです。ウィンドウのほかの部分の大きさは変わりません。',
    options: { small: '小', normal: '標準', large: '大', larger: '特大' },
  },
  code_wrap: {
    label: 'コードの行を折り返す',
    help: 'コードブロックの長い行を、スクロールせずに折り返します。各ブロックのボタンでも切り替えられます。',
  },
  instructions: {
    label: '既定の指示',
    help: '新しいチャットのシステムプロンプトです。チャットやプリセットに独自の指示があれば、そちらを使います。',
    placeholder: '例: 簡潔に答えてください。',
  },
  prompts: {
    label: '自分のプロンプト',
    help: 'メッセージ欄に / と名前を入力すると挿入されるテキストです。',
  },
  server_port: {
    label: 'ポート',
    help: 'プログラムは、このコンピューターのこのポートでサーバーに接続します。',
  },
  server_devices: {
    label: 'ほかの端末を許可',
    help: 'ネットワーク内のスマートフォンやコンピューターがキーで接続できます。接続は暗号化されません（HTTP）。信頼できるネットワークでのみオンにしてください。',
  },
  server_start: {
    label: 'ウィンドウと同時に起動',
    help: 'ウィンドウを開くたびにサーバーを起動します。',
  },
};

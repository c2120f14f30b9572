import type { Messages } from '../types';

export const serving: Messages['serving'] = {
  start: 'サーバーを起動',
  stop: 'サーバーを停止',
  restart: 'サーバーを再起動',
  stale: 'サーバーの起動後に設定が変わりました。',
  key: 'キー',
  show: '表示',
  hide: '隠す',
  renew: '新しいキー…',
  renew_warning: '古いキーはすぐに使えなくなります。プログラムや端末には新しいキーが必要です。',
  qr_label: '別の端末用のアドレスとキーの QR コード',
  devices_reached:
    '同じネットワークのスマートフォンでコードを読み取るか、{url} を開いてキーを入力します。',
  devices_warning:
    'このコードを持つ人は、あなたのチャットを読み書きできます。接続は暗号化されません。',
  devices_none: 'このコンピューターはネットワークに接続していません。',
  requests: '最近のリクエスト',
  requests_none: 'リクエストはまだありません。',
  requests_open: '実行中',
};

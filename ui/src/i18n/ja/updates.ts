import type { Messages } from '../types';

export const updates: Messages['updates'] = {
  title: '更新',
  check: '今すぐ確認',
  checking: '更新を確認しています…',
  installing: '新しいバージョンをインストールしています…',
  available: 'バージョン {version} が利用できます。',
  published: '公開日: {date}',
  current: '最新のバージョンです。',
  at_start: 'Inglenook は起動するたびに更新を確認します。',
  off: 'Inglenook はボタンを押したときだけ更新を確認します。',
  what_is_sent: '確認では {hosts} に 1 つのファイルを要求します。ほかには何も送信しません。',
  no_address: 'このビルドには更新用のアドレスがありません。更新を確認することはありません。',
  how_app_image:
    'この AppImage の入手元から新しい AppImage をダウンロードし、古いファイルと置き換えてください。',
  how_deb:
    'このパッケージの入手元から新しい .deb をダウンロードし、apt install ./ファイル名.deb でインストールしてください。',
  how_rpm:
    'このパッケージの入手元から新しい .rpm をダウンロードし、dnf install ./ファイル名.rpm でインストールしてください。',
  how_flatpak: 'ソフトウェアセンターか flatpak update で Inglenook を更新してください。',
  how_mac_app:
    'このアプリの入手元から新しいディスクイメージをダウンロードし、Inglenook を「アプリケーション」フォルダに移動してください。',
  how_nsis: 'このアプリの入手元から新しいインストーラーをダウンロードし、実行してください。',
  how_msi: 'このアプリの入手元から新しいインストーラーをダウンロードし、実行してください。',
  how_source: '新しいソースを取得し、もう一度ビルドしてください。',
  downloading: '新しいバージョンをダウンロード中',
  download: 'ダウンロード',
  restart: '再起動して更新',
  page: '入手先',
  automatic: '自動で確認…',
  checked: '最終確認: {when}',
  show: '表示',
};

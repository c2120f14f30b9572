import type { Messages } from '../types';

export const preview: Messages['preview'] = {
  open: 'プレビュー',
  title: 'プレビュー',
  close: 'プレビューを閉じる',
  scripts: 'スクリプトを許可',
  about: 'ネットワークからは何も読み込まれず、スクリプトも実行されません。',
  scripts_on:
    'スクリプトはチャットやネットワークにアクセスできません。不具合のあるスクリプトはウィンドウを遅くすることがあります。',
};

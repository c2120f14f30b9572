import type { Messages } from '../types';

export const help: Messages['help'] = {
  title: 'ヘルプ',
  search: '質問または検索',
  contents: 'すべての記事',
  results: '検索結果',
  related: '関連項目',
  open: '「{name}」を開く',
  source: 'ガイドより: {name}',
  maybe: 'こちらかもしれません: {name}',
  more: '詳しく',
  show_models: 'モデルを見る',
};

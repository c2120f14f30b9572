import type { Messages } from '../types';

export const memory: Messages['memory'] = {
  about:
    'すべてのチャットに知っておいてほしいメモです。プロンプトの一部になり、使う量はコンテキストに表示されます。Inglenook が自動でメモすることはありません。',
  use: 'チャットでメモを使う',
  note: 'メモ',
  hint: '例：単位はメートル法を使います。',
  none: 'メモはまだありません。書くか、メッセージのメニューで「覚える…」を選んでください。',
  takes: { other: 'メモはコンテキストの {tokens} トークンを使います。モデルに渡る形で表示' },
  remember: '覚える…',
  remember_about:
    'ほかのチャットに知ってほしい内容に短くしてください。ここで保存したものだけが残ります。',
  saved: 'メモリに保存しました。',
  removed: 'メモを削除しました。',
  edit: 'メモを編集',
  from: '「{title}」から',
  in_prompt: 'このプロンプトのメモ',
  choice_default: '設定に従う',
  choice_on: 'オン',
  choice_off: 'オフ',
};

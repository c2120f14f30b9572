import type { Messages } from '../types';

export const files: Messages['files'] = {
  attach: 'ファイルを添付',
  attached: '添付したファイル',
  of_message: 'このメッセージのファイル',
  drop: 'ここに放して添付',
  drop_about:
    'テキスト、コード、PDF、CSV はメッセージに添えます。会話のエクスポートは読み込みます。',
  let_go: '放すと添付します',

  gone: 'もうありません。もう一度添付してください。',
  reading: '読み取り中…',
  text: 'テキスト',
  markdown: 'Markdown',
  code: 'コード',
  csv: 'CSV',
  pdf: 'PDF',
  searched: '検索して使用',
  to_be_searched: '検索して使います',
  named: '{name}: {detail}',
  remove: '{name} を取り除く',

  hidden: {
    other: '{name} に見えない文字が {n} 個あります ({names})。モデルにはそのまま示します。',
  },
  instruction: '{name} はモデルに話しかけています: 「{quote}」。',
  guessed: '{name} は {encoding} として読みました。文字が大切なら本文を確かめてください。',

  pasted_name: '貼り付けたテキスト.txt',
  pasted: '貼り付けた長い文は、ファイルとしてメッセージに添えます。',
  put_in: 'メッセージに入れる',

  sources: '出典',
  all_sources: '{n} 件すべて',
  whole: 'ファイル全体',
  page: '{page} ページ',
  line: '{line} 行',
  lines: '{first}–{last} 行',

  content: 'ファイルの本文',
  part: '{size}、本文の一部',
  earlier: '前の部分',
  later: '後の部分',

  from_here: 'ファイル…',
  from_server: '{name} から…',
  offered_by: '{name} が提供するもの',
  asking_server: 'サーバーに尋ねています…',
  find_offered: '検索',
  nothing_offered: '読めるものは提供されていません。',
  by_address: 'アドレスで指定',
  address: 'アドレス',
  attach_it: '添付',
  address_about: '波かっこの中の言葉を書き換えてください。',
};

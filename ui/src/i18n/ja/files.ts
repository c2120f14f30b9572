import type { Messages } from '../types';

export const files: Messages['files'] = {
  attach: 'ファイルを添付',
  attached: '添付したファイル',
  of_message: 'このメッセージのファイル',
  drop: 'ドロップして添付',
  drop_about:
    '画像、テキスト、Office ファイル、電子書籍、コード、PDF、CSV はメッセージに添付されます。チャットのエクスポートはインポートされます。',
  let_go: '離すと添付されます',

  gone: '利用できなくなりました。もう一度添付してください。',
  reading: '読み込み中…',
  text: 'テキスト',
  markdown: 'Markdown',
  code: 'コード',
  csv: 'CSV',
  pdf: 'PDF',
  image: '画像',
  document: '文書',
  spreadsheet: 'スプレッドシート',
  presentation: 'プレゼンテーション',
  use_seeing: '{name} を使用',
  without_images: '画像を削除',
  loading_image: '画像を読み込んでいます…',
  previous_image: '前の画像',
  next_image: '次の画像',
  searched: '検索済み',
  to_be_searched: '送信時に検索',
  named: '{name}: {detail}',
  open: '{name} のテキストを表示',
  remove: '{name} を削除',

  hidden: {
    other: '{name} に不可視文字が {n} 個あります（{names}）。モデルには見える形で渡されます。',
  },
  instruction: '{name} にモデルへの指示が含まれています：「{quote}」',
  partly_unreadable: '一部読み取り不可',
  unreadable:
    '{name} は一部読み取れません（文字の約 {percent} %）。本文を確認するか、文字認識（OCR）にかけた結果を添付してください。',
  guessed: '{name} は {encoding} として読み込まれました。文字化けがないか本文を確認してください。',

  pasted_name: '貼り付けたテキスト.txt',
  pasted: '貼り付けた長いテキストは、ファイルとして添付されます。',
  put_in: 'メッセージに挿入',

  sources: '出典',
  all_sources: '{n} 件すべて',
  whole: 'ファイル全体',
  page: '{page} ページ',
  line: '{line} 行',
  lines: '{first}–{last} 行',

  content: 'ファイルの本文',
  part: '{size}、本文の一部',
  earlier: '前の部分',
  later: '次の部分',

  from_here: 'ファイル…',
  from_server: '{name} から…',
  offered_by: '{name} のリソース',
  asking_server: 'リソースを読み込んでいます…',
  find_offered: '検索',
  nothing_offered: 'このサーバーにはリソースがありません。',
  by_address: 'アドレスで指定',
  address: 'アドレス',
  attach_it: '添付',
  address_about: '波かっこ { } の中の語を置き換えてください。',
};

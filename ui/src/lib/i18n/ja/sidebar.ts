import type { Messages } from '../types';

export const sidebar: Messages['sidebar'] = {
  conversations: '会話',
  width: 'サイドバーの幅',
  memory: 'メモリ',
  memory_of: 'メモリ {total} のうち {taken} を全プログラムが使用中',
  search: '検索',
  search_all: 'すべてのメッセージを検索',
  pinned: 'ピン留め',
  chosen: '選択中',
  today: '今日',
  yesterday: '昨日',
  week: '今週',
  month: '今月',
  older: 'それ以前',
  empty: '会話はこのコンピューターのここに保存されます。',
  answering: '回答中',
  conversation: '会話',
  downloads: 'ダウンロード',

  folder: 'フォルダー',
  folder_named: 'フォルダー {name}',
  folder_more: 'フォルダー「{name}」のその他の操作',
  folder_empty: '空です。チャットをここへドラッグするか、メニューから移してください。',
  folder_remove: 'フォルダーを取り除き、チャットは残す',

  pin: 'ピン留めする',
  unpin: 'ピン留めを外す',
  move: 'フォルダーへ移動…',
  move_out: 'フォルダーから出す',
  duplicate: '複製',
  export_md: 'Markdown（読むため）',
  export_json: 'JSON（すべての版を含む）',

  export_print: '印刷、または PDF',
  results: '検索結果',
  results_none: '何も見つかりません',
  results_count: { other: '{n} 件のメッセージが見つかりました' },
  no_message: 'この語を含むメッセージはありません。',

  chosen_chats: '選択したチャット',
  chosen_count: '{n} 件を選択中',
  pin_them: 'ピン留めする',
  move_them: 'フォルダーへ移動',
  folders: 'フォルダー',
  out_of_folders: 'フォルダーから出す',
  delete_them: '削除',
  choose_none: '選択を解除（Esc）',
  title: 'このチャットのタイトル',

  trash_empty: 'ごみ箱を空にする',
  trash_empty_sure: 'ごみ箱を空にしますか？',
  trash_forget_sure: '完全に削除しますか？',
  trash_note: 'ここにあるものは 30 日後に完全に消えます。',
  trash_none: '何もありません。削除したものはここから戻せます。',
  trash_all: {
    other:
      '{n} 件の会話は、この後は戻せません。本文、検索索引、それを含むすべてのバックアップがこのコンピューターから消去されます。',
  },
  trash_one:
    '「{title}」は、この後は戻せません。本文、検索索引、それを含むすべてのバックアップがこのコンピューターから消去されます。',
  empty_now: '空にする',
};

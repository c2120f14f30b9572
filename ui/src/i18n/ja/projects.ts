import type { Messages } from '../types';

export const projects: Messages['projects'] = {
  of: 'プロジェクト「{name}」',
  about: 'このフォルダーの新しいチャットは、ここの内容で始まります。既存のチャットは変わりません。',
  instructions: '指示',
  instructions_note:
    '新しいチャットのシステムプロンプト。空の場合は、プリセットまたは既定の指示を使います。',
  preset: 'プリセット',
  model: 'モデル',
  model_default: '既定のモデル',
  files: 'ファイル',
  files_note:
    '新しいチャットの最初のメッセージと一緒に送られます。収まる場合は全文、収まらない場合は質問に合う箇所です。検索インデックスは保存されます。',
  n_files: { other: '{n} 個のファイル' },
  add: 'ファイルを追加',
  remove: 'プロジェクトを削除',
  remove_folder: 'フォルダー「{name}」とそのプロジェクトを削除しますか？',
  remove_folder_about:
    'プロジェクトの指示とファイルは削除されます。チャットと、チャットに渡されたファイルは残ります。',
  make: 'プロジェクトにする…',
  open: 'プロジェクトの設定…',
  new_chat: 'ここで新しいチャット',
  begins_in: '「{name}」の新しいチャット',
  given: 'プロジェクトから',
};

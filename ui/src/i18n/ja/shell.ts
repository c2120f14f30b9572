import type { Messages } from '../types';

export const shell: Messages['shell'] = {
  let_go: '離すとモデルに追加されます',
  link_to: '{host} へのリンク',
  link_note: '開く前にアドレスを確かめてください。まだ何も読み込まれていません。',
  link_copy: 'アドレスをコピー',
  link_open: 'リンクを開く',

  find_anything: 'すべてを検索',
  find_what: 'チャット、メッセージ、モデル、コマンドを検索',
  found: '検索結果',
  nothing_called: '「{query}」に一致する結果はありません',
  chats: 'チャット',
  messages: 'メッセージ',
  models: 'モデル',
  commands: 'コマンド',
  help: 'ヘルプ',
  settings: '設定',
  in_use: '使用中',

  closing: '回答を生成中です',
  closing_about:
    '今閉じると、ここまでの内容が保存されます。回答が終わってから自動的に閉じることもできます。',
  closing_now: '停止して閉じる',
  closing_finish: '完了後に閉じる',
  closing_stay: '開いたままにする',
  closing_waits: '回答が完了すると Inglenook は閉じます。',

  tray_show: 'Inglenook を表示',
  tray_quit: '終了',

  change_keys: 'ショートカットを変更…',
  back_to_chat: 'チャットに戻る（Esc）',
  key: 'API キー',
  enter: 'サインイン',

  preset_named: 'プリセット「{name}」',
  settings_reset: { other: '{n} 件の設定を既定値に戻しました' },
};

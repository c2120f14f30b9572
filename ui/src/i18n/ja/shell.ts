import type { Messages } from '../types';

export const shell: Messages['shell'] = {
  let_go: '放すとモデルに追加します',
  link_to: '{host} へのリンク',
  link_note: 'このアドレスはモデルが書いたものです。そこからは何も読み込んでいません。',
  link_copy: 'アドレスをコピー',
  link_open: '新しいタブで開く',

  find_anything: '何でも探す',
  find_what: 'チャット、メッセージ、モデル、コマンドを探す',
  found: '見つかったもの',
  nothing_called: '「{query}」という名前のものはありません。',
  chats: 'チャット',
  messages: 'メッセージ',
  models: 'モデル',
  commands: 'コマンド',
  settings: '設定',
  in_use: '使用中',

  closing: '回答をまだ書いています',
  closing_about:
    '今閉じると、書かれたところまでが残ります。書き終わってから自動で閉じることもできます。',
  closing_now: '停止して閉じる',
  closing_finish: '書き終えてから閉じる',
  closing_stay: '開いたままにする',
  closing_waits: '回答が終わると Inglenook は閉じます。',

  tray_show: 'Inglenookを表示',
  tray_quit: '終了',

  change_keys: '変更…',
  back_to_chat: 'チャットに戻る（Esc）',
  key: 'キー',
  enter: '入る',

  preset_named: 'プリセット「{name}」',
  settings_reset: { other: '{n} 件の設定を初めの状態に戻しました' },
};

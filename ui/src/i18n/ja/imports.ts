import type { Messages } from '../types';

export const imports: Messages['imports'] = {
  named: '{name}：{why}',
  cut_off: '途中で切れています。ダウンロードが不完全な可能性があります。',
  too_large: '大きすぎます。',
  not_json: '正しい JSON ではありません。',
  no_messages: 'メッセージがありません。',
  cycle: '互いに循環して参照している {n} 件のメッセージは除かれました。',
  no_sender: '{n} 番目のメッセージには送信者がないため、除かれました。',
  unknown_sender: '{n} 番目のメッセージは送信者「{sender}」が不明なため、除かれました。',
  no_chat: 'チャットではありません。',
  unknown_format:
    'エクスポートの形式が不明です。Inglenook が読み込めるのは、Inglenook の JSON と ChatGPT・Claude のエクスポート（ZIP ファイルも可）です。',
  incomplete: '内容が不完全です。',
  no_conversations: 'この ZIP ファイルには conversations.json がありません。',
  unreadable_zip: 'この ZIP ファイルを読み取れません（{cause}）。',
  empty_file: 'このファイルは空です。',
  foreign_format: '形式 {format} は不明です。',
  newer:
    'このエクスポートはバージョン {version} ですが、この Inglenook が読めるのはバージョン {known} までです。',
  own_incomplete: 'この Inglenook のエクスポートは不完全です。',
  unreadable_file: 'このファイルを読み取れません（{cause}）。',
  arrived_damaged: 'ファイルが壊れた状態で届きました。',
  others_imported: 'ファイル内のほかのチャットはインポートされました。',
  other_messages_imported: 'チャットのほかのメッセージはインポートされました。',
  export_again:
    '元のアプリからチャットをもう一度エクスポートするか、ファイルをもう一度ダウンロードしてください。',
  download_again: 'もう一度ダウンロードしてください。',
  choose_json: 'JSON のエクスポート、またはそれを含む ZIP ファイルを選んでください。',
  choose_zip: 'ChatGPT や Claude から受け取った ZIP ファイルをそのまま選んでください。',
  update: 'Inglenook を更新してください。',
  check_drive: 'ファイルのあるドライブを確認して、もう一度お試しください。',
  zip_again:
    'ダウンロードが不完全な可能性があります。もう一度ダウンロードするか、展開して conversations.json を選んでください。',
  choose_again: 'もう一度選んでください。',
};

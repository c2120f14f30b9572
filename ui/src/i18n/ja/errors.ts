import type { Catalogue } from '../types';

export const errors: Catalogue['errors'] = {
  'ui.unreachable': {
    message: 'Inglenook が応答しません。',
    remedy: '`nook serve` がまだ動いているか確かめて、もう一度試してください。',
  },
  'ui.unauthorized': {
    message: 'このページにはキーが必要です。',
    remedy:
      '`nook serve` に --api-key で渡したもの、なければデータフォルダーの keys/server.key にあります。',
  },
  'app.closed': {
    message: '書いている途中で Inglenook が閉じられました。',
    remedy: '全部の回答が欲しいときは、もう一度質問してください。',
  },
  'chat.cannot_continue': {
    message: 'この回答は別のトークンを使うモデルが書き始めたため、正確には続けられません。',
    remedy: '代わりに別の版を頼んでください。',
  },
  'compress.no_place': {
    message: 'この会話の一部を忘れるためのメモリが残っていません。',
    remedy: 'ほかの回答が終わってから試すか、古いメッセージを省くようにしてください。',
  },
  'compress.no_summary': {
    message: 'モデルが要約を書きませんでした。',
    remedy: '代わりに古いメッセージを省くようにしてください（設定の「長い会話」）。',
  },
  'compress.nothing': {
    message: 'この会話にはまだたたむものがありません。',
    remedy: '後に新しいメッセージが続けば、古いものをたためます。',
  },
  'hub.busy': {
    message: 'ハブから待つよう求められました。要求が多すぎます。',
    remedy: '自動で続きます。',
  },
  'import.backup': {
    message: 'これは会話のエクスポートではなく、全体のバックアップです。',
    remedy: '代わりに復元してください（`nook restore FILE` または設定の「データ」）。',
  },
  'import.broken': {
    message: 'ファイルが壊れて届きました。',
    remedy: 'もう一度選んでください。',
  },
  'import.empty': {
    message: 'このファイルに会話はありません。',
    remedy: 'エクスポートの conversations.json か、zip 全体を選んでください。',
  },
  'import.stopped': {
    message: '取り込みを止めました。',
    remedy: '何も残っていません。',
  },
  'kv.memory_full': {
    message: 'コンテキスト用のメモリがいっぱいです。',
    remedy: 'ほかの回答が終わるのを待つか、設定でコンテキストのメモリを増やしてください。',
  },
  'look.busy': {
    message: 'モデルが回答中です。',
    remedy: '終わってからもう一度見てください。',
  },
  'look.not_loaded': {
    message: 'この回答のモデルはメモリにありません。',
    remedy: '何か質問してから、もう一度見てください。',
  },
  'model.nan_logits': {
    message: 'モデルの出力に数でない値が含まれています。',
    remedy: '重みが壊れています。モデルをもう一度ダウンロードしてください。',
  },
  'model.removed': {
    message: '回答中にモデルが取り除かれました。',
    remedy: '別のモデルを選んでください。',
  },
  'preset.no_name': {
    message: 'プリセットには名前が必要です。',
    remedy: '名前を書いてください。',
  },
  'session.busy': {
    message: '別のプログラムが会話のデータベースを使っています。',
    remedy:
      'ほかの Inglenook のウィンドウやバックアップのプログラムを閉じて、もう一度試してください。',
  },
  'session.disk_full': {
    message: 'ディスクがいっぱいで、保存できませんでした。',
    remedy: '空きを作ってからもう一度試してください。',
  },
  'session.empty': {
    message: 'この会話にはまだ何もありません。',
    remedy: '先にメッセージを書いてください。',
  },
  'session.not_a_question': {
    message: '書き直せるのは自分のメッセージだけです。',
    remedy: '代わりに回答の別の版を頼んでください。',
  },
  'session.not_the_end': {
    message: 'この回答にはすでに返事があるため、続けられません。',
    remedy: '別の版を頼むか、ここで枝分かれしてください。',
  },
  'session.nothing_to_retry': {
    message: 'もう一度答える質問がありません。',
    remedy: '先にメッセージを書いてください。',
  },
  'turn.unknown': {
    message: 'この回答はここでは書かれていません。',
    remedy: 'その会話を開いてください。書かれた分はそこにあります。',
  },
  'worker.file_gone': {
    message: 'モデルの回答中に、そのファイルが切り詰められたか、読めなくなりました。',
    remedy:
      'ファイルのあるドライブを確かめるか、モデルをもう一度ダウンロードしてから、質問し直してください。',
  },
  'worker.hung': {
    message: '回答を計算する部分が固まったため、終了させました。',
    remedy:
      'もう一度質問してください。何度も起きるなら、別のモデルを選ぶか、コンピューターを再起動してください。',
  },
  'worker.killed': {
    message: '回答を計算する部分をシステムが終了させました。おそらくメモリ不足です。',
    remedy:
      'ほかのプログラムを閉じるか、設定でコンテキストを短くするか、小さなモデルを選んでから、質問し直してください。',
  },
};

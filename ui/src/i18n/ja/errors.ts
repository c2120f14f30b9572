import type { Catalogue } from '../types';

export const errors: Catalogue['errors'] = {
  'ui.unreachable': {
    message: 'Inglenook が応答しません。',
    remedy: '`nook serve` が動作しているか確認して、もう一度お試しください。',
  },
  'ui.unauthorized': {
    message: 'このページには API キーが必要です。',
    remedy:
      '`nook serve` に --api-key で渡したキーです。渡していない場合は、データフォルダーの keys/server.key にあります。',
  },
  'app.closed': {
    message: '回答の生成中に Inglenook が閉じられました。',
    remedy: '完全な回答を得るには、再生成してください。',
  },
  'attachment.scanned': {
    message: '{name} のページはスキャン画像で、モデル {model} は画像に対応していません。',
    remedy:
      '「画像」の表示があるモデルを選ぶか、ファイルを文字認識（OCR）にかけた結果を添付してください。',
  },
  'chat.cannot_continue': {
    message: 'この回答は異なる語彙を持つモデルが書き始めたため、正確には続けられません。',
    remedy: '代わりに再生成してください。',
  },
  'compress.no_place': {
    message: 'トークンの破棄でこのチャットを圧縮するためのメモリが足りません。',
    remedy: 'ほかの回答が終わってから試すか、古いメッセージを省略してください。',
  },
  'compress.no_summary': {
    message: 'モデルが要約を書きませんでした。',
    remedy:
      '代わりに古いメッセージを省略してください（設定の「コンテキストがいっぱいになったとき」）。',
  },
  'compress.nothing': {
    message: 'このチャットには要約するものがまだありません。',
    remedy: '新しいメッセージが続くと、古いものを要約できます。',
  },
  'hub.busy': {
    message: 'Hugging Face へのリクエストが多すぎます。',
    remedy:
      'しばらく待ってから、もう一度お試しください。進行中のダウンロードは自動的に再開します。',
  },
  'import.backup': {
    message: 'これはチャットのエクスポートではなく、完全なバックアップです。',
    remedy: '代わりに復元してください（`nook restore FILE` または 設定 > データ）。',
  },
  'import.empty': {
    message: 'このファイルにチャットはありません。',
    remedy: 'エクスポートの conversations.json か、ZIP ファイル全体を選択してください。',
  },
  'import.stopped': { message: 'インポートを中止しました。', remedy: 'ファイルは残っていません。' },
  'kv.memory_full': {
    message: 'コンテキスト用のメモリがいっぱいです。',
    remedy: 'ほかの回答が終わるのを待つか、設定で「コンテキスト用メモリ」を増やしてください。',
  },
  'look.busy': { message: 'モデルは回答中です。', remedy: '完了してからもう一度お試しください。' },
  'look.not_loaded': {
    message: 'この回答を書いたモデルは読み込まれていません。',
    remedy: 'メッセージを送信してから、もう一度お試しください。',
  },
  'model.nan_logits': {
    message: 'モデルの出力に無効な数値が含まれています。',
    remedy: '重みが壊れています。モデルをもう一度ダウンロードしてください。',
  },
  'model.removed': {
    message: '回答中にモデルが削除されました。',
    remedy: '別のモデルを選択してください。',
  },
  'preset.no_name': {
    message: 'プリセットには名前が必要です。',
    remedy: '名前を入力してください。',
  },
  'session.busy': {
    message: '別のプログラムがチャットのデータベースを使用しています。',
    remedy:
      'ほかの Inglenook のウィンドウやバックアッププログラムを閉じて、もう一度お試しください。',
  },
  'session.damaged': {
    message:
      'チャットのデータベースが破損していました。{chats} 件のチャットを復元しました。失われたもの：タイトル {titles} 件、メッセージ {messages} 件以上、読み取れなかった箇所 {places} か所。破損したファイルは {file} に残してあります。',
    remedy: '何も削除していません。足りないものがあれば、そのファイルを保管しておいてください。',
  },
  'session.disk_full': {
    message: 'ディスクがいっぱいのため、保存できませんでした。',
    remedy: '空き容量を増やして、もう一度お試しください。',
  },
  'session.empty': {
    message: 'このチャットはまだ空です。',
    remedy: '先にメッセージを送信してください。',
  },
  'session.index_rebuilt': {
    message:
      'チャットデータベースの索引が壊れていたため、作り直しました。失われたものはありません。',
    remedy: '失敗した操作をもう一度お試しください。繰り返す場合はディスクを確認してください。',
  },
  'session.not_a_question': {
    message: '編集して再送信できるのは自分のメッセージだけです。',
    remedy: '代わりに回答を再生成してください。',
  },
  'session.not_the_end': {
    message: 'この回答の後にメッセージがあるため、続けられません。',
    remedy: '再生成するか、ここから新しいチャットに分岐してください。',
  },
  'session.nothing_to_retry': {
    message: '再生成するメッセージがありません。',
    remedy: '先にメッセージを送信してください。',
  },
  'session.out_of_memory': {
    message: 'チャットデータベースを使うためのメモリが足りません。',
    remedy: 'ほかのプログラムを閉じるかモデルを解放して、もう一度お試しください。',
  },
  'session.read_only': {
    message:
      'ディスクがいっぱいか、データフォルダーに書き込めません。チャットは読めますが、新しい内容は保存されません。',
    remedy:
      '空き容量を増やすか、データフォルダーのアクセス権を確認してから、Inglenook を再起動してください。',
  },
  'shell.clipboard': {
    message: 'コピー元のプログラムから内容を受け取れませんでした。',
    remedy: 'ファイルとして保存し、それを添付してください。',
  },
  'shell.link': {
    message: 'このアドレスを開くプログラムを起動できませんでした。',
    remedy: 'アドレスをコピーして、ご自分で開いてください。',
  },
  'tools.form': {
    message: 'フォームの値が不足しているか、許可されていません。',
    remedy: '値を修正して、もう一度送信してください。',
  },
  'tools.form_closed': {
    message: 'このフォームはすでに閉じられています。',
    remedy: 'メッセージをもう一度送信してください。',
  },
  'tools.sign_in': {
    message: '{name} はサインインが必要です。',
    remedy: '設定 > ツール、または `nook tools sign-in` でサインインしてください。',
  },
  'tools.sign_in_canceled': {
    message: '{name} へのサインインは中止されました。',
    remedy: 'もう一度サインインしてください。',
  },
  'tools.sign_in_denied': {
    message: '{name} へのアクセスは許可されませんでした。',
    remedy: 'もう一度サインインしてください。',
  },
  'tools.sign_in_expired': {
    message: '{name} へのサインインの有効期限が切れました。',
    remedy: 'もう一度サインインしてください。',
  },
  'tools.sign_in_timeout': {
    message: '{name} へのサインインは {minutes} 分以内に完了しませんでした。',
    remedy: 'もう一度サインインしてください。',
  },
  'turn.unknown': {
    message: 'この回答はここでは生成されていません。',
    remedy: 'チャットを開くと、書かれた内容を確認できます。',
  },
  'update.busy': {
    message: '更新はすでに進行中です。',
    remedy:
      '終わるまで待つか、ダウンロードをキャンセルしてください。準備ができていれば Inglenook を再起動してください。',
  },
  'update.by_hand': {
    message:
      'この Inglenook は自分自身を置き換えられません。専用のインストーラーでインストールされていないためです。',
    remedy: 'このバージョンと同じ方法で新しいバージョンをインストールしてください。',
  },
  'update.client': {
    message: '更新を確認できません: {cause}。',
    remedy: '設定のプロキシとシステムの証明書を確認してください。',
  },
  'update.download': {
    message: '{place} からのダウンロードが中断されました: {cause}。',
    remedy: 'インターネット接続とプロキシを確認し、もう一度お試しください。',
  },
  'update.format': {
    message: '{place} からバージョンの一覧が届きませんでした: {cause}。',
    remedy: '後でもう一度お試しください。このバージョンはそのまま使えます。',
  },
  'update.install': {
    message: '新しいバージョンをインストールできませんでした: {cause}。',
    remedy:
      'プログラムのフォルダに書き込めることと、ディスクの空き容量を確認してください。このバージョンはそのまま使えます。',
  },
  'update.no_address': {
    message: 'この Inglenook のビルドには更新用のアドレスがありません。',
    remedy: 'このバージョンの入手元から新しいものを入手するか、ソースからビルドしてください。',
  },
  'update.no_list': {
    message: '{place} にバージョンの一覧がありません。',
    remedy: '後でもう一度お試しください。このバージョンはそのまま使えます。',
  },
  'update.none': {
    message: 'ダウンロードできる新しいバージョンはありません。',
    remedy: '先に更新を確認してください。',
  },
  'update.not_here': {
    message: 'Inglenook の更新は専用のウィンドウで行います。',
    remedy: 'Inglenook が動いているコンピューターでウィンドウを開いてください。',
  },
  'update.not_ready': {
    message: 'インストールできるダウンロード済みのバージョンがありません。',
    remedy: '先に更新を確認し、新しいバージョンをダウンロードしてください。',
  },
  'update.platform': {
    message:
      '{place} に新しいバージョンがありますが、この種類のコンピューターやパッケージ用ではありません。',
    remedy: '後でもう一度お試しください。このバージョンはそのまま使えます。',
  },
  'update.redirect': {
    message: '更新サーバーの案内先 {place} は暗号化されていません。',
    remedy: '接続中のネットワークを確認してください。先にログインが必要な場合があります。',
  },
  'update.redirects': {
    message: '更新サーバーの転送回数が多すぎます。',
    remedy: '接続中のネットワークを確認してください。先にログインが必要な場合があります。',
  },
  'update.signature': {
    message: '{place} の新しいバージョンは受け入れられませんでした: {cause}。',
    remedy:
      '手動でインストールしないでください。何も変更されていません。後でもう一度試すか、Inglenook の公開元に知らせてください。',
  },
  'update.too_large': {
    message: '{place} の更新は {size} MB を超えています。',
    remedy: 'これは Inglenook のパッケージではありません。後でもう一度お試しください。',
  },
  'update.unreachable': {
    message: '{place} に接続できません。',
    remedy: 'インターネット接続とプロキシを確認し、もう一度お試しください。',
  },
  'worker.file_gone': {
    message: 'モデルの回答中に、モデルファイルが切り詰められたか、読み取れなくなりました。',
    remedy: 'ドライブを確認するか、モデルをもう一度ダウンロードしてから、お試しください。',
  },
  'worker.hung': {
    message: 'Inglenook の推論プロセスが応答しなくなり、終了されました。',
    remedy:
      'もう一度お試しください。頻繁に起きる場合は、別のモデルを選ぶか、コンピューターを再起動してください。',
  },
  'worker.killed': {
    message: 'システムが Inglenook の推論プロセスを終了しました。メモリ不足と考えられます。',
    remedy:
      'ほかのプログラムを閉じるか、設定でコンテキスト長を短くするか、小さなモデルを選んでから、もう一度お試しください。',
  },
};

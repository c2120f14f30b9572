import type { Messages } from '../types';

export const servers: Messages['servers'] = {
  title: 'ほかのサーバー',
  about:
    'OpenAI のプロトコルを話すサーバー（別の Inglenook、vLLM、SGLang、llama.cpp、Ollama）です。そのモデルはあなたのモデルと同じ一覧に並びます。そこに書いたことは、同じコンピューターで動いている場合を除き、このコンピューターの外へ出ます。',
  add: 'サーバーを追加…',
  name: '名前',
  name_hint: 'ワークステーション',
  address: 'アドレス',
  key: 'キー（必要な場合）',
  key_hint: 'キーチェーン、または暗号化したファイルに保存します',
  key_kept: 'キーは暗号化したファイルにあります',
  key_keychain: 'キーはシステムのキーチェーンにあります',
  key_environment: 'キーは {variable} にあります',
  asking: '問い合わせ中',
  test: 'もう一度問い合わせる',
  switch_off: 'オフにする',
  switch_on: 'オンにする',
  off: 'オフ',
  up: '応答あり',
  down: '応答なし',
  leaves: 'このコンピューターの外へ',
  leaves_about: 'ここへの質問はこのコンピューターの外へ出ます',
  readable: '途中で読まれる恐れ',
  readable_about: 'アドレスが https ではなく http で始まっています',
};

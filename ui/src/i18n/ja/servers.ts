import type { Messages } from '../types';

export const servers: Messages['servers'] = {
  title: 'ほかのサーバー',
  about:
    'OpenAI 互換 API を持つサーバー（別の Inglenook、vLLM、SGLang、llama.cpp、Ollama）です。そのモデルは同じリストに表示されます。サーバーがこのコンピューターで動いていない場合、メッセージは外部に送信されます。',
  add: 'サーバーを追加…',
  name: '名前',
  name_hint: 'ワークステーション',
  address: 'アドレス',
  key: 'API キー（必要な場合）',
  key_hint: 'キーチェーンまたは暗号化ファイルに保存されます',
  model: 'モデル（サーバーが一覧を返さない場合のみ）',
  model_hint: 'モデル名（例：gpt-oss-120b）',
  models_enter: 'モデルを入力…',
  models_label: 'モデル名（カンマ区切り）',
  key_kept: 'API キー：暗号化ファイル',
  key_keychain: 'API キー：システムのキーチェーン',
  key_environment: 'API キー：{variable}',
  asking: '接続しています…',
  test: '接続をテスト',
  switch_off: 'オフにする',
  switch_on: 'オンにする',
  off: 'オフ',
  online: 'オンライン',
  offline: 'オフライン',
  leaves: '外部に送信',
  leaves_about: 'このサーバーへのメッセージは外部に送信されます',
  unencrypted: '暗号化なし（HTTP）',
  unencrypted_about:
    'アドレスが https ではなく http のため、ネットワーク上の第三者に読まれる恐れがあります',
};

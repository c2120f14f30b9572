import type { Messages } from '../types';

export const welcome: Messages['welcome'] = {
  first_steps: 'はじめに',
  step_of: '手順 {at} / {n}',
  go_on: '次へ',
  start: 'チャットを始める',

  title: 'Inglenook へようこそ',
  text: '暖炉のそばの暖かな一隅。自分のコンピューターで言語モデルと話す場所です。小さなモデルが入っているので、すぐに話しかけられます。',

  machine: 'このコンピューター',
  machine_text: 'モデルはここで、備わっているものを使って動きます。',
  processor: 'プロセッサー',
  cores: { other: '{n} コア' },
  runs_on_it: 'どのモデルもこれで動きます。',
  runs_on_it_with: 'どのモデルもこれで動きます（{isa}）。',
  memory: 'メモリ',
  memory_decides: 'モデルの大きさの上限が決まります。',
  memory_free: '今、モデルは {size} を使えます。',
  graphics: 'グラフィックカード',
  graphics_note: 'そのメモリに収まるモデルは、ずっと速く回答します。',

  model: '最初のモデル',
  model_text:
    '内蔵のモデルはすぐに回答し、少し物を知っています。大きなモデルはずっと多くを知っていて、話している間に届きます。',
  answers_first: '最初に回答',
  on_its_way: '取得中',
  have_file: 'モデルのファイルを持っています：',

  privacy: 'ここに残るもの',
  privacy_text: '頼まないかぎり、すべてここに残ります。',
  words: 'あなたの言葉',
  words_value: 'このコンピューターに保存',
  words_note: 'アカウントなし、テレメトリなし。書いたものを学習に使うこともありません。',
  network: 'ネットワーク',
  network_value: '頼んだときだけ',
  network_note:
    'モデルを探して取得するときは外につながります。設定にはすべての接続が記録され、一つのスイッチで全部止められます。',
  deleting: '削除',
  deleting_value: '本当に消します',
  deleting_note: '10 秒間は取り消せて、30 日間はごみ箱に残り、その後ディスクには何も残りません。',
};

import type { Messages } from '../types';

export const welcome: Messages['welcome'] = {
  first_steps: '初回ガイド',
  step_of: '手順 {at} / {n}',
  go_on: '次へ',
  start: 'チャットを始める',

  title: 'Inglenook へようこそ',
  text: '暖炉のそばの暖かな一角で、自分のコンピューターの言語モデルと話しましょう。小さなモデルを内蔵しているので、すぐに始められます。',

  machine: 'このコンピューター',
  machine_text: 'モデルはこのコンピューターのハードウェアで動作します。',
  processor: 'CPU',
  cores: { other: '{n} コア' },
  runs_on_it: 'すべてのモデルが動作します。',
  runs_on_it_with: 'すべてのモデルが動作します（{isa}）。',
  memory: 'メモリ',
  memory_decides: '使えるモデルの大きさを左右します。',
  memory_free: '現在、モデルに {size} を使えます。',
  graphics: 'GPU',
  graphics_note: 'そのメモリに収まるモデルは、ずっと速く回答します。',

  model: '最初のモデル',
  model_text:
    '内蔵モデルはすぐに回答しますが、知識は多くありません。大きなモデルは知識が豊富で、チャット中にダウンロードできます。',
  answers_first: 'すぐに使えます',
  on_its_way: 'ダウンロード中',
  have_file: 'モデルのファイルを持っています：',

  privacy: 'プライバシー',
  privacy_text: '特に選択しないかぎり、すべてこのコンピューターに残ります。',
  words: 'チャット',
  words_value: 'このコンピューターに保存',
  words_note: 'アカウントなし、テレメトリなし。書いたものを学習に使うこともありません。',
  network: 'ネットワーク',
  network_value: '必要なときだけ',
  network_note:
    'モデルの検索とダウンロードにはネットワークを使います。設定ですべての接続を確認でき、スイッチ 1 つで遮断できます。',
  deleting: '削除',
  deleting_value: '完全に消去されます',
  deleting_note:
    '10 秒間は取り消しでき、30 日間はごみ箱に残ります。その後、ディスクには何も残りません。',
};

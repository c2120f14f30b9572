import type { Messages } from '../types';

export const samplers: Messages['samplers'] = {
  title: 'DRY と XTC',
  dry_multiplier: 'DRY 乗数',
  dry_multiplier_help:
    'すでに書かれた箇所を続けるトークンへのペナルティです。0 で DRY はオフになります。通常は 0.8 です。',
  dry_base: 'DRY 基数',
  dry_base_help: '繰り返しが 1 トークン長くなるごとのペナルティの増え方です。',
  dry_allowed_length: 'DRY 許容長',
  dry_allowed_length_help: 'ペナルティのない繰り返しの最大の長さ(トークン数)です。',
  dry_penalty_last_n: 'DRY 範囲',
  dry_penalty_last_n_help:
    '繰り返しを探す直近のトークン数です。-1 はすべて、0 は DRY をオフにします。',
  dry_sequence_breakers: 'DRY 区切り文字列',
  dry_sequence_breakers_help: '繰り返しが終わる文字列です。1 行に 1 つ。\\n は改行です。',
  xtc_probability: 'XTC 確率',
  xtc_probability_help:
    '最も確率の高いトークンを除く頻度です。0 で XTC はオフになります。通常は 0.5 です。',
  xtc_threshold: 'XTC しきい値',
  xtc_threshold_help:
    'この確率以上のトークンを、その中で最も低いものを残して除きます。0.5 を超えると除きません。',
};

/** Options of the samplers DRY and XTC. */
export const samplers = {
  title: 'DRY and XTC',
  dry_multiplier: 'DRY multiplier',
  dry_multiplier_help:
    'Penalty for going on with a passage that was already written. 0 turns DRY off; 0.8 is usual.',
  dry_base: 'DRY base',
  dry_base_help: 'How much the penalty grows with each repeated token.',
  dry_allowed_length: 'DRY allowed length',
  dry_allowed_length_help: 'Longest repetition without a penalty, in tokens.',
  dry_penalty_last_n: 'DRY range',
  dry_penalty_last_n_help:
    'Recent tokens that are searched for repetitions. -1 searches all, 0 turns DRY off.',
  dry_sequence_breakers: 'DRY sequence breakers',
  dry_sequence_breakers_help:
    'Texts at which repetitions end. One per line; \\n stands for a line break.',
  xtc_probability: 'XTC probability',
  xtc_probability_help:
    'How often the most likely tokens are left out. 0 turns XTC off; 0.5 is usual.',
  xtc_threshold: 'XTC threshold',
  xtc_threshold_help:
    'Tokens from this probability on are left out, except the least likely of them. Above 0.5 none is.',
} as const;

import type { Messages } from '../types';

export const samplers: Messages['samplers'] = {
  title: 'DRY und XTC',
  dry_multiplier: 'DRY-Multiplikator',
  dry_multiplier_help:
    'Malus dafür, eine schon geschriebene Stelle fortzusetzen. 0 schaltet DRY aus; üblich ist 0,8.',
  dry_base: 'DRY-Basis',
  dry_base_help: 'Wie stark der Malus mit jedem wiederholten Token wächst.',
  dry_allowed_length: 'DRY: erlaubte Länge',
  dry_allowed_length_help: 'Längste Wiederholung ohne Malus, in Token.',
  dry_penalty_last_n: 'DRY-Reichweite',
  dry_penalty_last_n_help:
    'So viele letzte Token werden nach Wiederholungen durchsucht. -1 durchsucht alle, 0 schaltet DRY aus.',
  dry_sequence_breakers: 'DRY-Trenntexte',
  dry_sequence_breakers_help:
    'Texte, an denen Wiederholungen enden. Einer je Zeile; \\n steht für einen Zeilenumbruch.',
  xtc_probability: 'XTC-Wahrscheinlichkeit',
  xtc_probability_help:
    'Wie oft die wahrscheinlichsten Token ausgelassen werden. 0 schaltet XTC aus; üblich ist 0,5.',
  xtc_threshold: 'XTC-Schwelle',
  xtc_threshold_help:
    'Token ab dieser Wahrscheinlichkeit werden ausgelassen, bis auf das unwahrscheinlichste davon. Über 0,5 keines.',
};

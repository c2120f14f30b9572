import type { Messages } from '../types';

export const samplers: Messages['samplers'] = {
  title: 'DRY و XTC',
  dry_multiplier: 'مضاعِف DRY',
  dry_multiplier_help: 'عقوبة مواصلة مقطع سبق أن كُتب. القيمة 0 توقف DRY، والمعتاد 0.8.',
  dry_base: 'أساس DRY',
  dry_base_help: 'مقدار نمو العقوبة مع كل رمز مكرر.',
  dry_allowed_length: 'الطول المسموح في DRY',
  dry_allowed_length_help: 'أطول تكرار بلا عقوبة، بالرموز.',
  dry_penalty_last_n: 'مدى DRY',
  dry_penalty_last_n_help:
    'عدد آخر الرموز التي يُبحث فيها عن التكرار. القيمة ‎-1 تبحث فيها كلها، و0 توقف DRY.',
  dry_sequence_breakers: 'فواصل DRY',
  dry_sequence_breakers_help: 'نصوص ينتهي عندها التكرار. واحد في كل سطر، و\\n تعني سطرًا جديدًا.',
  xtc_probability: 'احتمال XTC',
  xtc_probability_help: 'كم مرة تُستبعد الرموز الأكثر احتمالًا. القيمة 0 توقف XTC، والمعتاد 0.5.',
  xtc_threshold: 'عتبة XTC',
  xtc_threshold_help:
    'تُستبعد الرموز من هذا الاحتمال فأعلى ما عدا أقلها احتمالًا. فوق 0.5 لا يُستبعد شيء.',
};

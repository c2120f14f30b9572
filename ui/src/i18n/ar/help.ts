import type { Messages } from '../types';

export const help: Messages['help'] = {
  title: 'المساعدة',
  search: 'اسأل أو ابحث',
  contents: 'كل المقالات',
  results: 'النتائج',
  related: 'انظر أيضًا',
  open: 'فتح «{name}»',
  source: 'من الدليل: {name}',
  maybe: 'ربما تقصد: {name}',
  more: 'اعرف المزيد',
  show_models: 'عرض النماذج',
};

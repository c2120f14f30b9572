import type { Messages } from '../types';

export const preview: Messages['preview'] = {
  open: 'معاينة',
  title: 'معاينة',
  close: 'إغلاق المعاينة',
  scripts: 'السماح بالبرامج النصية',
  about: 'لا يُحمَّل شيء من الشبكة ولا تعمل أي برامج نصية.',
  scripts_on:
    'تعمل البرامج النصية هنا بلا وصول إلى دردشاتك أو الشبكة. وقد يبطئ برنامج معيب النافذة.',
};

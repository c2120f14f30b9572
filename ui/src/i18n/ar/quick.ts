import type { Messages } from '../types';

export const quick: Messages['quick'] = {
  open_in_main: 'فتح في النافذة الرئيسية',
  on_this_computer: 'على هذا الحاسوب',
  no_model: 'لم يُختر نموذج',
  keys_note:
    'تفتح نافذة صغيرة فوق كل النوافذ، حتى إن كان Inglenook مخفيًا في علبة النظام. متوقفة إلى أن تحدد مفاتيح. في Wayland لا يمنح سطح المكتب البرامج مفاتيح من تلقاء نفسه: في إعدادات لوحة المفاتيح فيه، عيّن مفاتيح للأمر «inglenook inglenook://quick».',
};

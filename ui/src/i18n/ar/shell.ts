import type { Messages } from '../types';

export const shell: Messages['shell'] = {
  let_go: 'أفلته ليضاف إلى نماذجك',
  link_to: 'رابط إلى {host}',
  link_note: 'كتب نموذجٌ هذا العنوان. لم يُحمَّل منه شيء.',
  link_copy: 'نسخ العنوان',
  link_open: 'فتح في لسان جديد',

  find_anything: 'البحث عن أي شيء',
  find_what: 'ابحث عن دردشة أو رسالة أو نموذج أو أمر',
  found: 'النتائج',
  nothing_called: 'لا شيء باسم «{query}».',
  chats: 'الدردشات',
  messages: 'الرسائل',
  models: 'النماذج',
  commands: 'الأوامر',
  settings: 'الإعدادات',
  in_use: 'قيد الاستخدام',

  closing: 'ما زالت إجابة قيد الكتابة',
  closing_about: 'إن أغلقت الآن بقيت إلى حيث كُتبت. أو تنغلق النافذة من تلقاء نفسها حين تكتمل.',
  closing_now: 'إيقاف وإغلاق',
  closing_finish: 'إكمالها ثم الإغلاق',
  closing_stay: 'البقاء مفتوحا',
  closing_waits: 'ينغلق Inglenook حين تكتمل الإجابة.',

  tray_show: 'إظهار Inglenook',
  tray_quit: 'إنهاء',

  change_keys: 'تغييرها…',
  back_to_chat: 'العودة إلى الدردشة (Esc)',
  key: 'المفتاح',
  enter: 'دخول',

  preset_named: 'الإعداد المسبق «{name}»',
  settings_reset: {
    zero: 'لم يتغير أي إعداد',
    one: 'عاد إعداد واحد إلى أصله',
    two: 'عاد إعدادان إلى أصلهما',
    few: 'عادت {n} إعدادات إلى أصلها',
    many: 'عاد {n} إعدادًا إلى أصله',
    other: 'عاد {n} إعداد إلى أصله',
  },
};

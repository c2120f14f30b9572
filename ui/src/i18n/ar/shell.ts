import type { Messages } from '../types';

export const shell: Messages['shell'] = {
  let_go: 'أفلت للإضافة إلى نماذجك',
  link_to: 'رابط إلى {host}',
  link_note: 'تحقق من العنوان قبل فتحه. لم يُحمَّل منه شيء.',
  link_copy: 'نسخ العنوان',
  link_open: 'فتح الرابط',

  find_anything: 'البحث في كل شيء',
  find_what: 'ابحث في الدردشات والرسائل والنماذج والأوامر',
  found: 'النتائج',
  nothing_called: 'لا توجد نتائج لـ«{query}»',
  chats: 'الدردشات',
  messages: 'الرسائل',
  models: 'النماذج',
  commands: 'الأوامر',
  help: 'المساعدة',
  settings: 'الإعدادات',
  in_use: 'قيد الاستخدام',

  closing: 'ما زالت إجابة قيد الإنشاء',
  closing_about: 'أغلق الآن ليُحفظ ما كُتب حتى الآن، أو دع النافذة تُغلق حين تكتمل الإجابة.',
  closing_now: 'إيقاف وإغلاق',
  closing_finish: 'الإغلاق عند الاكتمال',
  closing_stay: 'إبقاؤها مفتوحة',
  closing_waits: 'سيُغلق Inglenook حين تكتمل الإجابة.',

  tray_show: 'إظهار Inglenook',
  tray_quit: 'إنهاء',

  change_keys: 'تغيير الاختصارات…',
  back_to_chat: 'العودة إلى الدردشة (Esc)',
  key: 'مفتاح API',
  enter: 'تسجيل الدخول',

  preset_named: 'الإعداد المسبق «{name}»',
  settings_reset: {
    zero: 'لم يتغير أي إعداد',
    one: 'أُعيد ضبط إعداد واحد',
    two: 'أُعيد ضبط إعدادين',
    few: 'أُعيد ضبط {n} إعدادات',
    many: 'أُعيد ضبط {n} إعدادًا',
    other: 'أُعيد ضبط {n} إعداد',
  },
};

import type { Messages } from '../types';

export const servers: Messages['servers'] = {
  title: 'خوادم أخرى',
  about:
    'خوادم بواجهة متوافقة مع OpenAI: ‏Inglenook آخر، أو vLLM، أو SGLang، أو llama.cpp، أو Ollama. تظهر نماذجها في القائمة نفسها مع نماذجك. وتغادر رسائلك إليها هذا الحاسوب، إلا إن كان الخادم يعمل عليه.',
  add: 'إضافة خادم…',
  name: 'الاسم',
  name_hint: 'محطة العمل',
  address: 'العنوان',
  key: 'مفتاح API (إن لزم)',
  key_hint: 'يُحفظ في سلسلة المفاتيح أو في ملف مشفّر',
  key_kept: 'مفتاح API في ملف مشفّر',
  key_keychain: 'مفتاح API في سلسلة مفاتيح النظام',
  key_environment: 'مفتاح API من {variable}',
  asking: 'جارٍ الاتصال…',
  test: 'اختبار الاتصال',
  switch_off: 'إيقاف',
  switch_on: 'تشغيل',
  off: 'متوقف',
  online: 'متصل',
  offline: 'غير متصل',
  leaves: 'يغادر هذا الحاسوب',
  leaves_about: 'تغادر الرسائل إلى هذا الخادم هذا الحاسوب',
  unencrypted: 'غير مشفّر (HTTP)',
  unencrypted_about: 'يستخدم العنوان http بدل https، وقد يقرأ غيرك على الشبكة رسائلك',
};

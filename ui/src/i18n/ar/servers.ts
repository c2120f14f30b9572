import type { Messages } from '../types';

export const servers: Messages['servers'] = {
  title: 'خوادم أخرى',
  about:
    'خوادم تتكلم بروتوكول OpenAI: ‏Inglenook آخر، أو vLLM، أو SGLang، أو llama.cpp، أو Ollama. تظهر نماذجها في القائمة نفسها مع نماذجك. وما تكتبه إليها يغادر هذا الحاسوب، إلا إن كانت تعمل عليه.',
  add: 'إضافة خادم…',
  name: 'الاسم',
  name_hint: 'محطة العمل',
  address: 'العنوان',
  key: 'المفتاح، إن طلبه',
  key_hint: 'يُحفظ في سلسلة المفاتيح أو مشفّرًا في ملف',
  key_kept: 'المفتاح في ملف مشفّر',
  key_keychain: 'المفتاح في سلسلة مفاتيح النظام',
  key_environment: 'المفتاح في {variable}',
  asking: 'يُسأل',
  test: 'اسأله من جديد',
  switch_off: 'إيقاف',
  switch_on: 'تشغيل',
  off: 'متوقف',
  up: 'يجيب',
  down: 'لا يجيب',
  leaves: 'يغادر هذا الحاسوب',
  leaves_about: 'ما يُسأل عنه يغادر هذا الحاسوب',
  readable: 'مقروء في طريقه',
  readable_about: 'يبدأ العنوان بـ http لا بـ https',
};

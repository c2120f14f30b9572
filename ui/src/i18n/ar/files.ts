import type { Messages } from '../types';

export const files: Messages['files'] = {
  attach: 'إرفاق ملفات',
  attached: 'الملفات المرفقة',
  of_message: 'ملفات هذه الرسالة',
  drop: 'أفلت هنا للإرفاق',
  drop_about: 'تُرفق ملفات النصوص والشيفرة و PDF و CSV برسالتك. وتُستورد ملفات تصدير الدردشات.',
  let_go: 'أفلت للإرفاق',

  gone: 'لم يعد متاحًا. أرفقه من جديد.',
  reading: 'جارٍ القراءة…',
  text: 'نص',
  markdown: 'Markdown',
  code: 'شيفرة',
  csv: 'CSV',
  pdf: 'PDF',
  searched: 'بُحث فيه',
  to_be_searched: 'يُبحث فيه عند الإرسال',
  named: '{name}: {detail}',
  remove: 'إزالة {name}',

  hidden: {
    zero: 'لا يحتوي {name} على محارف غير مرئية ({n}، {names}).',
    one: 'يحتوي {name} على محرف غير مرئي واحد ({names})، ويظهر للنموذج نصًا مرئيًا.',
    two: 'يحتوي {name} على محرفين غير مرئيين ({names})، ويظهران للنموذج نصًا مرئيًا.',
    few: 'يحتوي {name} على {n} محارف غير مرئية ({names})، وتظهر للنموذج نصًا مرئيًا.',
    many: 'يحتوي {name} على {n} محرفًا غير مرئي ({names})، وتظهر للنموذج نصًا مرئيًا.',
    other: 'يحتوي {name} على {n} محرف غير مرئي ({names})، وتظهر للنموذج نصًا مرئيًا.',
  },
  instruction: 'يحتوي {name} على تعليمات للنموذج: «{quote}».',
  partly_unreadable: 'غير مقروء جزئيًا',
  unreadable:
    '{name} غير مقروء جزئيًا: تعذّر فك نحو {percent}٪ من حروفه. راجع نصه، أو طبّق عليه التعرف على النص (OCR) وأرفق الناتج.',
  guessed: 'قُرئ {name} بترميز {encoding}. راجع نصه إن بدت الحروف خاطئة.',

  pasted_name: 'نص ملصق.txt',
  pasted: 'أُرفق النص الطويل الذي لصقته برسالتك ملفًا.',
  put_in: 'إدراج في الرسالة',

  sources: 'المصادر',
  all_sources: 'الكل ({n})',
  whole: 'الملف كله',
  page: 'الصفحة {page}',
  line: 'السطر {line}',
  lines: 'الأسطر {first}–{last}',

  content: 'نص الملف',
  part: '{size}، جزء من نصه',
  earlier: 'الجزء السابق',
  later: 'الجزء التالي',

  from_here: 'ملفات…',
  from_server: 'من {name}…',
  offered_by: 'موارد {name}',
  asking_server: 'جارٍ تحميل الموارد…',
  find_offered: 'بحث',
  nothing_offered: 'لا يقدّم هذا الخادم أي موارد.',
  by_address: 'بالعنوان',
  address: 'العنوان',
  attach_it: 'إرفاق',
  address_about: 'استبدل الكلمات بين الأقواس المعقوفة.',
};

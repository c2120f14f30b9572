import type { Messages } from '../types';

export const files: Messages['files'] = {
  attach: 'إرفاق ملفات',
  attached: 'الملفات المرفقة',
  of_message: 'ملفات هذه الرسالة',
  drop: 'أفلت للإرفاق',
  drop_about: 'تُرفق النصوص والشيفرة وملفات PDF و CSV برسالتك، وتُقرأ ملفات تصدير المحادثات.',
  let_go: 'أفلته لإرفاقه',

  reading: 'تجري القراءة…',
  text: 'نص',
  markdown: 'Markdown',
  code: 'شيفرة',
  csv: 'CSV',
  pdf: 'PDF',
  searched: 'بُحث فيه',
  to_be_searched: 'سيُبحث فيه',
  named: '{name}: {detail}',
  remove: 'إزالة {name}',

  hidden: {
    zero: 'ليس في {name} محارف خفية ({n}، {names}).',
    one: 'في {name} محرف خفي واحد ({names})، ويُعرض على النموذج كما هو.',
    two: 'في {name} محرفان خفيان ({names})، ويُعرضان على النموذج كما هما.',
    few: 'في {name} {n} محارف خفية ({names})، وتُعرض على النموذج كما هي.',
    many: 'في {name} {n} محرفًا خفيًا ({names})، وتُعرض على النموذج كما هي.',
    other: 'في {name} {n} محرف خفي ({names})، وتُعرض على النموذج كما هي.',
  },
  instruction: 'يخاطب {name} النموذج: «{quote}».',
  guessed: 'قُرئ {name} على أنه {encoding}: انظر في نصه إن كانت الحروف مهمة.',

  pasted_name: 'نص ملصق.txt',
  pasted: 'النص الطويل الذي ألصقته يُرفق برسالتك ملفًا.',
  put_in: 'ضعه في الرسالة',

  sources: 'المصادر',
  all_sources: 'الكل ({n})',
  whole: 'الملف كله',
  page: 'الصفحة {page}',
  line: 'السطر {line}',
  lines: 'الأسطر {first}–{last}',

  content: 'نص الملف',
  part: '{size}، جزء من نصه',
  earlier: 'ما قبله',
  later: 'ما بعده',

  from_here: 'ملفات…',
  from_server: 'من {name}…',
  offered_by: 'ما يقدّمه {name}',
  asking_server: 'يُسأل الخادم…',
  find_offered: 'بحث',
  nothing_offered: 'لا يقدّم شيئًا للقراءة.',
  by_address: 'بالعنوان',
  address: 'العنوان',
  attach_it: 'إرفاق',
  address_about: 'استبدل الكلمات بين الأقواس المعقوفة.',
};

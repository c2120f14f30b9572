/** The settings of how the window looks and begins, of texts that the user writes once, and of its server. */
import type { Catalogue } from '../types';

export const look: Catalogue['settings'] = {
  start_with: {
    label: 'الفتح عند البدء',
    help: 'ما تعرضه النافذة عند فتحها.',
    options: { new: 'دردشة جديدة', last: 'آخر دردشة مفتوحة' },
  },
  accent: {
    label: 'لون التمييز',
    help: 'لون الأزرار والروابط والعناصر المحددة.',
    options: {
      ember: 'جمري',
      blue: 'أزرق',
      green: 'أخضر',
      violet: 'بنفسجي',
      rose: 'وردي',
      gray: 'رمادي',
    },
  },
  text_size: {
    label: 'حجم النص',
    help: 'حجم كل النصوص. تحتفظ بقية أجزاء النافذة بحجمها.',
    options: { small: 'صغير', normal: 'عادي', large: 'كبير', larger: 'كبير جدًا' },
  },
  code_wrap: {
    label: 'التفاف أسطر الشيفرة',
    help: 'يلف الأسطر الطويلة في كتل الشيفرة بدل التمرير. ولكل كتلة زر لذلك أيضًا.',
  },
  instructions: {
    label: 'التعليمات الافتراضية',
    help: 'موجّه النظام للدردشات الجديدة. إن كانت للدردشة أو الإعداد المسبق تعليمات خاصة فإنها تُستخدم بدلًا منها.',
    placeholder: 'مثلًا: أجب بإيجاز.',
  },
  prompts: {
    label: 'موجّهاتك',
    help: 'نصوص يضعها مربع الرسالة: اكتب / ثم اسمًا.',
  },
  server_port: {
    label: 'المنفذ',
    help: 'تصل البرامج إلى الخادم عبر هذا المنفذ على هذا الحاسوب.',
  },
  server_devices: {
    label: 'السماح للأجهزة الأخرى',
    help: 'يمكن للهواتف والحواسيب في شبكتك الاتصال بالمفتاح. الاتصال غير مشفّر (HTTP)، فشغّله في الشبكات التي تثق بها فقط.',
  },
  server_start: {
    label: 'التشغيل مع النافذة',
    help: 'يشغّل الخادم كلما فُتحت النافذة.',
  },
};

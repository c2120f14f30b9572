import type { Messages } from '../types';

export const serving: Messages['serving'] = {
  start: 'تشغيل الخادم',
  stop: 'إيقاف الخادم',
  restart: 'إعادة تشغيل الخادم',
  stale: 'تغيّرت الإعدادات منذ تشغيل الخادم.',
  key: 'المفتاح',
  show: 'إظهار',
  hide: 'إخفاء',
  renew: 'مفتاح جديد…',
  renew_warning: 'يتوقف المفتاح القديم فورًا. تحتاج البرامج والأجهزة إلى المفتاح الجديد.',
  qr_label: 'رمز QR بالعنوان والمفتاح لجهاز آخر',
  devices_reached: 'امسح الرمز بهاتف في الشبكة نفسها، أو افتح {url} وأدخل المفتاح.',
  devices_warning: 'من لديه هذا الرمز يستطيع قراءة دردشاتك والكتابة فيها. الاتصال غير مشفّر.',
  devices_none: 'هذا الحاسوب غير متصل بشبكة.',
  requests: 'أحدث الطلبات',
  requests_none: 'لا طلبات بعد.',
  requests_open: 'قيد التنفيذ',
};

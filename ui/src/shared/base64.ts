import { t } from '../i18n';

/** The bytes of a file as base64, as calls carry them. */
export function asBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(new Error(t('chat.unreadable', { name: file.name })));
    reader.readAsDataURL(file);
  });
}

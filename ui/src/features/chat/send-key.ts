/** Decides whether a key press sends the message. */

/** Key code of an input method in use. `isComposing` alone misses WebKit. */
const COMPOSING = 229;

type Press = Pick<
  KeyboardEvent,
  'key' | 'shiftKey' | 'ctrlKey' | 'metaKey' | 'altKey' | 'isComposing' | 'keyCode'
>;

export function sends(event: Press, sendKey: string, mac: boolean): boolean {
  if (event.key !== 'Enter' || event.isComposing || event.keyCode === COMPOSING) return false;
  if (event.shiftKey || event.altKey) return false;
  const mod = mac ? event.metaKey : event.ctrlKey;
  return sendKey === 'mod_enter' ? mod : true;
}

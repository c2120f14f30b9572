/** Decides whether a key press sends the message. */
import { isComposing } from '../../shared/composition';

type Press = Pick<
  KeyboardEvent,
  'key' | 'shiftKey' | 'ctrlKey' | 'metaKey' | 'altKey' | 'isComposing' | 'keyCode'
>;

export function sends(event: Press, sendKey: string, mac: boolean): boolean {
  if (event.key !== 'Enter' || isComposing(event)) return false;
  if (event.shiftKey || event.altKey) return false;
  const mod = mac ? event.metaKey : event.ctrlKey;
  return sendKey === 'mod_enter' ? mod : true;
}

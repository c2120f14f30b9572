/** Chooses the transport for this page. */
import type { Backend } from './backend';
import { HttpBackend, takeKey } from './http';
import { QuickBackend, TauriBackend, inWindow } from './tauri';

/** Whether this page is the quick window. */
export const isQuickWindow = (): boolean =>
  new URLSearchParams(location.search).get('window') === 'quick';

export function connect(): Backend {
  if (!inWindow()) return new HttpBackend(takeKey());
  return isQuickWindow() ? new QuickBackend() : new TauriBackend();
}

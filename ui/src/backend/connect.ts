/** Chooses the transport for this page. */
import type { Backend } from './backend';
import { HttpBackend, takeKey } from './http';
import { TauriBackend, inWindow } from './tauri';

export function connect(): Backend {
  return inWindow() ? new TauriBackend() : new HttpBackend(takeKey());
}

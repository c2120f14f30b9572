/** The settings as rows; every control in the page is made from one. */
import { asErrorInfo, type Backend } from '../backend/backend';
import type { AppEvent, ErrorInfo, SettingRow } from '../backend/bindings';

export class SettingsState {
  rows = $state.raw<readonly SettingRow[]>([]);
  /** What went wrong with a row last, by key. */
  errors = $state.raw<Readonly<Record<string, ErrorInfo | undefined>>>({});

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.rows = await this.#backend.call('settings_list', {});
  }

  text(key: string, fallback: string): string {
    const value = this.rows.find((row) => row.key === key)?.value;
    return typeof value === 'string' ? value : fallback;
  }

  apply(event: AppEvent): void {
    if (event.type === 'setting_changed') this.#put(event.row);
  }

  set(key: string, value: unknown): Promise<void> {
    return this.#change(key, () => this.#backend.call('settings_set', { key, value }));
  }

  reset(key: string): Promise<void> {
    return this.#change(key, () => this.#backend.call('settings_reset', { key }));
  }

  async #change(key: string, work: () => Promise<SettingRow>): Promise<void> {
    try {
      this.#put(await work());
      this.errors = { ...this.errors, [key]: undefined };
    } catch (thrown) {
      this.errors = { ...this.errors, [key]: asErrorInfo(thrown) };
    }
  }

  #put(row: SettingRow): void {
    this.rows = this.rows.map((it) => (it.key === row.key ? row : it));
  }
}

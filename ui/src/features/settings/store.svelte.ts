/** The settings as rows; every control is generated from one. */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { AppEvent, ErrorInfo, SettingRow } from '../../backend/bindings';

export class SettingsState {
  readonly #backend: Backend;
  rows = $state.raw<readonly SettingRow[]>([]);
  /** Last error of each row, by key. */
  errors = $state.raw<Readonly<Record<string, ErrorInfo | undefined>>>({});

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.rows = await this.#backend.call('settings_list', {});
  }

  /** Rows of the settings page. Keyboard shortcuts have their own panel. */
  readonly shown = $derived(
    this.rows.filter(
      (row) => row.kind.kind !== 'keys' && (row.key !== 'zoom' || this.#backend.setZoom),
    ),
  );

  find(key: string): SettingRow | undefined {
    return this.rows.find((row) => row.key === key);
  }

  on(key: string): boolean {
    return this.find(key)?.value === true;
  }

  number(key: string, fallback: number): number {
    const value = this.find(key)?.value;
    return typeof value === 'number' ? value : fallback;
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

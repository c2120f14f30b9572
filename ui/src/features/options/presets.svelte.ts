/** The presets, by name, as the application said last. */
import type { Backend } from '../../backend/backend';
import type {
  AppEvent,
  ConversationOptions,
  CompactionStrategy,
  Preset,
} from '../../backend/bindings';

/** What a conversation has of its own. */
export interface Own {
  readonly options: ConversationOptions;
  readonly compression: CompactionStrategy | null;
}

export const NOTHING: Own = {
  options: {
    system_prompt: null,
    temperature: null,
    top_k: null,
    top_p: null,
    min_p: null,
    repeat_penalty: null,
    seed: null,
    max_tokens: null,
    tools: null,
    preset: null,
  },
  compression: null,
};

const comparable = ({ options, compression }: Own): string => {
  const keys = Object.keys(NOTHING.options) as (keyof ConversationOptions)[];
  const kept = keys.filter((key) => key !== 'preset').map((key) => options[key] ?? null);
  return JSON.stringify([...kept, compression ?? null]);
};

/** Whether both say the same, whatever preset they began as. */
export const same = (a: Own, b: Own): boolean => comparable(a) === comparable(b);

export class PresetsState {
  list = $state.raw<readonly Preset[]>([]);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('presets_list', {});
  }

  find(id: string | null | undefined): Preset | undefined {
    return this.list.find((it) => it.id === id);
  }

  /** The one after `id`, round and round; null: there is none. */
  after(id: string | null): Preset | null {
    const at = this.list.findIndex((it) => it.id === id);
    return this.list[(at + 1) % Math.max(1, this.list.length)] ?? null;
  }

  apply(event: AppEvent): void {
    if (event.type === 'preset_changed') this.#put(event.preset);
    else if (event.type === 'preset_removed') this.#drop(event.id);
  }

  /** A new one, or (with an id) another content for that one. */
  async save(id: string | null, name: string, { options, compression }: Own): Promise<Preset> {
    const args = { id, name, options: { ...options, preset: null }, compression };
    const preset = await this.#backend.call('preset_save', args);
    this.#put(preset);
    return preset;
  }

  async remove(id: string): Promise<void> {
    await this.#backend.call('preset_remove', { id });
    this.#drop(id);
  }

  async import(text: string): Promise<Preset> {
    const preset = await this.#backend.call('preset_import', { text });
    this.#put(preset);
    return preset;
  }

  #put(preset: Preset): void {
    const rest = this.list.filter((it) => it.id !== preset.id);
    this.list = [...rest, preset].sort((a, b) => a.name.localeCompare(b.name));
  }

  #drop(id: string): void {
    this.list = this.list.filter((it) => it.id !== id);
  }
}

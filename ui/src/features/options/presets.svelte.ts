/** Presets, mirrored from the application, sorted by name. */
import type { Backend } from '../../backend/backend';
import type {
  AppEvent,
  ConversationOptions,
  CompactionStrategy,
  Preset,
} from '../../backend/bindings';

/** Options of one chat. */
export interface ChatOptions {
  readonly options: ConversationOptions;
  readonly compression: CompactionStrategy | null;
}

export const EMPTY_OPTIONS: ChatOptions = {
  options: {
    system_prompt: null,
    temperature: null,
    top_k: null,
    top_p: null,
    min_p: null,
    repeat_penalty: null,
    seed: null,
    max_tokens: null,
    presence_penalty: null,
    frequency_penalty: null,
    samplers: null,
    stop: null,
    json_schema: null,
    thinking: null,
    reasoning_effort: null,
    image_detail: null,
    tools: null,
    preset: null,
    memory: null,
    project: null,
  },
  compression: null,
};

const comparable = ({ options, compression }: ChatOptions): string => {
  const keys = Object.keys(EMPTY_OPTIONS.options) as (keyof ConversationOptions)[];
  const origins: readonly string[] = ['preset', 'project'];
  const kept = keys.filter((key) => !origins.includes(key)).map((key) => options[key] ?? null);
  return JSON.stringify([...kept, compression ?? null]);
};

/** Compares options regardless of the preset they started from. */
export const sameOptions = (a: ChatOptions, b: ChatOptions): boolean =>
  comparable(a) === comparable(b);

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

  /** Returns the preset after `id`, cyclically; null if there is none. */
  after(id: string | null): Preset | null {
    const at = this.list.findIndex((it) => it.id === id);
    return this.list[(at + 1) % Math.max(1, this.list.length)] ?? null;
  }

  apply(event: AppEvent): void {
    if (event.type === 'preset_changed') this.#put(event.preset);
    else if (event.type === 'preset_removed') this.#drop(event.id);
  }

  /** Creates a preset, or overwrites the one with this id. */
  async save(
    id: string | null,
    name: string,
    { options, compression }: ChatOptions,
  ): Promise<Preset> {
    const args = { id, name, options: { ...options, preset: null }, compression };
    const preset = await this.#backend.call('preset_save', args);
    this.#put(preset);
    return preset;
  }

  /** Creates a preset that has nothing but instructions. */
  saveInstructions(name: string, instructions: string): Promise<Preset> {
    const options = { ...EMPTY_OPTIONS.options, system_prompt: instructions };
    return this.save(null, name, { options, compression: null });
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

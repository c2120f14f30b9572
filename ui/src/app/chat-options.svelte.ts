/**
 * Options of the open chat: system prompt, sampling, compaction strategy. Before the first message is sent,
 * they live here; afterwards the application stores them.
 */
import type { Backend } from '../backend/backend';
import type { ConversationOptions, Preset } from '../backend/bindings';
import type { SettingsState } from '../features/settings/store.svelte';
import type { ChatState } from '../features/chat/store.svelte';
import {
  EMPTY_OPTIONS,
  sameOptions,
  type ChatOptions,
  type PresetsState,
} from '../features/options/presets.svelte';

export class ChatOptionsState {
  readonly #backend: Backend;
  readonly #chat: ChatState;
  readonly #presets: PresetsState;
  readonly #settings: Pick<SettingsState, 'text'>;
  #unsent = $state.raw<ChatOptions>(EMPTY_OPTIONS);

  /** Null while the conversation is loading. */
  readonly current = $derived.by((): ChatOptions | null => {
    if (this.#chat.id === null) return this.#unsent;
    const { options, compression } = this.#chat;
    return options && { options, compression };
  });
  readonly preset = $derived.by(() => this.#presets.find(this.current?.options.preset));
  /** Whether the options differ from the preset they started from. */
  readonly isChanged = $derived.by(() => {
    const { current, preset } = this;
    return current !== null && !sameOptions(this.#ownOf(current), preset ?? EMPTY_OPTIONS);
  });
  /** Whether any option is set. */
  readonly isSet = $derived.by(
    () => this.current !== null && !sameOptions(this.#ownOf(this.current), EMPTY_OPTIONS),
  );
  /** The system prompt that the next message goes with. A new chat without one begins with the default instructions. */
  readonly systemPrompt = $derived.by(() => {
    const own = this.current?.options.system_prompt ?? null;
    return own ?? (this.#chat.id === null ? this.#instructions : '');
  });

  constructor(
    backend: Backend,
    chat: ChatState,
    presets: PresetsState,
    settings: Pick<SettingsState, 'text'>,
  ) {
    this.#backend = backend;
    this.#chat = chat;
    this.#presets = presets;
    this.#settings = settings;
  }

  get #instructions(): string {
    return this.#settings.text('instructions', '');
  }

  /** What the chat sets itself: the default instructions are not its own. */
  #ownOf(all: ChatOptions): ChatOptions {
    const { system_prompt } = all.options;
    if (system_prompt === null || system_prompt !== this.#instructions) return all;
    return { ...all, options: { ...all.options, system_prompt: null } };
  }

  /** Options for the first message of a new chat. */
  get unsent(): ChatOptions {
    return this.#unsent;
  }

  reset(): void {
    this.#unsent = EMPTY_OPTIONS;
  }

  set<K extends keyof ConversationOptions>(key: K, value: ConversationOptions[K]): Promise<void> {
    const { current } = this;
    if (!current) return Promise.resolve();
    return this.save({ ...current, options: { ...current.options, [key]: value } });
  }

  /** Empty: none, also where there are default instructions. */
  setSystemPrompt(text: string): Promise<void> {
    const isDefault = this.#chat.id === null && text === this.#instructions;
    const none = this.#chat.id === null ? '' : null;
    return this.set('system_prompt', isDefault ? null : text === '' ? none : text);
  }

  /** Sets an option that the settings have too; a value that is the settings' own is not stored. */
  setLikeSetting(key: 'thinking' | 'reasoning_effort', value: string): Promise<void> {
    return this.set(key, value === this.#settings.text(key, 'model') ? null : value);
  }

  /** Applies a preset; null returns to the settings. */
  applyPreset(preset: Preset | null): Promise<void> {
    const project = this.current?.options.project ?? null;
    if (preset === null) {
      const system_prompt = this.#chat.id === null ? null : this.#instructions || null;
      const options = { ...EMPTY_OPTIONS.options, system_prompt, project };
      return this.save({ ...EMPTY_OPTIONS, options });
    }
    const { options, compression } = preset;
    return this.save({ options: { ...options, preset: preset.id, project }, compression });
  }

  async save(own: ChatOptions): Promise<void> {
    const { id } = this.#chat;
    if (id === null) {
      this.#unsent = own;
      return;
    }
    const before = this.#chat.compression;
    await this.#backend.call('conversation_options', { id, options: own.options });
    if (own.compression !== before) {
      const strategy = own.compression;
      await this.#backend.call('conversation_set_compression', { id, strategy });
    }
    if (this.#chat.id === id) this.#chat.setOptions(own.options, own.compression);
  }
}

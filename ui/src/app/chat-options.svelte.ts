/**
 * Options of the open chat: system prompt, sampling, compaction strategy. Before the first message is sent,
 * they live here; afterwards the application stores them.
 */
import type { Backend } from '../backend/backend';
import type { ConversationOptions, Preset } from '../backend/bindings';
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
    return current !== null && !sameOptions(current, preset ?? EMPTY_OPTIONS);
  });
  /** Whether any option is set. */
  readonly isSet = $derived.by(
    () => this.current !== null && !sameOptions(this.current, EMPTY_OPTIONS),
  );

  constructor(backend: Backend, chat: ChatState, presets: PresetsState) {
    this.#backend = backend;
    this.#chat = chat;
    this.#presets = presets;
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

  /** Applies a preset; null returns to the settings. */
  applyPreset(preset: Preset | null): Promise<void> {
    if (preset === null) return this.save(EMPTY_OPTIONS);
    const { options, compression } = preset;
    return this.save({ options: { ...options, preset: preset.id }, compression });
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

/**
 * What the chat on screen has of its own: its system prompt, its sampling, what becomes of it when it grows long.
 * A chat without a message keeps it here until its first one is sent.
 */
import type { Backend } from '../backend/backend';
import type { ConversationOptions, Preset } from '../backend/bindings';
import type { ChatState } from '../features/chat/store.svelte';
import { NOTHING, same, type Own, type PresetsState } from '../features/options/presets.svelte';

export class OwnOptions {
  readonly #backend: Backend;
  readonly #chat: ChatState;
  readonly #presets: PresetsState;
  #fresh = $state.raw<Own>(NOTHING);

  /** Null: the conversation is being opened. */
  readonly now = $derived.by((): Own | null => {
    if (this.#chat.id === null) return this.#fresh;
    const { options, compression } = this.#chat;
    return options && { options, compression };
  });
  readonly preset = $derived.by(() => this.#presets.find(this.now?.options.preset));
  /** It says something else than the preset it began as. */
  readonly changed = $derived.by(() => {
    const { now, preset } = this;
    return now !== null && !same(now, preset ?? NOTHING);
  });
  /** It says something at all. */
  readonly says = $derived.by(() => this.now !== null && !same(this.now, NOTHING));

  constructor(backend: Backend, chat: ChatState, presets: PresetsState) {
    this.#backend = backend;
    this.#chat = chat;
    this.#presets = presets;
  }

  /** What the first message of a chat is sent with. */
  get fresh(): Own {
    return this.#fresh;
  }

  forget(): void {
    this.#fresh = NOTHING;
  }

  set<K extends keyof ConversationOptions>(key: K, value: ConversationOptions[K]): Promise<void> {
    const { now } = this;
    if (!now) return Promise.resolve();
    return this.put({ ...now, options: { ...now.options, [key]: value } });
  }

  /** As the preset says; null: as the settings say. */
  begin(preset: Preset | null): Promise<void> {
    if (preset === null) return this.put(NOTHING);
    const { options, compression } = preset;
    return this.put({ options: { ...options, preset: preset.id }, compression });
  }

  async put(own: Own): Promise<void> {
    const { id } = this.#chat;
    if (id === null) {
      this.#fresh = own;
      return;
    }
    const before = this.#chat.compression;
    await this.#backend.call('conversation_options', { id, options: own.options });
    if (own.compression !== before) {
      const strategy = own.compression;
      await this.#backend.call('conversation_set_compression', { id, strategy });
    }
    if (this.#chat.id === id) this.#chat.owns(own.options, own.compression);
  }
}

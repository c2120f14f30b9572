/** The user's notes, mirrored from the application. Nothing becomes a note unless the user saves it. */
import type { Backend } from '../../backend/backend';
import type { AppEvent, MemoryShare, Note } from '../../backend/bindings';

/** What a dialog shows of a text before it offers to keep it. */
const MAX_OFFERED = 1000;

/** A text of a chat that may become a note. */
export interface OfferedNote {
  readonly text: string;
  /** Its conversation. */
  readonly source: string | null;
}

export class MemoryState {
  list = $state.raw<readonly Note[]>([]);
  loaded = $state(false);
  /** The text that the user is asked about; null: none. */
  offered = $state.raw<OfferedNote | null>(null);
  /** The block of prompts that has the notes; null: there are none, or it is not counted. */
  share = $state.raw<MemoryShare | null>(null);

  readonly #backend: Backend;
  #question = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load(): Promise<void> {
    this.list = await this.#backend.call('notes_list', {});
    this.loaded = true;
  }

  apply(event: AppEvent): void {
    if (event.type === 'notes_changed') this.list = event.notes;
  }

  /** Shows a text of a chat in a dialog that can keep it. */
  offer(text: string, source: string | null): void {
    this.offered = { text: text.trim().slice(0, MAX_OFFERED), source };
  }

  /** Adds a note, or changes the one with this id. */
  async save(text: string, id: string | null = null, source: string | null = null): Promise<void> {
    const note = await this.#backend.call('note_save', { id, text, source });
    const known = this.list.some((it) => it.id === note.id);
    this.list = known
      ? this.list.map((it) => (it.id === note.id ? note : it))
      : [...this.list, note];
  }

  async remove(id: string): Promise<void> {
    await this.#backend.call('note_remove', { id });
    this.list = this.list.filter((it) => it.id !== id);
  }

  /** Counts what the notes take of a model's context. Without a count the page shows none. */
  async measure(model: string | null): Promise<void> {
    const question = ++this.#question;
    const options = { conversation: null, text: '', model };
    const parts = await this.#backend.call('context_parts', options).catch(() => null);
    if (question === this.#question) this.share = parts?.memory ?? null;
  }
}

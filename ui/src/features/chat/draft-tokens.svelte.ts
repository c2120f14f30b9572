/**
 * How many tokens sending the draft would cost, as the application counts it. Asked for a moment after the
 * last key, one question at a time; an answer to an older question is dropped.
 */
import { asErrorInfo, type Backend } from '../../backend/backend';
import type {
  Attachment,
  ConversationOptions,
  DraftCount,
  ErrorInfo,
} from '../../backend/bindings';

const PAUSE_MS = 150;

export interface Draft {
  readonly conversation: string | null;
  readonly text: string;
  readonly model: string | null;
  /** Files that would go with it. */
  readonly attachments?: string[];
  /** What a chat that has no message yet will have of its own. */
  readonly options?: ConversationOptions | null;
}

export class DraftCountState {
  /** Null: not known, or not worth a word. */
  count = $state.raw<DraftCount | null>(null);
  /** Its files can't go with it: why. */
  problem = $state.raw<ErrorInfo | null>(null);

  readonly #backend: Backend;
  #wanted: Draft | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking = false;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  want(draft: Draft): void {
    this.#wanted = draft;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#ask(), PAUSE_MS);
  }

  /** Nothing is worth asking for. */
  rest(): void {
    clearTimeout(this.#timer);
    this.#wanted = null;
    [this.count, this.problem] = [null, null];
  }

  /** A file with what it costs, where that is known. */
  priced(file: Attachment): Attachment {
    const { count } = this;
    const cost = count?.attachments.find((it) => it.id === file.id);
    if (!count || !cost) return file;
    const is_about = count.is_about ?? false;
    return { ...file, whole: cost.whole, tokens: cost.tokens_whole, is_about };
  }

  async #ask(): Promise<void> {
    if (this.#asking || this.#wanted === null) return;
    this.#asking = true;
    const draft = this.#wanted;
    try {
      const count = await this.#backend.call('draft_count', draft);
      if (this.#wanted === draft) [this.count, this.problem] = [count, null];
    } catch (thrown) {
      // Sending says what is wrong; a count that can't be had is only missing. What is wrong with files is told at once.
      const error = asErrorInfo(thrown);
      const problem = error.code.startsWith('attachment.') ? error : null;
      if (this.#wanted === draft) [this.count, this.problem] = [null, problem];
    } finally {
      this.#asking = false;
    }
    if (this.#wanted !== draft) await this.#ask();
  }
}

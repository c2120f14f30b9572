/**
 * Files chosen for messages that are not sent yet, per conversation. The application has read them and keeps their
 * text; what is here is kept for as long as this window or tab lives, as the draft that they go with.
 */
import { SvelteMap } from 'svelte/reactivity';
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { Attachment, ErrorInfo, Source } from '../../backend/bindings';
import { t } from '../../i18n';

export interface Chosen {
  readonly key: number;
  readonly name: string;
  /** Null: not known yet. */
  readonly bytes: number | null;
  readonly state: 'reading' | 'ready' | 'failed';
  readonly file: Attachment | null;
  readonly error: ErrorInfo | null;
}

/** What is looked at: a file, and a part of it. */
export interface Looked {
  readonly id: string;
  readonly name: string;
  readonly passage: Source['passage'] | null;
}

const PREFIX = 'inglenook.files.';
const keyOf = (conversation: string | null): string => PREFIX + (conversation ?? 'new');

export class Attached {
  /** The file whose text is on screen. */
  looked = $state.raw<Looked | null>(null);

  readonly #chosen = new SvelteMap<string, readonly Chosen[]>();
  readonly #backend: Backend;
  #next = 1;

  constructor(backend: Backend) {
    this.#backend = backend;
    for (const key of Object.keys(sessionStorage).filter((it) => it.startsWith(PREFIX))) {
      const files = JSON.parse(sessionStorage.getItem(key) ?? '[]') as Attachment[];
      this.#chosen.set(key, this.#ready(files));
    }
  }

  of(conversation: string | null): readonly Chosen[] {
    return this.#chosen.get(keyOf(conversation)) ?? [];
  }

  /** Those that were read. */
  files(conversation: string | null): readonly Attachment[] {
    return this.of(conversation).flatMap((it) => it.file ?? []);
  }

  /** Nothing is still being read, and nothing failed that the user may believe to go with the message. */
  isReady(conversation: string | null): boolean {
    return this.of(conversation).every((it) => it.state === 'ready');
  }

  /** As the page has it. */
  addFile(conversation: string | null, file: File): Promise<number> {
    return this.#add(conversation, file.name, file.size, async () => {
      const base64 = await asBase64(file);
      return this.#backend.call('attachment_add', { name: file.name, base64 });
    });
  }

  /** By its place on this computer. */
  addPath(conversation: string | null, path: string): Promise<number> {
    const name = path.split(/[/\\]/).at(-1) ?? path;
    return this.#add(conversation, name, null, () =>
      this.#backend.call('attachment_add_path', { path }),
    );
  }

  /** What a server of tools offers to be read. */
  addResource(
    conversation: string | null,
    { id, uri, name }: { id: string; uri: string; name: string },
  ): Promise<number> {
    return this.#add(conversation, name, null, () =>
      this.#backend.call('tool_resource_attach', { id, uri }),
    );
  }

  /** A text that was pasted; the key that it is removed by. */
  addText(conversation: string | null, name: string, text: string): Promise<number> {
    return this.addFile(conversation, new File([text], name, { type: 'text/plain' }));
  }

  /** Files of a message that is not sent after all. */
  putBack(conversation: string | null, files: readonly Attachment[]): void {
    this.#set(conversation, [...this.of(conversation), ...this.#ready(files)]);
  }

  remove(conversation: string | null, key: number): void {
    const gone = this.of(conversation).find((it) => it.key === key);
    this.#set(
      conversation,
      this.of(conversation).filter((it) => it.key !== key),
    );
    // What is kept of it goes at once; if that can't be said, it goes with the application.
    if (gone?.file)
      void this.#backend.call('attachment_remove', { id: gone.file.id }).catch(() => undefined);
  }

  /** Whether the application still has them: one that was started anew has not, and each chip says so by its name. */
  async check(): Promise<void> {
    const kept = [...this.#chosen].flatMap(([key, list]) =>
      list.map((chosen) => ({ key, chosen })),
    );
    await Promise.all(
      kept.map(async ({ key, chosen }) => {
        if (chosen.file === null) return;
        try {
          await this.#backend.call('attachment_text', { id: chosen.file.id, at: null });
        } catch (thrown) {
          // Who can't be reached may have it still.
          if (asErrorInfo(thrown).code.startsWith('ui.')) return;
          const error = { code: 'attachment.gone', message: t('files.gone'), remedy: '' };
          this.#change(key, chosen.key, { state: 'failed', file: null, error });
        }
      }),
    );
  }

  /** They went with a message. */
  forget(conversation: string | null): void {
    this.#set(conversation, []);
  }

  /** Shows a file's text. */
  look(file: { readonly id: string; readonly name: string }, passage?: Source['passage']): void {
    this.looked = { id: file.id, name: file.name, passage: passage ?? null };
  }

  #ready(files: readonly Attachment[]): Chosen[] {
    return files.map((file) => {
      const { name, bytes } = file;
      return { key: this.#next++, name, bytes, state: 'ready', file, error: null };
    });
  }

  async #add(
    conversation: string | null,
    name: string,
    bytes: number | null,
    read: () => Promise<Attachment>,
  ): Promise<number> {
    const key = this.#next++;
    const reading: Chosen = { key, name, bytes, state: 'reading', file: null, error: null };
    this.#set(conversation, [...this.of(conversation), reading]);
    try {
      const file = await read();
      const { name, bytes } = file;
      this.#change(keyOf(conversation), key, { name, bytes, state: 'ready', file });
    } catch (thrown) {
      this.#change(keyOf(conversation), key, { state: 'failed', error: asErrorInfo(thrown) });
    }
    return key;
  }

  #change(place: string, key: number, change: Partial<Chosen>): void {
    const list = this.#chosen.get(place) ?? [];
    this.#put(
      place,
      list.map((it) => (it.key === key ? { ...it, ...change } : it)),
    );
  }

  #set(conversation: string | null, chosen: readonly Chosen[]): void {
    this.#put(keyOf(conversation), chosen);
  }

  #put(place: string, chosen: readonly Chosen[]): void {
    this.#chosen.set(place, chosen);
    const files = chosen.flatMap((it) => it.file ?? []);
    if (files.length === 0) sessionStorage.removeItem(place);
    else sessionStorage.setItem(place, JSON.stringify(files));
  }
}

export function asBase64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(new Error(t('chat.unreadable', { name: file.name })));
    reader.readAsDataURL(file);
  });
}

/**
 * Attachments of unsent messages, by conversation. The application has read them and keeps their text; this
 * list lives in session storage, like the drafts.
 */
import { SvelteMap } from 'svelte/reactivity';
import { asErrorInfo, type Backend } from '../../backend/backend';
import type { Attachment, ErrorInfo, Citation } from '../../backend/bindings';
import { asBase64 } from '../../shared/base64';
import { t } from '../../i18n';

export interface PendingFile {
  readonly key: number;
  readonly name: string;
  /** Null: unknown yet. */
  readonly bytes: number | null;
  readonly state: 'reading' | 'ready' | 'failed';
  readonly file: Attachment | null;
  readonly error: ErrorInfo | null;
}

/** The file on screen, and the cited passage in it. */
export interface ViewedFile {
  readonly id: string;
  readonly name: string;
  readonly passage: Citation['passage'] | null;
}

const PREFIX = 'inglenook.files.';
const keyOf = (conversation: string | null): string => PREFIX + (conversation ?? 'new');

export class AttachmentsState {
  /** The file whose text is shown; null: none. */
  viewed = $state.raw<ViewedFile | null>(null);
  /** The image that is shown; null: none. */
  viewedImage = $state.raw<Pick<ViewedFile, 'id' | 'name'> | null>(null);

  readonly #pending = new SvelteMap<string, readonly PendingFile[]>();
  readonly #backend: Backend;
  #next = 1;

  constructor(backend: Backend) {
    this.#backend = backend;
    for (const key of Object.keys(sessionStorage).filter((it) => it.startsWith(PREFIX))) {
      const files = JSON.parse(sessionStorage.getItem(key) ?? '[]') as Attachment[];
      this.#pending.set(key, this.#ready(files));
    }
  }

  of(conversation: string | null): readonly PendingFile[] {
    return this.#pending.get(keyOf(conversation)) ?? [];
  }

  /** Attachments that were read. */
  files(conversation: string | null): readonly Attachment[] {
    return this.of(conversation).flatMap((it) => it.file ?? []);
  }

  /** Whether the message can be sent: no file is being read, and none failed. */
  isReady(conversation: string | null): boolean {
    return this.of(conversation).every((it) => it.state === 'ready');
  }

  /** Whether a draft has something to send, in words, images or scanned pages, and its files are ready. */
  canSend(conversation: string | null, draft: string): boolean {
    const hasImage = this.files(conversation).some((it) => it.kind === 'image' || it.scanned);
    return (draft.trim() !== '' || hasImage) && this.isReady(conversation);
  }

  /** Adds a file from the page. Returns its key. */
  addFile(conversation: string | null, file: File): Promise<number> {
    return this.#add(conversation, file.name, file.size, async () => {
      const base64 = await asBase64(file);
      return this.#backend.call('attachment_add', { name: file.name, base64 });
    });
  }

  /** Adds a file by its path on this computer. */
  addPath(conversation: string | null, path: string): Promise<number> {
    const name = path.split(/[/\\]/).at(-1) ?? path;
    return this.#add(conversation, name, null, () =>
      this.#backend.call('attachment_add_path', { path }),
    );
  }

  /** Adds a resource of a tool server. */
  addResource(
    conversation: string | null,
    { id, uri, name }: { id: string; uri: string; name: string },
  ): Promise<number> {
    return this.#add(conversation, name, null, () =>
      this.#backend.call('tool_resource_attach', { id, uri }),
    );
  }

  /** Adds pasted text as a file. Returns its key. */
  addText(conversation: string | null, name: string, text: string): Promise<number> {
    return this.addFile(conversation, new File([text], name, { type: 'text/plain' }));
  }

  /** Restores attachments of a message that is not sent after all. */
  putBack(conversation: string | null, files: readonly Attachment[]): void {
    this.#set(conversation, [...this.of(conversation), ...this.#ready(files)]);
  }

  remove(conversation: string | null, key: number): void {
    const gone = this.of(conversation).find((it) => it.key === key);
    this.#set(
      conversation,
      this.of(conversation).filter((it) => it.key !== key),
    );
    // The application drops its copy at once; if the call fails, it drops it on exit.
    if (gone?.file)
      void this.#backend.call('attachment_remove', { id: gone.file.id }).catch(() => undefined);
  }

  /** Marks attachments that the application no longer has, as after its restart. */
  async verify(): Promise<void> {
    const kept = [...this.#pending].flatMap(([key, list]) =>
      list.map((chosen) => ({ key, chosen })),
    );
    await Promise.all(
      kept.map(async ({ key, chosen }) => {
        if (chosen.file === null) return;
        try {
          await this.#backend.call('attachment_text', { id: chosen.file.id, at: null });
        } catch (thrown) {
          // An unreachable application may still have it.
          if (asErrorInfo(thrown).code.startsWith('ui.')) return;
          const error = { code: 'attachment.gone', message: t('files.gone'), remedy: '' };
          this.#change(key, chosen.key, { state: 'failed', file: null, error });
        }
      }),
    );
  }

  /** Forgets attachments that were sent. */
  forget(conversation: string | null): void {
    this.#set(conversation, []);
  }

  /** Removes the images of a draft. */
  removeImages(conversation: string | null): void {
    const images = this.of(conversation).filter((it) => it.file?.kind === 'image');
    images.forEach((it) => this.remove(conversation, it.key));
  }

  /** Shows an image, or the text of a file. */
  view(
    file: { readonly id: string; readonly name: string; readonly image?: unknown },
    passage?: Citation['passage'],
  ): void {
    if (file.image) {
      this.viewedImage = { id: file.id, name: file.name };
      return;
    }
    this.viewed = { id: file.id, name: file.name, passage: passage ?? null };
  }

  #ready(files: readonly Attachment[]): PendingFile[] {
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
    const reading: PendingFile = { key, name, bytes, state: 'reading', file: null, error: null };
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

  #change(place: string, key: number, change: Partial<PendingFile>): void {
    const list = this.#pending.get(place) ?? [];
    this.#put(
      place,
      list.map((it) => (it.key === key ? { ...it, ...change } : it)),
    );
  }

  #set(conversation: string | null, chosen: readonly PendingFile[]): void {
    this.#put(keyOf(conversation), chosen);
  }

  #put(place: string, chosen: readonly PendingFile[]): void {
    this.#pending.set(place, chosen);
    const files = chosen.flatMap((it) => it.file ?? []);
    if (files.length === 0) sessionStorage.removeItem(place);
    else sessionStorage.setItem(place, JSON.stringify(files));
  }
}

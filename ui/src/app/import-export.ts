/** Import, export, backup and restore: through system dialogs in the window, through the page in a browser. */
import { asBase64 } from '../shared/base64';
import type { Backend } from '../backend/backend';
import type { ExportFormat, ImportSummary } from '../backend/bindings';
import { joinList } from '../shared/format';
import type { Toasts } from '../shared/toasts.svelte';
import { t, localizeError } from '../i18n';

const BACKUP_NAME = 'inglenook-backup.db';
const TRACE_NAME = 'inglenook-trace.json';

export class ImportExport {
  readonly #backend: Backend;
  readonly #toasts: Toasts;
  readonly #attempt: (work: () => Promise<unknown>) => Promise<void>;

  constructor(
    backend: Backend,
    toasts: Toasts,
    attempt: (work: () => Promise<unknown>) => Promise<void>,
  ) {
    this.#backend = backend;
    this.#toasts = toasts;
    this.#attempt = attempt;
  }

  exportOne(id: string, format: ExportFormat): Promise<void> {
    return this.#export(id, format);
  }

  /** Exports all conversations as one lossless JSON file. */
  exportAll(): Promise<void> {
    return this.#export(null, 'json');
  }

  exportPreset(id: string): Promise<void> {
    return this.#attempt(async () => {
      const { name, text } = await this.#backend.call('preset_export', { id });
      if (!this.#backend.pickSave) return download(name, text);
      const path = await this.#backend.pickSave(name);
      if (!path) return;
      await this.#backend.call('preset_export', { id, path });
      this.#say(t('chat.saved_as', { path }));
    });
  }

  /** Saves the profile of the last measured answer as a trace file. */
  saveTrace(): Promise<void> {
    return this.#attempt(async () => {
      if (!this.#backend.pickSave) {
        const { name, text } = await this.#backend.call('profile_trace', {});
        return download(name, text);
      }
      const path = await this.#backend.pickSave(TRACE_NAME);
      if (!path) return;
      await this.#backend.call('profile_trace', { path });
      this.#say(t('chat.saved_as', { path }));
    });
  }

  /** Saves a text as a file. */
  saveText(name: string, text: string): Promise<void> {
    return this.#attempt(async () => {
      if (!this.#backend.saveText) return download(name, text);
      const path = await this.#backend.saveText(name, text);
      if (path) this.#say(t('chat.saved_as', { path }));
    });
  }

  /** Imports a file; null opens the system's file dialog. */
  importFile(file: File | null): Promise<void> {
    return this.#attempt(async () => {
      if (file) {
        const base64 = await asBase64(file);
        this.#sayImported(await this.#backend.call('import_bytes', { base64 }));
        return;
      }
      const path = await this.#backend.pickFile?.('import');
      if (path) this.#sayImported(await this.#backend.call('import_file', { path }));
    });
  }

  /** Imports a file by its path on this computer. */
  importPath(path: string): Promise<void> {
    return this.#attempt(async () => {
      this.#sayImported(await this.#backend.call('import_file', { path }));
    });
  }

  backUp(path: string | null): Promise<void> {
    return this.#attempt(async () => {
      const to = path ?? (await this.#backend.pickSave?.(BACKUP_NAME));
      if (!to) return;
      const made = await this.#backend.call('data_backup', { path: to });
      this.#say(t('chat.backed_up', { path: made.path }));
    });
  }

  restore(path: string | null): Promise<void> {
    return this.#attempt(async () => {
      const from = path ?? (await this.#backend.pickFile?.('backup'));
      if (!from) return;
      const { added, beside, same } = await this.#backend.call('data_restore', { path: from });
      const parts = [t('chat.brought_back', { n: added }), t('chat.there_already', { n: same })];
      if (beside > 0) parts.push(t('chat.put_beside', { n: beside }));
      this.#say(t('chat.sentence', { text: joinList(parts) }));
    });
  }

  #export(id: string | null, format: ExportFormat): Promise<void> {
    return this.#attempt(async () => {
      if (!this.#backend.pickSave) {
        const { name, text } = await this.#backend.call('export', { id, format });
        download(name, text);
        return;
      }
      const { name } = await this.#backend.call('export_name', { id, format });
      const path = await this.#backend.pickSave(name);
      if (!path) return;
      const saved = await this.#backend.call('export_to', { id, format, path });
      this.#say(t('chat.saved_as', { path: saved.path }));
    });
  }

  #sayImported(imported: ImportSummary): void {
    const { conversations, failed, failures } = imported;
    const n = conversations.length;
    this.#say(t('chat.imported', { n }));
    const first = failures[0];
    if (failed > 0 && first) {
      const text = t('chat.import_failed', { n: failed, why: localizeError(first).message });
      this.#toasts.show({ text, tone: 'bad' });
    }
  }

  #say(text: string): void {
    this.#toasts.show({ text, tone: 'plain' });
  }
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

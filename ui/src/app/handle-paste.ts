/** Turns pasted files, pictures and long texts into attachments; short texts stay in the message box. */
import type { Inglenook } from './inglenook.svelte';
import { t } from '../i18n';
import { insertText, classifyPaste } from '../features/attachments/paste';

export function handlePaste(app: Inglenook, event: ClipboardEvent): void {
  const taken = classifyPaste(event.clipboardData);
  const { id } = app.chat;
  if (taken.type === 'plain') return;
  if (taken.type === 'withheld') {
    // Else the paths of copied files would be pasted as text.
    if (app.backend.clipboardPaths && event.clipboardData?.types.includes('text/uri-list'))
      event.preventDefault();
    return void app.attempt(() => attachCopied(app, id));
  }
  event.preventDefault();
  if (taken.type === 'files') {
    for (const file of taken.files) void app.attachments.addFile(id, file);
    return;
  }
  const box = event.target instanceof HTMLTextAreaElement ? event.target : null;
  const [start, end] = [box?.selectionStart ?? 0, box?.selectionEnd ?? 0];
  const draft = app.drafts.get(id);
  const added = app.attachments.addText(id, t('files.pasted_name'), taken.text);
  const undo = async () => {
    app.attachments.remove(id, await added);
    // If the draft has changed since, the text goes to its end.
    const at = app.drafts.get(id) === draft ? [start, end] : [Infinity, Infinity];
    app.drafts.set(id, insertText(app.drafts.get(id), taken.text, at[0] ?? 0, at[1] ?? 0));
    app.ui.focusComposer();
  };
  app.toasts.show({
    text: t('files.pasted'),
    tone: 'plain',
    action: { label: t('files.put_in'), testid: 'toast-undo', run: () => void undo() },
  });
}

/** Attaches what other programs have copied, where a paste event does not have it. */
async function attachCopied(app: Inglenook, id: string | null): Promise<void> {
  const paths = (await app.backend.clipboardPaths?.()) ?? [];
  if (paths.length > 0) {
    await Promise.all(paths.map((path) => app.attachments.addPath(id, path)));
    return;
  }
  const picture = await app.backend.clipboardPicture?.();
  if (picture && picture.byteLength > 0)
    await app.attachments.addFile(id, new File([picture], t('files.pasted_image')));
}

/** Turns pasted files and long texts into attachments; short texts stay in the message box. */
import type { Inglenook } from './inglenook.svelte';
import { t } from '../i18n';
import { insertText, classifyPaste } from '../features/attachments/paste';

export function handlePaste(app: Inglenook, event: ClipboardEvent): void {
  const taken = classifyPaste(event.clipboardData);
  const { id } = app.chat;
  if (taken.type === 'plain') return;
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

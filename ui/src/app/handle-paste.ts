/** Takes what is pasted into the message box where it is more than words to stand there. */
import type { Inglenook } from './inglenook.svelte';
import { t } from '../i18n';
import { insert, pasted } from '../features/attachments/paste';

export function handlePaste(app: Inglenook, event: ClipboardEvent): void {
  const taken = pasted(event.clipboardData);
  const { id } = app.chat;
  if (taken.type === 'plain') return;
  event.preventDefault();
  if (taken.type === 'files') {
    for (const file of taken.files) void app.attached.addFile(id, file);
    return;
  }
  const box = event.target instanceof HTMLTextAreaElement ? event.target : null;
  const [start, end] = [box?.selectionStart ?? 0, box?.selectionEnd ?? 0];
  const draft = app.drafts.get(id);
  const added = app.attached.addText(id, t('files.pasted_name'), taken.text);
  const undo = async () => {
    app.attached.remove(id, await added);
    // Where something else was written since, it stands at the end.
    const at = app.drafts.get(id) === draft ? [start, end] : [Infinity, Infinity];
    app.drafts.set(id, insert(app.drafts.get(id), taken.text, at[0] ?? 0, at[1] ?? 0));
    app.ui.focusComposer();
  };
  app.toasts.show({
    text: t('files.pasted'),
    tone: 'plain',
    action: { label: t('files.put_in'), testid: 'toast-undo', run: () => void undo() },
  });
}

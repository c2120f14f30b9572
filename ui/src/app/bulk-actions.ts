/** What is done with several conversations at once. */
import type { Inglenook } from './inglenook.svelte';
import { t } from '../i18n';

export async function deleteAll(app: Inglenook, ids: readonly string[]): Promise<void> {
  const gone: string[] = [];
  await app.attempt(async () => {
    for (const id of ids) {
      await app.conversations.remove(id);
      gone.push(id);
    }
  });
  if (app.chat.id !== null && gone.includes(app.chat.id)) app.newChat();
  app.selection.clear();
  if (gone.length === 0) return;
  const run = () =>
    void app.attempt(async () => {
      for (const id of gone) await app.conversations.restore(id);
    });
  const text = t('chat.deleted_many', { n: gone.length });
  app.toasts.show({
    text,
    tone: 'plain',
    action: { label: t('common.undo'), testid: 'toast-undo', run },
  });
}

/** Into a folder, or (null) out of any; pinned ones are where they are shown. */
export async function moveAll(
  app: Inglenook,
  ids: readonly string[],
  folder: string | null,
): Promise<void> {
  await app.attempt(async () => {
    for (const id of ids) {
      const it = app.conversations.find(id);
      if (it?.pinned) await app.conversations.pin(id, false);
      if (it && it.folder !== folder) await app.conversations.move(id, folder);
    }
    app.selection.clear();
  });
}

export async function pinAll(app: Inglenook, ids: readonly string[]): Promise<void> {
  await app.attempt(async () => {
    for (const id of ids) {
      if (app.conversations.find(id)?.pinned === false) await app.conversations.pin(id, true);
    }
    app.selection.clear();
  });
}

/** A copy of the branch that is looked at, in the same folder. */
export async function duplicate(app: Inglenook, id: string): Promise<void> {
  await app.attempt(async () => {
    const { messages, summary } = await app.backend.call('conversation_get', { id });
    const last = messages.at(-1);
    if (!last) return;
    const copy = await app.backend.call('message_fork', { message: last.id });
    await app.conversations.rename(copy.id, t('chat.copy_of', { title: summary.title }));
    if (summary.folder !== null) await app.conversations.move(copy.id, summary.folder);
    app.openConversation(copy.id);
  });
}

/** Actions on several conversations at once, each with one undo. */
import type { Inglenook } from './inglenook.svelte';
import { t } from '../i18n';

export async function deleteAll(app: Inglenook, ids: readonly string[]): Promise<void> {
  const deleted: string[] = [];
  await app.attempt(async () => {
    for (const id of ids) {
      await app.conversations.remove(id);
      deleted.push(id);
    }
  });
  if (app.chat.id !== null && deleted.includes(app.chat.id)) app.newChat();
  app.selection.clear();
  if (deleted.length === 0) return;
  const run = () =>
    void app.attempt(async () => {
      for (const id of deleted) await app.conversations.restore(id);
    });
  const text = t('chat.deleted_many', { n: deleted.length });
  app.toasts.show({
    text,
    tone: 'plain',
    action: { label: t('common.undo'), testid: 'toast-undo', run },
  });
}

/** Moves conversations into a folder, or out of any (null). Pinned ones are unpinned, since the pinned list hides the folder. */
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

/** Copies the visible branch into a new conversation in the same folder. */
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

/** Actions that need more than one store: messages, models, presets, settings. */
import type { ModelEntry, Preset, SettingRow } from '../backend/bindings';
import type { Inglenook } from './inglenook.svelte';
import { copyText } from '../shared/clipboard';
import { truncate } from '../shared/format';
import { t } from '../i18n';

/** Moves a conversation to the trash and offers undo. */
export async function deleteConversation(app: Inglenook, id: string): Promise<void> {
  const title = truncate(app.conversations.find(id)?.title ?? t('common.chat'));
  await app.attempt(async () => {
    await app.conversations.remove(id);
    if (app.chat.id === id) app.newChat();
    const action = app.undo(() => app.conversations.restore(id));
    app.toasts.show({ text: t('chat.deleted', { title }), tone: 'plain', action });
  });
}

export async function copy(app: Inglenook, text: string): Promise<void> {
  const done = await copyText(text);
  app.toasts.show({
    text: done ? t('common.copied') : t('common.copy_failed'),
    tone: done ? 'plain' : 'bad',
  });
}

/** Opens a conversation and prints it. Printing works from the rendered page. */
export async function print(app: Inglenook, id: string): Promise<void> {
  app.ui.showChat();
  await app.chat.open(id);
  app.ui.printing = app.chat.id === id && app.chat.shown.length > 0;
}

/** Switches to the next preset, cyclically. */
export async function nextPreset(app: Inglenook): Promise<void> {
  const next = app.presets.after(app.chatOptions.preset?.id ?? null);
  if (!next) return;
  await app.attempt(async () => {
    await app.chatOptions.applyPreset(next);
    app.toasts.show({ text: t('shell.preset_named', { name: next.name }), tone: 'plain' });
  });
}

export async function deletePreset(app: Inglenook, preset: Preset): Promise<void> {
  await app.attempt(async () => {
    await app.presets.remove(preset.id);
    const action = app.undo(() => app.presets.save(null, preset.name, preset));
    app.toasts.show({ text: t('models.deleted', { name: preset.name }), tone: 'plain', action });
  });
}

export async function resetSettings(app: Inglenook, rows: readonly SettingRow[]): Promise<void> {
  for (const row of rows) await app.settings.reset(row.key);
  const action = app.undo(async () => {
    for (const row of rows) await app.settings.set(row.key, row.value);
  });
  const text = t('shell.settings_reset', { n: rows.length });
  app.toasts.show({ text, tone: 'plain', action });
}

/** Copies the branch up to a message into a new conversation. */
export async function branchOff(app: Inglenook, message: string): Promise<void> {
  await app.attempt(async () => {
    const copy = await app.backend.call('message_fork', { message });
    app.openConversation(copy.id);
  });
}

export async function deleteMessage(app: Inglenook, message: string): Promise<void> {
  await app.attempt(async () => {
    await app.chat.remove(message);
    const action = app.undo(() => app.chat.restore(message));
    app.toasts.show({ text: t('chat.message_deleted'), tone: 'plain', action });
  });
}

/** Removes a model from the list, or from disk if the file is ours, and offers undo. */
export async function removeModel(app: Inglenook, model: ModelEntry): Promise<void> {
  await app.attempt(async () => {
    await app.models.remove(model.id);
    if (app.ui.view === 'models') await app.library.load();
    const action = app.undo(async () => {
      await app.models.restore(model.id);
      if (app.ui.view === 'models') await app.library.load();
    });
    const done = model.source === 'owned' ? 'models.deleted' : 'models.off_the_list';
    app.toasts.show({ text: t(done, { name: model.name }), tone: 'plain', action });
  });
}

/** Creates a folder inside `parent`, moves `conversation` into it, and starts editing its name. */
export async function addFolder(
  app: Inglenook,
  conversation: string | null,
  parent: string | null,
): Promise<void> {
  await app.attempt(async () => {
    const folder = await app.folders.add(t('common.new_folder'), parent);
    if (conversation !== null) await app.conversations.move(conversation, folder.id);
    app.ui.renaming = folder.id;
  });
}

/** Opens a conversation at a message, on whatever branch it is. */
export async function openMessage(app: Inglenook, id: string, message: string): Promise<void> {
  app.openConversation(id);
  await app.attempt(async () => {
    await app.chat.open(id);
    if (!app.chat.messages.some((it) => it.id === message))
      await app.chat.chooseBranch(message, null);
    app.ui.scrollTarget = message;
  });
}

/** Saves an answer edited by the user as a new version. Returns false if it was refused. */
export async function rewrite(app: Inglenook, message: string, text: string): Promise<boolean> {
  let done = false;
  await app.attempt(async () => {
    await app.chat.refetchAfter(app.backend.call('answer_edit', { message, text }));
    done = true;
  });
  return done;
}

/** Says once that the check at the start found a newer version. */
export function tellOfUpdate(app: Inglenook): void {
  const version = app.updates.takeFound();
  if (version === null) return;
  app.toasts.show({
    text: t('updates.available', { version }),
    tone: 'plain',
    action: {
      label: t('updates.show'),
      testid: 'toast-update',
      run: () => app.ui.showSetting('About', null),
    },
  });
}

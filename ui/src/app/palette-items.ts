/** Entries of the command palette: commands, chats, models, settings. Messages come from the application's search. */
import type { SearchResult } from '../backend/bindings';
import { fuzzy } from '../shared/fuzzy';
import { localizeSetting, t } from '../i18n';
import type { IconName } from '../shared/icons';
import { SHORTCUTS, isMac, keysText, type CommandId } from '../shared/keys';
import { sectionName } from '../features/settings/sections';
import { run } from './commands';
import type { Inglenook } from './inglenook.svelte';

export interface PaletteItem {
  readonly id: string;
  readonly kind: 'chats' | 'messages' | 'models' | 'commands' | 'settings' | 'help';
  readonly icon: IconName;
  readonly label: string;
  /** Secondary text after the label. */
  readonly hint: string;
  run(): void;
}

export interface PaletteMatch extends PaletteItem {
  readonly at: readonly number[];
}

/** Recent chats shown while the query is empty. */
const RECENT = 5;
/** Longer lists are not read. */
const MAX_PER_KIND = 7;

/** Commands that make no sense in the palette. */
const UNLISTED: readonly CommandId[] = [
  ...(['palette', 'edit-last', 'focus-composer', 'stop', 'chat'] as const),
  ...(['tool-allow', 'tool-deny'] as const),
];

export function paletteItems(app: Inglenook): PaletteItem[] {
  const mac = isMac();
  const chats = app.conversations.list.map((it): PaletteItem => ({
    id: `chat-${it.id}`,
    kind: 'chats',
    icon: it.pinned ? 'pin' : 'chat',
    label: it.title,
    hint: '',
    run: () => app.openConversation(it.id),
  }));
  const models = app.models.answering.map((it): PaletteItem => ({
    id: `model-${it.id}`,
    kind: 'models',
    icon: 'model',
    label: it.name,
    hint: it.id === app.model?.id ? t('shell.in_use') : it.dtype,
    run: () => {
      app.ui.showChat();
      void app.chooseModel(it.id);
    },
  }));
  const isOffered = (id: CommandId) =>
    !UNLISTED.includes(id) && (id !== 'quick-window' || app.backend.showQuick !== undefined);
  const commands = SHORTCUTS.filter((it) => isOffered(it.id)).map((it): PaletteItem => ({
    id: `command-${it.id}`,
    kind: 'commands',
    icon: 'command',
    label: t(`commands.${it.id}`),
    hint: keysText(it.id, mac),
    run: () => void run(app, it.id),
  }));
  const settings = app.settings.shown.map(localizeSetting).map((it): PaletteItem => ({
    id: `setting-${it.key}`,
    kind: 'settings',
    icon: 'gear',
    label: it.label,
    hint: sectionName(it.section),
    run: () => app.ui.showSetting(it.section, it.key),
  }));
  const help = app.help.articles.map((it): PaletteItem => ({
    id: `help-${it.id}`,
    kind: 'help',
    icon: 'help',
    label: it.title,
    hint: t('help.title'),
    run: () => {
      app.help.show(it.id);
      app.ui.view = 'help';
    },
  }));
  return [...chats, ...commands, ...models, ...settings, ...help];
}

/** Search hits in messages, with the matched positions of their snippets. */
export function messageMatches(app: Inglenook, result: SearchResult | null): PaletteMatch[] {
  return (result?.messages ?? []).slice(0, MAX_PER_KIND).map((hit) => {
    const label = hit.snippet.map((part) => part.text).join('');
    const at: number[] = [];
    let place = 0;
    for (const part of hit.snippet) {
      if (part.hit) for (let n = 0; n < part.text.length; n++) at.push(place + n);
      place += part.text.length;
    }
    const go = () => void app.openMessage(hit.conversation, hit.message);
    const id = `message-${hit.message}`;
    return { id, kind: 'messages', icon: 'quote', label, hint: hit.title, at, run: go };
  });
}

/** The best matches of each kind; the kind with the best match comes first. */
export function findItems(all: readonly PaletteItem[], query: string): PaletteMatch[] {
  if (query.trim() === '') {
    const some = (kind: PaletteItem['kind'], most: number) =>
      all.filter((it) => it.kind === kind).slice(0, most);
    const start = [...some('chats', RECENT), ...some('commands', MAX_PER_KIND + RECENT)];
    return start.map((it) => ({ ...it, at: [] }));
  }
  const kinds = new Map<
    PaletteItem['kind'],
    { item: PaletteItem; score: number; at: readonly number[] }[]
  >();
  for (const item of all) {
    const match = fuzzy(query, item.label);
    if (!match) continue;
    const list = kinds.get(item.kind) ?? [];
    list.push({ item, ...match });
    kinds.set(item.kind, list);
  }
  const lists = [...kinds.values()].map((list) =>
    list.sort((a, b) => b.score - a.score).slice(0, MAX_PER_KIND),
  );
  lists.sort((a, b) => (b[0]?.score ?? 0) - (a[0]?.score ?? 0));
  return lists.flat().map(({ item, at }) => ({ ...item, at }));
}

/** What the palette finds: commands, chats, models, settings; messages come from the application's own search. */
import type { SearchResult } from '../backend/bindings';
import { fuzzy } from '../shared/fuzzy';
import { spoken, t } from '../i18n';
import type { IconName } from '../shared/icons';
import { SHORTCUTS, isMac, keysText, type CommandId } from '../shared/keys';
import { sectionName } from '../features/settings/sections';
import { run } from './commands';
import type { Inglenook } from './inglenook.svelte';

export interface Item {
  readonly id: string;
  readonly kind: 'chats' | 'messages' | 'models' | 'commands' | 'settings';
  readonly icon: IconName;
  readonly label: string;
  /** Beside it, quieter. */
  readonly hint: string;
  run(): void;
}

export interface Found extends Item {
  readonly at: readonly number[];
}

/** Without a question: where one was last, and what can be done. */
const RECENT = 5;
/** A list longer than this is not read. */
const MOST_OF_A_KIND = 7;

/** Those that make no sense from here. */
const HIDDEN: readonly CommandId[] = [
  ...(['palette', 'edit-last', 'focus-composer', 'stop', 'chat'] as const),
  ...(['tool-allow', 'tool-deny'] as const),
];

export function items(app: Inglenook): Item[] {
  const mac = isMac();
  const chats = app.conversations.list.map((it): Item => ({
    id: `chat-${it.id}`,
    kind: 'chats',
    icon: it.pinned ? 'pin' : 'chat',
    label: it.title,
    hint: '',
    run: () => app.openConversation(it.id),
  }));
  const models = app.models.answering.map((it): Item => ({
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
  const commands = SHORTCUTS.filter((it) => !HIDDEN.includes(it.id)).map((it): Item => ({
    id: `command-${it.id}`,
    kind: 'commands',
    icon: 'command',
    label: t(`commands.${it.id}`),
    hint: keysText(it.id, mac),
    run: () => void run(app, it.id),
  }));
  const settings = app.settings.shown.map(spoken).map((it): Item => ({
    id: `setting-${it.key}`,
    kind: 'settings',
    icon: 'gear',
    label: it.label,
    hint: sectionName(it.section),
    run: () => app.ui.showSetting(it.section, it.key),
  }));
  return [...chats, ...commands, ...models, ...settings];
}

/** Messages that have the words; the search itself says where. */
export function messages(app: Inglenook, result: SearchResult | null): Found[] {
  return (result?.messages ?? []).slice(0, MOST_OF_A_KIND).map((hit) => {
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

/** The best of each kind, the kind with the best find first. */
export function find(all: readonly Item[], query: string): Found[] {
  if (query.trim() === '') {
    const some = (kind: Item['kind'], most: number) =>
      all.filter((it) => it.kind === kind).slice(0, most);
    const start = [...some('chats', RECENT), ...some('commands', MOST_OF_A_KIND + RECENT)];
    return start.map((it) => ({ ...it, at: [] }));
  }
  const kinds = new Map<Item['kind'], { item: Item; score: number; at: readonly number[] }[]>();
  for (const item of all) {
    const match = fuzzy(query, item.label);
    if (!match) continue;
    const list = kinds.get(item.kind) ?? [];
    list.push({ item, ...match });
    kinds.set(item.kind, list);
  }
  const lists = [...kinds.values()].map((list) =>
    list.sort((a, b) => b.score - a.score).slice(0, MOST_OF_A_KIND),
  );
  lists.sort((a, b) => (b[0]?.score ?? 0) - (a[0]?.score ?? 0));
  return lists.flat().map(({ item, at }) => ({ ...item, at }));
}

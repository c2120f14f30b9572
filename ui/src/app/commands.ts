/** Runs commands, whether they come from a key, the palette or a button. */
import type { ToolDecision } from '../backend/bindings';
import { commandFor, isMac, isTyping, type CommandId } from '../shared/keys';
import type { Inglenook } from './inglenook.svelte';
import { arrangeSidebar } from '../features/conversations/date-groups';
import { folderOrder } from '../features/conversations/folder-tree';
import { rowBeside } from '../features/conversations/row-focus';
import { zoom } from './zoom';
import { isComposing } from '../shared/composition';

/** Runs the command of a key press. Returns true if the event was consumed. */
export function onKey(app: Inglenook, event: KeyboardEvent): boolean {
  if (isComposing(event) || event.defaultPrevented) return false;
  const command = commandFor(event, isMac());
  if (command) {
    if (isOverlaid() && command !== 'shortcuts' && command !== 'palette') return false;
    return run(app, command, event.target);
  }
  if (isTyping(event) && canTakeFocus(app, event.target)) app.ui.focusComposer();
  return false;
}

/** Returns true if the command ran; false if it had nothing to act on. */
type Command = (app: Inglenook, target: EventTarget | null) => boolean;

const always =
  (work: (app: Inglenook) => void): Command =>
  (app) => {
    work(app);
    return true;
  };

/** Wraps work on the open conversation. */
const inChat =
  (work: (app: Inglenook, id: string) => void): Command =>
  (app) => {
    const { id } = app.chat;
    if (id !== null) work(app, id);
    return id !== null;
  };

/** Opens the chat that lies beside the open one in the sidebar. */
const beside =
  (step: 1 | -1): Command =>
  (app) => {
    const { list } = app.conversations;
    const { pinned, folders, inside, groups } = arrangeSidebar(list, app.folders.list, Date.now());
    const inFolders = folderOrder(folders).flatMap((it) => inside.get(it) ?? []);
    const order = [...pinned, ...inFolders, ...groups.flatMap((it) => it.conversations)];
    const ids = order.map((it) => it.id);
    const next = rowBeside(ids, app.chat.id, step);
    if (next !== null) app.openConversation(next);
    return next !== null;
  };

/** Decides about the tool call that waits for approval. */
const decide =
  (decision: ToolDecision): Command =>
  (app) => {
    const { awaitingApproval, shown } = app.chat;
    const message = shown.at(-1);
    if (app.ui.view !== 'chat' || !awaitingApproval || !message) return false;
    const args = { message: message.id, call: awaitingApproval.id, decision };
    void app.attempt(() => app.backend.call('tool_decide', args));
    return true;
  };

const COMMANDS: Record<CommandId, Command> = {
  'new-chat': always((app) => app.newChat()),
  'temporary-chat': always((app) => app.temporaryChat()),
  'focus-composer': always((app) => app.ui.showChat()),
  'toggle-sidebar': always((app) => app.ui.toggleSidebar()),
  settings: always((app) => app.ui.toggle('settings')),
  models: always((app) => app.ui.toggle('models')),
  'fine-tuning': always((app) => app.ui.showModels('tune')),
  chat: always((app) => app.ui.showChat()),
  trash: always((app) => app.openTrash()),
  memory: always((app) => app.ui.toggle('memory')),
  shortcuts: always((app) => (app.ui.shortcuts = !app.ui.shortcuts)),
  help: always((app) => app.ui.toggle('help')),
  palette: always((app) => (app.ui.palette = !app.ui.palette)),
  search: always((app) => app.ui.focusSearch()),
  find: ({ ui, chat }) => {
    if (ui.view !== 'chat' || chat.shown.length === 0) return false;
    ui.find();
    return true;
  },
  options: always((app) => {
    if (app.ui.view !== 'chat') app.ui.showChat();
    app.ui.options = !app.ui.options;
  }),
  'next-preset': always((app) => void app.nextPreset()),
  'new-folder': always((app) => void app.addFolder()),
  'model-picker': always((app) => {
    app.ui.showChat();
    app.ui.picker = true;
  }),
  // Always consumed: in a window, the key would reload the page.
  regenerate: always((app) => {
    const last = app.chat.shown.at(-1);
    if (app.ui.view === 'chat' && last?.role === 'assistant') void app.chat.regenerate(last.id);
  }),
  'edit-last': (app, target) => {
    const { chat, queueSender } = app;
    const last = chat.shown.findLast((it) => it.role === 'user');
    const box = target instanceof HTMLTextAreaElement && target.dataset.testid === 'composer';
    if (!box || target.value !== '') return false;
    const waiting = queueSender.queue.of(chat.id).at(-1);
    if (waiting && chat.id !== null) {
      queueSender.queue.take(chat.id, waiting.id);
      app.drafts.set(chat.id, waiting.text);
      return true;
    }
    if (!last || chat.answering) return false;
    app.ui.editing = last.id;
    return true;
  },
  instruments: always((app) => {
    app.ui.showChat();
    app.performance.toggle();
  }),
  'copy-answer': always((app) => {
    const answer = app.chat.shown.findLast((it) => it.role === 'assistant' && it.text !== '');
    if (answer) void app.copy(answer.text);
  }),
  'copy-code': always((app) => {
    const code = lastCode(app.chat.shown.map((it) => it.text));
    if (code !== null) void app.copy(code);
  }),
  // Always consumed: a browser would print only the messages that are rendered.
  print: always((app) => {
    if (app.ui.view === 'chat' && app.chat.shown.length > 0) app.ui.printing = true;
  }),
  'tool-allow': decide('allow_once'),
  'tool-deny': decide('deny'),
  'next-chat': beside(1),
  'previous-chat': beside(-1),
  rename: inChat((app, id) => {
    app.ui.sidebar = true;
    app.ui.renaming = id;
  }),
  delete: inChat((app, id) => void app.deleteConversation(id)),
  stop: (app) => {
    if (app.ui.view !== 'chat') {
      app.ui.showChat();
      return true;
    }
    if (!app.chat.answering) return false;
    void app.chat.stop();
    return true;
  },
  'quick-window': (app) => {
    const { showQuick } = app.backend;
    if (showQuick) void app.attempt(() => showQuick.call(app.backend));
    return showQuick !== undefined;
  },
  'zoom-in': (app) => zoom(app, 1),
  'zoom-out': (app) => zoom(app, -1),
  'zoom-reset': (app) => zoom(app, 0),
};

export const run = (app: Inglenook, id: CommandId, target: EventTarget | null = null): boolean =>
  COMMANDS[id](app, target);

/** Returns the last fenced code block of the latest text that contains one. */
export function lastCode(texts: readonly string[]): string | null {
  for (const text of [...texts].reverse()) {
    const blocks = [...text.matchAll(/^ {0,3}(`{3,}|~{3,})[^\n]*\n([^]*?)\n? {0,3}\1[ \t]*$/gm)];
    const last = blocks.at(-1)?.[2];
    if (last !== undefined) return last;
  }
  return null;
}

/** Whether a dialog or popover covers the page and receives the keys. */
const isOverlaid = (): boolean =>
  document.querySelector('dialog[open], [popover]:popover-open') !== null;

function canTakeFocus(app: Inglenook, target: EventTarget | null): boolean {
  if (app.ui.view !== 'chat' || isOverlaid()) return false;
  if (!(target instanceof HTMLElement)) return true;
  return !target.isContentEditable && !['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName);
}

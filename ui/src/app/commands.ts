/** What each command does, whether a key, the palette or a button gives it. */
import type { ToolDecision } from '../backend/bindings';
import { commandFor, isMac, isTyping, type CommandId } from '../shared/keys';
import type { Inglenook } from './inglenook.svelte';
import { zoom } from './zoom';

/** Runs the command of a key press; true: it was one, and the press is used up. */
export function onKey(app: Inglenook, event: KeyboardEvent): boolean {
  if (event.isComposing || event.defaultPrevented) return false;
  const command = commandFor(event, isMac());
  if (command) {
    if (overlaid() && command !== 'shortcuts' && command !== 'palette') return false;
    return run(app, command, event.target);
  }
  if (isTyping(event) && mayTakeFocus(app, event.target)) app.ui.focusComposer();
  return false;
}

/** True: done. A command that has nothing to work on does nothing. */
type Command = (app: Inglenook, target: EventTarget | null) => boolean;

const always =
  (work: (app: Inglenook) => void): Command =>
  (app) => {
    work(app);
    return true;
  };

/** For the conversation that is open. */
const inChat =
  (work: (app: Inglenook, id: string) => void): Command =>
  (app) => {
    const { id } = app.chat;
    if (id !== null) work(app, id);
    return id !== null;
  };

/** For the call that asks for leave. */
const decides =
  (decision: ToolDecision): Command =>
  (app) => {
    const { asking, shown } = app.chat;
    const message = shown.at(-1);
    if (app.ui.view !== 'chat' || !asking || !message) return false;
    const args = { message: message.id, call: asking.id, decision };
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
  chat: always((app) => app.ui.showChat()),
  trash: always((app) => app.openTrash()),
  shortcuts: always((app) => (app.ui.shortcuts = !app.ui.shortcuts)),
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
  // Always used up: in a window it would load the page anew.
  regenerate: always((app) => {
    const last = app.chat.shown.at(-1);
    if (app.ui.view === 'chat' && last?.role === 'assistant') void app.chat.regenerate(last.id);
  }),
  'edit-last': (app, target) => {
    const { chat, queued } = app;
    const last = chat.shown.findLast((it) => it.role === 'user');
    const box = target instanceof HTMLTextAreaElement && target.dataset.testid === 'composer';
    if (!box || target.value !== '') return false;
    const waiting = queued.queue.of(chat.id).at(-1);
    if (waiting && chat.id !== null) {
      queued.queue.take(chat.id, waiting.id);
      app.drafts.set(chat.id, waiting.text);
      return true;
    }
    if (!last || chat.answering) return false;
    app.ui.editing = last.id;
    return true;
  },
  instruments: always((app) => {
    app.ui.showChat();
    app.instruments.toggle();
  }),
  'copy-answer': always((app) => {
    const answer = app.chat.shown.findLast((it) => it.role === 'assistant' && it.text !== '');
    if (answer) void app.copy(answer.text);
  }),
  'copy-code': always((app) => {
    const code = lastCode(app.chat.shown.map((it) => it.text));
    if (code !== null) void app.copy(code);
  }),
  // Always used up: a browser would print the page as it stands, most of the chat undrawn.
  print: always((app) => {
    if (app.ui.view === 'chat' && app.chat.shown.length > 0) app.ui.printing = true;
  }),
  'tool-allow': decides('allow_once'),
  'tool-deny': decides('deny'),
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
  'zoom-in': (app) => zoom(app, 1),
  'zoom-out': (app) => zoom(app, -1),
  'zoom-reset': (app) => zoom(app, 0),
};

export const run = (app: Inglenook, id: CommandId, target: EventTarget | null = null): boolean =>
  COMMANDS[id](app, target);

/** The last fenced block of code in the latest text that has one. */
export function lastCode(texts: readonly string[]): string | null {
  for (const text of [...texts].reverse()) {
    const blocks = [...text.matchAll(/^ {0,3}(`{3,}|~{3,})[^\n]*\n([^]*?)\n? {0,3}\1[ \t]*$/gm)];
    const last = blocks.at(-1)?.[2];
    if (last !== undefined) return last;
  }
  return null;
}

/** Something lies over the page and has the keys. */
const overlaid = (): boolean =>
  document.querySelector('dialog[open], [popover]:popover-open') !== null;

function mayTakeFocus(app: Inglenook, target: EventTarget | null): boolean {
  if (app.ui.view !== 'chat' || overlaid()) return false;
  if (!(target instanceof HTMLElement)) return true;
  return !target.isContentEditable && !['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName);
}

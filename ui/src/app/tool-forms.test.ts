// @vitest-environment jsdom
import { flushSync, mount, unmount, type Component } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { setApp } from './context';
import { Inglenook } from './inglenook.svelte';
import { BackendError } from '../backend/backend';
import type { ToolForm, ToolFormAnswerArgs, ToolFormField } from '../backend/bindings';
import ToolFormDialog from '../features/tools/ToolFormDialog.svelte';
import { initialValue, sentValues } from '../features/tools/forms.svelte';
import { FakeBackend } from '../test/fake-backend';

const field = (name: string, more: Partial<ToolFormField>): ToolFormField => ({
  name,
  label: name,
  description: null,
  required: false,
  kind: { kind: 'text', format: null, min_chars: null, max_chars: null },
  default: null,
  ...more,
});

const number = { kind: 'number', is_integer: true, min: 1, max: null } as const;
const options = [
  { value: 'in', title: 'Inside' },
  { value: 'out', title: 'Outside' },
];

const form = (id: string): ToolForm => ({
  id,
  server_name: 'restaurant',
  message: 'For whom is the table?',
  fields: [
    field('name', { required: true }),
    field('guests', { kind: number, default: 2 }),
    field('quiet', { kind: { kind: 'flag' } }),
    field('where', { kind: { kind: 'choice', options } }),
    field('wishes', { kind: { kind: 'multiple_choice', options } }),
  ],
});

const find = <E extends HTMLElement>(testid: string, name?: string) =>
  document.querySelector<E>(`[data-testid="${testid}"]${name ? `[data-name="${name}"]` : ''}`);

function get<E extends HTMLElement>(testid: string, name?: string): E {
  const found = find<E>(testid, name);
  if (!found) throw new Error(`there is no ${testid}`);
  return found;
}

describe('a form of a tool server', () => {
  let app: Inglenook;
  let answers: ToolFormAnswerArgs[];
  let mounted: object;

  beforeEach(() => {
    // jsdom has no modal dialogs.
    HTMLDialogElement.prototype.showModal = vi.fn<() => void>();
    const backend = new FakeBackend();
    answers = [];
    backend.on('tool_form_answer', (args) => {
      if (args.values['name'] === 'nobody') {
        throw new BackendError({ code: 'tools.form', message: 'No.', remedy: 'Correct it.' });
      }
      answers.push(args);
      return null;
    });
    app = new Inglenook(backend);
    const host = ((anchor: never) => {
      setApp(app);
      return ToolFormDialog(anchor, {});
    }) as unknown as Component;
    mounted = mount(host, { target: document.body });
  });

  afterEach(() => {
    void unmount(mounted);
    document.body.replaceChildren();
  });

  function open(id: string) {
    app.toolForms.apply({ type: 'tool_form_opened', form: form(id) });
    flushSync();
  }

  function enter(name: string, value: string) {
    const input = get<HTMLInputElement>('tool-form-field', name);
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
  }

  const send = () =>
    get<HTMLFormElement>('tool-form').dispatchEvent(new Event('submit', { cancelable: true }));

  it('is sent with its values', async () => {
    open('f1');
    expect(find('tool-form-message')?.textContent).toBe('For whom is the table?');
    enter('name', 'Ada');
    send();
    await vi.waitFor(() => expect(find('tool-form')).toBeNull());
    const values = { name: 'Ada', guests: 2, quiet: false, wishes: [] };
    expect(answers).toEqual([{ id: 'f1', action: 'accept', values }]);
  });

  it('stays open where a value is refused', async () => {
    open('f1');
    enter('name', 'nobody');
    send();
    await vi.waitFor(() => expect(find('error')).not.toBeNull());
    expect(find('tool-form')).not.toBeNull();
  });

  it('makes room for the next one, which begins empty', async () => {
    open('f1');
    open('f2');
    enter('name', 'Ada');
    get<HTMLButtonElement>('tool-form-decline').click();
    const name = () => get<HTMLInputElement>('tool-form-field', 'name').value;
    await vi.waitFor(() => expect(name()).toBe(''));
    expect(answers).toEqual([{ id: 'f1', action: 'decline', values: {} }]);
    app.toolForms.apply({ type: 'tool_form_closed', id: 'f2' });
    flushSync();
    expect(find('tool-form')).toBeNull();
  });
});

it('leaves out empty fields that the user has not emptied', () => {
  const fields = [field('a', {}), field('b', { default: 'x' }), field('c', { kind: number })];
  const held = Object.fromEntries(fields.map((it) => [it.name, initialValue(it)]));
  expect(held).toEqual({ a: '', b: 'x', c: null });
  expect(sentValues(fields, { ...held, b: '' })).toEqual({ b: '' });
});

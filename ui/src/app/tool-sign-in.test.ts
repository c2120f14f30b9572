// @vitest-environment jsdom
import { flushSync, mount, unmount, type Component } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { setApp } from './context';
import { Inglenook } from './inglenook.svelte';
import type { ToolServerInfo, ToolSignInArgs } from '../backend/bindings';
import { FakeBackend } from '../test/fake-backend';
import ToolServerRow from '../features/tools/ToolServerRow.svelte';

const ADDRESS = 'https://auth.example/authorize?state=s';

const failed = (code: string): ToolServerInfo['state'] => ({
  state: 'failed',
  error: { code, message: 'The cause.', remedy: 'The remedy.' },
});

function server(
  sign_in: ToolServerInfo['sign_in'],
  state: ToolServerInfo['state'],
): ToolServerInfo {
  return {
    id: 's',
    name: 'lab',
    place: 'https://lab.example/mcp',
    spec: { url: 'https://lab.example/mcp' },
    enabled: true,
    state,
    sign_in,
    tools: [],
    allowed: false,
    leaves_machine: true,
    plugin: null,
  };
}

const find = (testid: string) =>
  document.querySelector<HTMLInputElement>(`[data-testid="${testid}"]`);

describe('the card of a tool server with a sign-in', () => {
  let backend: FakeBackend;
  let app: Inglenook;
  let mounted: object | undefined;

  beforeEach(() => {
    // jsdom has no popovers.
    HTMLElement.prototype.showPopover = vi.fn<() => void>();
    backend = new FakeBackend();
    app = new Inglenook(backend);
  });

  afterEach(() => {
    if (mounted) void unmount(mounted);
    mounted = undefined;
    document.body.replaceChildren();
  });

  function show(shown: ToolServerInfo) {
    const host = ((anchor: never) => {
      setApp(app);
      return ToolServerRow(anchor, { server: shown });
    }) as unknown as Component;
    mounted = mount(host, { target: document.body, context: new Map() });
    flushSync();
  }

  it.each([
    ['none', { state: 'ready' }, []],
    ['needed', failed('tools.sign_in'), ['tool-sign-in']],
    ['needed', failed('tools.sign_in_denied'), ['tool-sign-in', 'cause']],
    ['needed', failed('tools.sign_in_client_id'), ['tool-sign-in', 'tool-client-id', 'cause']],
    ['waiting', failed('tools.sign_in'), ['tool-sign-in-waiting', 'tool-sign-in-cancel']],
    ['signed_in', { state: 'ready' }, ['tool-sign-out']],
  ] as const)('shows what can be done: %s %j', (sign_in, state, expected) => {
    show(server(sign_in, state));
    find('tool-server-menu')?.click();
    flushSync();
    const parts = [
      'tool-sign-in',
      'tool-client-id',
      'tool-sign-in-waiting',
      'tool-sign-in-cancel',
      'tool-sign-out',
    ];
    const found = parts.filter((testid) => find(testid) !== null);
    if (document.body.textContent.includes('The cause.')) found.push('cause');
    expect(found.sort()).toEqual([...expected].sort());
  });

  it('shows the address before the browser opens it', async () => {
    const asked: ToolSignInArgs[] = [];
    backend.on('tool_sign_in', (args) => {
      asked.push(args);
      return { address: ADDRESS };
    });
    show(server('needed', failed('tools.sign_in')));
    find('tool-sign-in')?.click();
    await vi.waitFor(() => expect(app.ui.link).toBe(ADDRESS));
    expect(asked).toEqual([{ id: 's', client_id: null }]);
  });

  it('asks for a client ID where one is needed', async () => {
    const asked: ToolSignInArgs[] = [];
    backend.on('tool_sign_in', (args) => {
      asked.push(args);
      return { address: ADDRESS };
    });
    show(server('needed', failed('tools.sign_in_client_id')));
    const field = find('tool-client-id');
    expect(find('tool-sign-in')?.disabled).toBe(true);
    if (field) field.value = ' abc ';
    field?.dispatchEvent(new Event('input'));
    flushSync();
    find('tool-sign-in')?.click();
    await vi.waitFor(() => expect(asked).toEqual([{ id: 's', client_id: 'abc' }]));
  });

  it('cancels the wait', async () => {
    backend.on('tool_sign_in_cancel', () => null);
    show(server('waiting', failed('tools.sign_in')));
    find('tool-sign-in-cancel')?.click();
    await vi.waitFor(() => expect(backend.called).toContain('tool_sign_in_cancel'));
  });

  it('leaves errors of a sign-in to the card', async () => {
    backend.on('tool_sign_in', () => {
      throw Object.assign(new Error(), failed('tools.sign_in_pkce'));
    });
    await expect(app.tools.signIn('s', null)).resolves.toBeNull();
    expect(app.tools.busy).toEqual([]);
  });
});

// @vitest-environment jsdom
import { flushSync, mount, unmount, type Component } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { setApp } from './context';
import { Inglenook } from './inglenook.svelte';
import { BackendError } from '../backend/backend';
import type { PackageKind, UpdateInfo, UpdatePhase } from '../backend/bindings';
import { FakeBackend } from '../test/fake-backend';
import UpdatePanel from '../features/settings/UpdatePanel.svelte';

const OFFER = { version: '9.8.7', published_ms: 1_893_553_445_000, notes: '- **Faster** answers' };

function info(phase: UpdatePhase, more: Partial<UpdateInfo> = {}): UpdateInfo {
  const hasOffer = !['unknown', 'checking', 'current'].includes(phase.name);
  return {
    method: 'replace',
    package: 'app_image',
    hosts: ['updates.example'],
    page: null,
    phase,
    offer: hasOffer ? OFFER : null,
    checked_ms: null,
    error: null,
    ...more,
  };
}

const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
const press = async (testid: string) => {
  find(testid)?.click();
  await vi.waitFor(() => flushSync());
};

describe('the panel of updates', () => {
  let backend: FakeBackend;
  let app: Inglenook;
  let mounted: object | undefined;

  beforeEach(() => {
    backend = new FakeBackend();
    Object.assign(backend, { kind: 'window' });
    app = new Inglenook(backend);
  });

  afterEach(() => {
    if (mounted) void unmount(mounted);
    mounted = undefined;
    document.body.replaceChildren();
  });

  async function show(shown: UpdateInfo) {
    backend.on('update_info', () => shown);
    const host = ((anchor: never) => {
      setApp(app);
      return UpdatePanel(anchor, {});
    }) as unknown as Component;
    mounted = mount(host, { target: document.body });
    await vi.waitFor(() => {
      flushSync();
      expect(app.updates.info).toEqual(shown);
    });
    flushSync();
  }

  const tell = (update: UpdateInfo) => {
    app.updates.apply({ type: 'update_changed', update });
    flushSync();
  };

  it('asks nobody until the button is pressed, and says what is sent', async () => {
    await show(info({ name: 'unknown' }));
    expect(find('update-status')?.textContent).toContain('only when you press the button');
    expect(document.body.textContent).toContain('one file from updates.example');
    expect(backend.called).toEqual(['update_info']);
    backend.on('update_check', () => info({ name: 'current' }, { checked_ms: 1 }));
    await press('update-check');
    await vi.waitFor(() => expect(app.updates.info?.phase.name).toBe('current'));
    flushSync();
    expect(find('update-status')?.textContent).toContain('newest version');
    expect(find('update-download')).toBeNull();
  });

  it('shows version, date and notes before anything is downloaded', async () => {
    await show(info({ name: 'available' }));
    expect(find('update-status')?.textContent).toContain('9.8.7');
    expect(find('update-status')?.textContent).toMatch(/2030/);
    expect(find('update-notes')?.querySelector('strong')?.textContent).toBe('Faster');
    backend.on('update_download', () =>
      info({ name: 'downloading', received_bytes: 0, total_bytes: null }),
    );
    await press('update-download');
    await vi.waitFor(() => expect(app.updates.info?.phase.name).toBe('downloading'));
    tell(info({ name: 'downloading', received_bytes: 5_000_000, total_bytes: 10_000_000 }));
    const bar = document.querySelector('progress');
    expect([bar?.value, bar?.max]).toEqual([5_000_000, 10_000_000]);
    backend.on('update_cancel', () => info({ name: 'available' }));
    await press('update-cancel');
    expect(backend.called.at(-1)).toBe('update_cancel');
  });

  it('restarts only when it is pressed, and shows why that failed', async () => {
    const restart = vi.fn<() => Promise<void>>();
    const error = { code: 'update.install', message: 'No room.', remedy: 'Make room.' };
    restart.mockRejectedValueOnce(new BackendError(error)).mockResolvedValueOnce();
    Object.assign(backend, { restartToUpdate: restart });
    await show(info({ name: 'ready' }));
    expect(restart).not.toHaveBeenCalled();
    await press('update-restart');
    await vi.waitFor(() => expect(app.updates.error).toEqual(error));
    flushSync();
    expect(document.body.textContent).toContain('No room.');
    await press('update-restart');
    await vi.waitFor(() => expect(app.updates.error).toBeNull());
  });

  it('shows why a download failed', async () => {
    const error = { code: 'update.signature', message: 'A wrong key.', remedy: 'Wait.' };
    await show(info({ name: 'available' }, { error }));
    expect(document.body.textContent).toContain('A wrong key.');
    expect(find('update-download')).not.toBeNull();
  });

  const byHand: [PackageKind, string][] = [
    ['deb', 'apt install'],
    ['rpm', 'dnf install'],
    ['flatpak', 'flatpak update'],
    ['source', 'build it again'],
  ];
  it.each(byHand)('names the way of a %s and downloads nothing', async (kind, words) => {
    await show(info({ name: 'available' }, { method: 'name', package: kind }));
    expect(find('update-status')?.textContent).toContain('9.8.7');
    expect(find('update-how')?.textContent).toContain(words);
    expect(find('update-download')).toBeNull();
  });

  it('says that a build without an address never asks', async () => {
    await show(info({ name: 'unknown' }, { method: 'no_address', package: 'deb', hosts: [] }));
    expect(find('update-status')?.textContent).toContain('never checks');
    expect(find('update-check')).toBeNull();
  });

  it('is no part of a page in a browser', async () => {
    await show(info({ name: 'unknown' }, { method: 'not_here' }));
    expect(find('updates')).toBeNull();
  });

  it('tells once what the check at the start found', async () => {
    tell(info({ name: 'checking' }));
    tell(info({ name: 'available' }));
    expect(app.updates.takeFound()).toBe('9.8.7');
    expect(app.updates.takeFound()).toBeNull();
    tell(info({ name: 'available' }));
    expect(app.updates.takeFound()).toBeNull();
  });
});

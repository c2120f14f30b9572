import { describe, expect, it } from 'vitest';
import { BackendError } from '../../backend/backend';
import type { ListeningServer } from '../../backend/bindings';
import { FakeBackend } from '../../test/fake-backend';
import { LocalServerState } from './store.svelte';

const LISTENING: ListeningServer = {
  port: 8642,
  for_devices: false,
  url: 'http://127.0.0.1:8642',
  device_url: null,
  key: 'secret',
  requests: [],
};

describe('the local server', () => {
  it('is started and stopped', async () => {
    const backend = new FakeBackend();
    backend.on('server_state', () => ({ state: 'running', ports: [8642] }));
    backend.on('local_server_start', () => ({ can_control: true, listening: LISTENING }));
    backend.on('local_server_stop', () => ({ can_control: true, listening: null }));
    const server = new LocalServerState(backend);
    await server.start();
    expect(server.own?.listening?.key).toBe('secret');
    expect(server.current).toEqual({ state: 'running', ports: [8642] });
    await server.stop();
    expect(server.own?.listening).toBeNull();
    expect(backend.called).toEqual([
      'local_server_start',
      'server_state',
      'local_server_stop',
      'server_state',
    ]);
  });

  it('says why it did not start, and what it is now', async () => {
    const backend = new FakeBackend();
    const error = { code: 'server.port_in_use', message: 'Taken.', remedy: 'Another port.' };
    backend.on('server_state', () => ({ state: 'off' }));
    backend.on('local_server_start', () => {
      throw new BackendError(error);
    });
    backend.on('local_server', () => ({ can_control: true, listening: null }));
    const server = new LocalServerState(backend);
    await server.start();
    expect(server.error).toEqual(error);
    expect([server.own?.can_control, server.own?.listening, server.busy]).toEqual([
      true,
      null,
      false,
    ]);
  });
});

// The stand-in's local server: started, stopped and watched from the page, never listening.

const SERVER = { state: 'running', ports: [8642] };
const LISTENING = { on: false, port: 8642, devices: false, key: '0123456789abcdef'.repeat(4) };
const SERVED = [['POST', '/v1/chat/completions', null, 0], ['POST', '/v1/chat/completions', 200, 214], ['GET', '/v1/models', 200, 3], ['POST', '/v1/embeddings', 401, 1]];
function localServer() {
  const { on, port, devices, key } = LISTENING;
  const requests = SERVED.map(([method, path, status, duration_ms], n) => ({ id: 9 - n, at_ms: Date.now() - n * 7000, method, path, status, duration_ms }));
  const listening = { port, for_devices: devices, url: `http://127.0.0.1:${port}`, device_url: devices ? `http://192.168.1.20:${port}` : null, key, requests };
  return { can_control: true, listening: on ? listening : null };
}

/** The calls; `row` finds a setting, `fail` makes an error. */
export const localServerCalls = (row, fail) => ({
  server_state: () => (LISTENING.on ? { state: 'running', ports: [LISTENING.port] } : SERVER),
  local_server: () => localServer(),
  local_server_start: () => { const port = row('server_port').value; if (port === 8643) throw fail(400, 'server.port_in_use', `Another program is already listening on 127.0.0.1:${port}.`, 'Choose another port in the settings of the local server.'); Object.assign(LISTENING, { on: true, port, devices: row('server_devices').value }); return localServer(); },
  local_server_stop: () => { LISTENING.on = false; return localServer(); },
  local_server_renew_key: () => { LISTENING.key = 'fedcba9876543210'.repeat(4); return localServer(); },
});

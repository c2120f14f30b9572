/** The local server: start and stop, its key, other devices, its requests. */
export const serving = {
  start: 'Start server',
  stop: 'Stop server',
  restart: 'Restart server',
  stale: 'The settings have changed since the server started.',
  key: 'Key',
  show: 'Show',
  hide: 'Hide',
  renew: 'New key…',
  renew_warning: 'The old key stops working at once. Programs and devices need the new one.',
  qr_label: 'QR code with the address and key for another device',
  devices_reached:
    'Scan the code with a phone in the same network, or open {url} and enter the key.',
  devices_warning:
    'Anyone who has this code can read and write your chats. The connection is not encrypted.',
  devices_none: 'This computer is not connected to a network.',
  requests: 'Latest requests',
  requests_none: 'No requests yet.',
  requests_open: 'running',
} as const;

import { expect, it } from 'vitest';
import { serverSaid } from './server-status';

it('the local server is said with its ports as they are typed', () => {
  expect(serverSaid({ state: 'off' })).toBe('Local server: off');
  expect(serverSaid({ state: 'running', ports: [8642, 9000] })).toBe(
    'Local server: running on port 8642, 9000',
  );
  expect(serverSaid({ state: 'failed', port: 8642 })).toContain('8642');
});

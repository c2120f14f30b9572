import { expect, it } from 'vitest';
import { describeServer } from './server-status';

it('the local server is said with its ports as they are typed', () => {
  expect(describeServer({ state: 'off' })).toBe('Local server: off');
  expect(describeServer({ state: 'running', ports: [8642, 9000] })).toBe(
    'Local server: running on port 8642, 9000',
  );
  expect(describeServer({ state: 'failed', port: 8642 })).toContain('8642');
});

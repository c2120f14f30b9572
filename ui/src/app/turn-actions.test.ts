// @vitest-environment jsdom
import { expect, it } from 'vitest';
import { FakeBackend } from '../test/fake-backend';
import { STATS, message } from '../test/fixtures';
import { Inglenook } from './inglenook.svelte';
import { messageActions } from './turn-actions';

it('continues text, and a call that was cut, but no whole call', () => {
  const app = new Inglenook(new FakeBackend());
  const stats = { ...STATS, finish: 'length' as const };
  const call = (args: string) => ({ id: 'a', name: 'f', arguments: args });
  const canContinue = (text: string, calls: readonly string[]) => {
    const cut = message({ role: 'assistant', text, stats, tool_calls: calls.map(call) });
    return messageActions(app, cut).some(({ testid }) => testid === 'continue');
  };
  expect(canContinue('Some text', [])).toBe(true);
  expect(canContinue('', ['{"x": "a'])).toBe(true);
  expect(canContinue('', [''])).toBe(true);
  expect(canContinue('', ['{"x": 1}'])).toBe(false);
  expect(canContinue('', ['{}', '{"x'])).toBe(false);
  expect(canContinue('', [])).toBe(false);
});

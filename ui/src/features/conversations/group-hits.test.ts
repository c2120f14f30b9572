import { expect, it } from 'vitest';
import type { MessageHit } from '../../backend/bindings';
import { groupHits } from './group-hits';

const hit = (conversation: string, message: string): MessageHit => ({
  conversation,
  title: `Title ${conversation}`,
  message,
  role: 'user',
  created_ms: 0,
  snippet: [{ text: 'fire', hit: true }],
});

it('stand by chat: matching titles first, then by the newest match', () => {
  const result = {
    titles: [{ conversation: 'b', title: 'Fire' }],
    messages: [hit('a', '1'), hit('b', '2'), hit('a', '3'), hit('c', '4')],
  };
  const groups = groupHits(result).map((it) => [
    it.conversation,
    it.isTitleHit,
    it.messages.map((message) => message.message),
  ]);
  expect(groups).toEqual([
    ['b', true, ['2']],
    ['a', false, ['1', '3']],
    ['c', false, ['4']],
  ]);
});

import { describe, expect, it } from 'vitest';
import type { ConversationSummary } from '../../backend/bindings';
import { folder, summary } from '../../test/fixtures';
import { arrangeSidebar } from './date-groups';

describe('the list', () => {
  it('has each conversation in one place', () => {
    const list = [
      summary('a', { activity: 1 }),
      summary('b', { activity: 2, pinned: true, folder: 'f' }),
      summary('c', { activity: 3, folder: 'f' }),
      summary('d', { activity: 4, folder: 'gone' }),
      summary('e', { activity: 5, folder: 'f' }),
    ];
    const shown = arrangeSidebar(list, [folder('f'), folder('g')], 2);
    const ids = (of: readonly ConversationSummary[]) => of.map((it) => it.id).join('');
    expect(ids(shown.pinned)).toBe('b');
    expect([...shown.inside].map(([id, list]) => [id, ids(list)])).toEqual([
      ['f', 'ec'],
      ['g', ''],
    ]);
    expect(shown.groups.map((group) => ids(group.conversations))).toEqual(['da']);
  });
});

import { describe, expect, it } from 'vitest';
import { groupByDate } from './date-groups';

const at = (text: string) => new Date(text).getTime();
// A Saturday; the week began on Monday the 16th.
const NOW = at('2026-11-21T14:30:00');

const CASES: [string, string][] = [
  ['2026-11-21T14:29:59', 'today'],
  ['2026-11-21T00:00:00', 'today'],
  ['2026-11-22T09:00:00', 'today'],
  ['2026-11-20T23:59:59', 'yesterday'],
  ['2026-11-20T00:00:00', 'yesterday'],
  ['2026-11-19T23:59:59', 'week'],
  ['2026-11-16T00:00:00', 'week'],
  ['2026-11-15T23:59:59', 'month'],
  ['2026-11-01T00:00:00', 'month'],
  ['2026-10-31T23:59:59', 'older'],
  ['2019-01-01T00:00:00', 'older'],
];

const summary = (updated: string) => ({
  id: updated,
  title: updated,
  model: 'starter',
  created_ms: 0,
  updated_ms: at(updated),
  active_turn: null,
  folder: null,
  pinned: false,
  deleted_ms: null,
  activity: at(updated),
  revision: 1,
});

describe('groupByDate', () => {
  it.each(CASES)('%s is %s', (updated, name) => {
    expect(groupByDate([summary(updated)], NOW).map((it) => it.name)).toEqual([name]);
  });

  it('puts the newest first and leaves empty groups out', () => {
    const list = ['2026-11-21T08:00:00', '2019-01-01T00:00:00', '2026-11-21T09:00:00'];
    const groups = groupByDate(list.map(summary), NOW);
    expect(groups.map((it) => [it.name, it.conversations.map((c) => c.id)])).toEqual([
      ['today', ['2026-11-21T09:00:00', '2026-11-21T08:00:00']],
      ['older', ['2019-01-01T00:00:00']],
    ]);
  });

  it('on a Monday has no day of this week before yesterday', () => {
    const monday = at('2026-11-16T10:00:00');
    const names = (updated: string) => groupByDate([summary(updated)], monday)[0]?.name;
    expect(names('2026-11-15T10:00:00')).toBe('yesterday');
    expect(names('2026-11-14T10:00:00')).toBe('month');
  });

  it('holds on the first of a month', () => {
    const first = at('2026-11-01T10:00:00');
    expect(groupByDate([summary('2026-10-30T10:00:00')], first)[0]?.name).toBe('week');
  });
});

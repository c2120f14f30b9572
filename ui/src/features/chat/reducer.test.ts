import { describe, expect, it } from 'vitest';
import type { TurnEvent, TurnEventKind } from '../../backend/bindings';
import { reduce, isOver, newTurn } from './reducer';
import { STATS } from '../../test/fixtures';

const KINDS: TurnEventKind[] = [
  { type: 'queued', position: 1 },
  { type: 'loading', fraction: 0.5 },
  { type: 'prefill', done: 10, total: 20 },
  { type: 'reasoning', text: 'Let me ', ids: [1] },
  { type: 'reasoning', text: 'see.', ids: [2] },
  { type: 'text', text: 'Good ', ids: [3] },
  { type: 'text', text: 'day.', ids: [4, 5] },
  { type: 'done', stats: STATS },
];

const EVENTS: TurnEvent[] = KINDS.map((kind, index) => ({ seq: index + 1, turn: 't', kind }));
const start = newTurn('t', 'm');

/** The turn after each batch in order; stops at a gap. */
function run(batches: TurnEvent[][], nowMs = 5) {
  let turn = start;
  let gap = false;
  for (const batch of batches) {
    ({ turn, gap } = reduce(turn, batch, nowMs));
    if (gap) break;
  }
  return { turn, gap };
}

describe('reduce', () => {
  const whole = run([EVENTS]).turn;

  it('tells the whole story', () => {
    expect(whole).toMatchObject({
      seq: 8,
      phase: 'done',
      text: 'Good day.',
      reasoning: 'Let me see.',
      stats: STATS,
    });
    expect(isOver(whole)).toBe(true);
  });

  it('passes through the phases', () => {
    const phases = EVENTS.map((_, end) => run([EVENTS.slice(0, end + 1)]).turn.phase);
    expect(phases).toEqual([
      'queued',
      'loading',
      'prefill',
      'reasoning',
      'reasoning',
      'answering',
      'answering',
      'done',
    ]);
  });

  it('does not care how events are cut into batches', () => {
    for (let cut = 0; cut <= EVENTS.length; cut++) {
      expect(run([EVENTS.slice(0, cut), EVENTS.slice(cut)]).turn).toEqual(whole);
    }
    expect(run(EVENTS.map((event) => [event])).turn).toEqual(whole);
  });

  it('is safe to replay from anywhere that was seen', () => {
    for (let from = 0; from < EVENTS.length; from++) {
      for (let seen = from; seen <= EVENTS.length; seen++) {
        expect(run([EVENTS.slice(0, seen), EVENTS.slice(from)]).turn).toEqual(whole);
      }
    }
  });

  it('ignores duplicates within a batch', () => {
    expect(run([EVENTS.flatMap((event) => [event, event])]).turn).toEqual(whole);
  });

  it('stops before a gap and goes on once it is filled', () => {
    const holed = EVENTS.filter((event) => event.seq !== 6);
    const first = run([holed]);
    expect(first.gap).toBe(true);
    expect(first.turn).toMatchObject({ seq: 5, text: '', reasoning: 'Let me see.' });
    expect(reduce(first.turn, EVENTS.slice(5), 5).turn).toEqual(whole);
  });

  it('ignores the events of another turn', () => {
    const other = EVENTS.map((event) => ({ ...event, turn: 'other' }));
    expect(reduce(start, other, 5)).toEqual({ turn: start, gap: false });
  });

  it('keeps what was written when a turn fails', () => {
    const error = { code: 'x', message: 'It broke.', remedy: 'Mend it.' };
    const failed = run([
      [...EVENTS.slice(0, 6), { seq: 7, turn: 't', kind: { type: 'failed', error } }],
    ]).turn;
    expect(failed).toMatchObject({ phase: 'failed', text: 'Good ', error });
  });

  it('keeps calls in their order and leaves notices to the window', () => {
    const call = (id: string) => ({ id, name: 'look', arguments: '{}' });
    const error = { code: 'a.b', message: 'Hm.', remedy: '' };
    const kinds: TurnEventKind[] = [
      { type: 'text', text: 'I look.', ids: [1] },
      { type: 'tool_call', call: call('a') },
      { type: 'notice', error },
      { type: 'tool_call', call: call('b') },
    ];
    const { turn } = run([kinds.map((kind, index) => ({ seq: index + 1, turn: 't', kind }))]);
    expect(turn).toMatchObject({ text: 'I look.', calls: [call('a'), call('b')], error: null });
  });

  it('times the reasoning by the clock it is given', () => {
    let turn = reduce(start, EVENTS.slice(0, 4), 1000).turn;
    turn = reduce(turn, EVENTS.slice(4, 5), 3000).turn;
    turn = reduce(turn, EVENTS.slice(5, 6), 4000).turn;
    turn = reduce(turn, EVENTS.slice(6), 9000).turn;
    expect([turn.reasoningFromMs, turn.reasoningToMs]).toEqual([1000, 4000]);
  });

  it('takes text for reasoning once its end tag says so', () => {
    const kinds: TurnEventKind[] = [
      { type: 'text', text: 'Hm.\n', ids: [] },
      { type: 'revised', text: '', reasoning: 'Hm.' },
      { type: 'text', text: 'Good day.', ids: [] },
    ];
    const events = kinds.map((kind, index) => ({ seq: index + 1, turn: 't', kind }));
    expect(run([events], 7).turn).toMatchObject({
      phase: 'answering',
      text: 'Good day.',
      reasoning: 'Hm.',
      reasoningToMs: 7,
    });
  });
});

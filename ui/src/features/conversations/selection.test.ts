import { describe, expect, it } from 'vitest';
import { Selection } from './selection.svelte';

describe('Selection', () => {
  it('toggles, reaches and starts over', () => {
    const selection = new Selection();
    const order = ['a', 'b', 'c', 'd'];
    selection.toggle('b');
    selection.extendTo('d', order);
    expect(selection.ids).toEqual(['b', 'c', 'd']);
    selection.toggle('c');
    expect(selection.ids).toEqual(['b', 'd']);
    selection.restart('a');
    expect(selection.size).toBe(0);
    selection.extendTo('b', order);
    expect(selection.ids).toEqual(['a', 'b']);
  });
});

import { describe, expect, it } from 'vitest';
import { imageBeside } from './image-steps';

const IMAGES = ['a', 'b', 'c'].map((id) => ({ id, name: `${id}.png` }));

describe('images beside one', () => {
  it.each<[string | undefined, -1 | 1, string | null]>([
    ['a', 1, 'b'],
    ['b', -1, 'a'],
    ['a', -1, null],
    ['c', 1, null],
    ['of a draft', 1, null],
    [undefined, -1, null],
  ])('%s %i', (id, step, expected) => {
    expect(imageBeside(IMAGES, id, step)?.id ?? null).toBe(expected);
  });
});

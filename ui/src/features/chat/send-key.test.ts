import { describe, expect, it } from 'vitest';
import { press } from '../../test/press';
import { sends } from './send-key';

describe('sends', () => {
  it.each([
    ['Enter', 'enter', true],
    ['Ctrl+Enter', 'enter', true],
    ['Shift+Enter', 'enter', false],
    ['Alt+Enter', 'enter', false],
    ['Enter', 'mod_enter', false],
    ['Ctrl+Enter', 'mod_enter', true],
    ['a', 'enter', false],
  ])('%s with %s: %s', (text, sendKey, expected) => {
    expect(sends(press(text), sendKey, false)).toBe(expected);
  });

  it('never sends what an input method is still composing', () => {
    expect(sends({ ...press('Enter'), isComposing: true }, 'enter', false)).toBe(false);
    expect(sends({ ...press('Enter'), keyCode: 229 }, 'enter', false)).toBe(false);
  });
});

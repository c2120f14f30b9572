import { describe, expect, it } from 'vitest';
import { press } from '../test/press';
import { SHORTCUTS, commandFor, isTyping, keyNames } from './keys';

describe('shortcuts', () => {
  it.each([
    ['Ctrl+n', false, 'new-chat'],
    ['Ctrl+Shift+O', false, 'new-chat'],
    ['Cmd+n', true, 'new-chat'],
    ['Ctrl+n', true, null],
    ['Cmd+n', false, null],
    ['Ctrl+Shift+n', false, 'new-folder'],
    ['Ctrl+Alt+n', false, null],
    ['n', false, null],
    ['Ctrl+b', false, 'toggle-sidebar'],
    ['Ctrl+,', false, 'settings'],
    ['Ctrl+Shift+M', false, 'model-picker'],
    ['Escape', false, 'stop'],
    ['Shift+Escape', false, 'focus-composer'],
    ['F2', false, 'rename'],
    ['Ctrl+Shift+Backspace', false, 'delete'],
    ['Ctrl+/', false, 'shortcuts'],
    // A German keyboard needs Shift for the slash.
    ['Ctrl+Shift+/', false, 'shortcuts'],
    ['Ctrl+a', false, null],
  ])('%s (mac: %s) → %s', (text, mac, command) => {
    expect(commandFor(press(text), mac)).toBe(command);
  });

  it('tells Shift+/ from / by the key that was pressed', () => {
    expect(commandFor({ ...press('Ctrl+Shift+?'), code: 'Slash' }, false)).toBe('help');
  });

  it('has no key twice', () => {
    const keys = SHORTCUTS.flatMap((it) => it.keys);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('is written as the keyboard has it', () => {
    expect(keyNames('Mod+Shift+O', false)).toEqual(['Ctrl', 'Shift', 'O']);
    expect(keyNames('Mod+Shift+O', true)).toEqual(['⌘', '⇧', 'O']);
  });
});

describe('typing', () => {
  it.each([
    ['a', true],
    ['Shift+A', true],
    ['é', true],
    ['/', true],
    [' ', false],
    ['Ctrl+c', false],
    ['Alt+x', false],
    ['Enter', false],
    ['ArrowDown', false],
    ['F5', false],
  ])('%s: %s', (text, expected) => {
    expect(isTyping(press(text))).toBe(expected);
  });
});

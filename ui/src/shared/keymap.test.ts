import { afterEach, describe, expect, it } from 'vitest';
import { keymap } from './keymap.svelte';
import { commandFor, keyNotation } from './keys';

function press(text: string, code = '') {
  const parts = text.split('+');
  const key = parts.at(-1) === '' ? '+' : (parts.at(-1) ?? '');
  return {
    key,
    code,
    ctrlKey: parts.includes('Ctrl'),
    metaKey: parts.includes('Cmd'),
    altKey: parts.includes('Alt'),
    shiftKey: parts.includes('Shift'),
  };
}

afterEach(() => {
  keymap.custom = {};
});

describe('keys that were chosen', () => {
  it('take the place of those that came', () => {
    keymap.custom = { settings: ['Mod+Alt+S'] };
    expect(commandFor(press('Ctrl+Alt+s'), false)).toBe('settings');
    expect(commandFor(press('Ctrl+,'), false)).toBe(null);
  });

  it('can be none', () => {
    keymap.custom = { settings: [] };
    expect(commandFor(press('Ctrl+,'), false)).toBe(null);
  });

  it('leave the one that had them', () => {
    expect(keymap.holder('Mod+B', 'settings')?.id).toBe('toggle-sidebar');
    keymap.custom = keymap.with('settings', ['Mod+B']);
    expect(keymap.custom).toEqual({ settings: ['Mod+B'], 'toggle-sidebar': [] });
    expect(commandFor(press('Ctrl+b'), false)).toBe('settings');
  });

  it('go back to how they came, from whoever has them', () => {
    keymap.custom = keymap.with('settings', ['Mod+B']);
    keymap.custom = keymap.without('toggle-sidebar');
    expect(keymap.custom).toEqual({ settings: [] });
    expect(commandFor(press('Ctrl+b'), false)).toBe('toggle-sidebar');
  });
});

describe('keys on many keyboards', () => {
  it.each([
    ['Ctrl+Shift+:', 'Semicolon', 'copy-code'],
    ['Ctrl++', 'Equal', 'zoom-in'],
    ['Ctrl+Shift++', 'Equal', 'zoom-in'],
    ['Ctrl+=', 'Equal', 'zoom-in'],
    ['Ctrl+-', 'Minus', 'zoom-out'],
    ['Ctrl+2', 'Digit2', 'models'],
    ['Ctrl+Shift+2', 'Digit2', 'models'],
  ])('%s (%s) → %s', (text, code, command) => {
    expect(commandFor(press(text, code), false)).toBe(command);
  });
});

describe('recording', () => {
  it.each([
    ['Ctrl+k', '', 'Mod+K'],
    ['Ctrl+Shift+k', '', 'Mod+Shift+K'],
    ['Ctrl+Alt+k', '', 'Mod+Alt+K'],
    ['Ctrl+Shift+:', 'Semicolon', 'Mod+Shift+;'],
    ['Ctrl++', '', 'Mod+Plus'],
    ['Ctrl+ ', '', 'Mod+Space'],
    ['F5', '', 'F5'],
    ['k', '', null],
    ['Shift+K', '', null],
    ['Ctrl+Control', '', null],
    ['Cmd+k', '', null],
  ])('%s → %s', (text, code, expected) => {
    expect(keyNotation(press(text, code), false)).toBe(expected);
  });

  it('what is recorded is recognised', () => {
    for (const [text, code] of [
      ['Ctrl+k', ''],
      ['Ctrl+Shift+:', 'Semicolon'],
      ['Ctrl+Alt+ö', ''],
      ['F7', ''],
    ] as const) {
      const keys = keyNotation(press(text, code), false);
      keymap.custom = { trash: keys === null ? [] : [keys] };
      expect(commandFor(press(text, code), false)).toBeTruthy();
    }
  });
});

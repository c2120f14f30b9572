// @vitest-environment jsdom
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { flushSync, mount, unmount } from 'svelte';
import { describe, expect, it, vi } from 'vitest';
import { guardComposition, isComposing } from '../shared/composition';
import TitleField from '../shared/TitleField.svelte';
import PresetNameField from '../features/options/PresetNameField.svelte';
import { onKey } from './commands';
import { Inglenook } from './inglenook.svelte';
import { sends } from '../features/chat/send-key';
import { FakeBackend } from '../test/fake-backend';

/** Chromium and Firefox: within the composition. WebKit: behind its end. */
const COMPOSING = [{ isComposing: true }, { keyCode: 229 }, { isComposing: true, keyCode: 229 }];

function pressed(key: string, how: object): KeyboardEvent {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...how });
  // jsdom does not take the key code.
  Object.defineProperty(event, 'keyCode', { value: 'keyCode' in how ? how.keyCode : 0 });
  return event;
}

describe('a key of an input method', () => {
  it.each(COMPOSING)('is recognised: %j', (how) => {
    expect(isComposing(pressed('Enter', how))).toBe(true);
    expect(isComposing(pressed('Enter', {}))).toBe(false);
  });

  it.each(COMPOSING)('sends nothing and runs no command: %j', (how) => {
    expect(sends(pressed('Enter', how), 'enter', false)).toBe(false);
    expect(onKey(new Inglenook(new FakeBackend()), pressed('Escape', how))).toBe(false);
  });

  it.each(COMPOSING)('ends no renaming: %j', (how) => {
    const ondone = vi.fn();
    const field = mount(TitleField, { target: document.body, props: { title: 'あ', ondone } });
    flushSync();
    const input = document.querySelector('input');
    for (const key of ['Enter', 'Escape']) input?.dispatchEvent(pressed(key, how));
    expect(ondone).not.toHaveBeenCalled();
    input?.dispatchEvent(pressed('Enter', {}));
    expect(ondone).toHaveBeenCalledExactlyOnceWith('あ');
    void unmount(field);
  });

  it.each(COMPOSING)('cancels no name of a preset: %j', (how) => {
    const ondone = vi.fn();
    const field = mount(PresetNameField, { target: document.body, props: { name: '名', ondone } });
    flushSync();
    document.querySelector('input')?.dispatchEvent(pressed('Escape', how));
    expect(ondone).not.toHaveBeenCalled();
    void unmount(field);
  });

  it.each(COMPOSING)('submits no form and closes no dialog: %j', (how) => {
    const input = document.body.appendChild(document.createElement('input'));
    const prevented = (key: string, keyHow: object) => {
      const event = pressed(key, keyHow);
      input.dispatchEvent(event);
      return event.defaultPrevented;
    };
    window.addEventListener('keydown', guardComposition, { capture: true });
    expect([prevented('Enter', how), prevented('Escape', how)]).toEqual([true, true]);
    expect([prevented('Enter', {}), prevented('a', how)]).toEqual([false, false]);
    window.removeEventListener('keydown', guardComposition, { capture: true });
  });
});

describe('key handlers', () => {
  /** Describe keys; their callers have asked. */
  const HELPERS = ['keys.ts', 'arrow-keys.ts', 'raw-paste.ts'];
  const root = join(__dirname, '..');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (it) =>
      /\.(?:ts|svelte)$/.test(it) &&
      !it.endsWith('.test.ts') &&
      !HELPERS.some((name) => it.endsWith(`/${name}`)),
  );

  it.each(
    files.filter((it) =>
      /event\.key\b|inlineArrowStep\(/.test(readFileSync(join(root, it), 'utf8')),
    ),
  )('%s asks whether an input method is at work', (file) => {
    const source = readFileSync(join(root, file), 'utf8');
    expect(source).toMatch(/isComposing\(event\)/);
    expect(source).not.toContain('event.isComposing');
  });
});

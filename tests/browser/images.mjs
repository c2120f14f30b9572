// Images with messages, in a real browser against `nook serve`: pasted, refused by a model that can't see, sent to one that
// can, opened, and there again after a reload.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ANSWERED, KEY, ROOT, assert, browse, byId, look, until } from './scenario.mjs';

const FOLDER = join(ROOT, 'tests/reference/vision');

/** Pastes a picture into the message box. */
function paste(page, name, bytes) {
  return page.evaluate(
    ([name, base64]) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const data = new DataTransfer();
      data.items.add(new File([bytes], name, { type: 'image/png' }));
      const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
      document.querySelector('[data-testid="composer"]').dispatchEvent(event);
    },
    [name, bytes.toString('base64')],
  );
}

export async function imagesGoWithMessages(origin, server) {
  await server.call('settings_set', { key: 'titles', value: false });
  await server.call('settings_set', { key: 'max_tokens', value: 8 });
  await server.call('model_add', { path: join(FOLDER, 'gemma3') });
  const { page, complaints, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).waitFor();
    await paste(page, 'gradient.png', readFileSync(join(FOLDER, 'images/gradient.png')));
    await page.locator(`${byId('file')}[data-state="ready"] img`).waitFor();
    // The built-in model can't see: another one is offered.
    await page.locator(byId('step-seeing')).click();
    await until(page, () => /tokens/.test(document.querySelector('[data-testid="file-detail"]')?.textContent ?? ''));
    // The browser tells of every answer that isn't 200: here of the counts that were refused.
    const told = complaints.splice(0);
    assert(told.every((line) => /status of 400/.test(line)), `the console complains: ${told.join('\n')}`);
    await look(page, 'images-chosen');
    await page.locator(byId('composer')).press('Enter');
    await page.locator(ANSWERED).first().waitFor({ timeout: 120_000 });
    await page.reload();
    const thumb = page.locator(`${byId('image-thumb')} img`);
    await thumb.waitFor();
    assert((await thumb.getAttribute('alt')) === 'gradient.png', 'the name is its text');
    await look(page, 'images-sent');
    await page.locator(byId('image-thumb')).focus();
    await page.keyboard.press('Enter');
    await page.locator(byId('image-original')).waitFor();
    await look(page, 'images-opened');
    await page.keyboard.press('Escape');
    await until(page, () => !document.querySelector('[data-testid="image-original"]'));
    await assertQuiet();
  } finally {
    await close();
  }
}

// Images with messages, in a real browser against `nook serve`. They are pasted, refused by a model that can't see, sent to
// one that can, opened, and there again after a reload. They are dropped, branched and exported, and gone with their chats.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { ANSWERED, KEY, QUESTION, ROOT, assert, browse, byId, look, until } from './scenario.mjs';

const FOLDER = join(ROOT, 'tests/reference/vision');

/** Pastes a picture into the message box. */
function paste(page, name, bytes) {
  return page.evaluate(
    ([name, base64]) => {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const data = new DataTransfer();
      data.items.add(new File([bytes], name, { type: 'image/png' }));
      const event = new ClipboardEvent('paste', {
        clipboardData: data,
        bubbles: true,
        cancelable: true,
      });
      document.querySelector('[data-testid="composer"]').dispatchEvent(event);
    },
    [name, bytes.toString('base64')],
  );
}

const PASTED = readFileSync(join(FOLDER, 'images/gradient.png'));
const DROPPED = readFileSync(join(FOLDER, 'images/text_palette.png'));
const THUMBS = `${byId('image-thumb')} img`;

/** Lets a picture go over the page, and sends it. */
async function dropAndSend(page) {
  const data = await page.evaluateHandle((base64) => {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], 'dropped.png', { type: 'image/png' }));
    return data;
  }, DROPPED.toString('base64'));
  await page.dispatchEvent('body', 'dragover', { dataTransfer: data });
  await page.locator(byId('drop-zone')).waitFor();
  await page.dispatchEvent('body', 'drop', { dataTransfer: data });
  await page.locator(`${byId('file')}[data-state="ready"] img`).waitFor();
  await page.locator(byId('composer')).press('Enter');
  await page.locator(ANSWERED).nth(1).waitFor({ timeout: 120_000 });
  await page.locator(`${THUMBS}[alt="dropped.png"]`).waitFor();
}

async function showOriginal(page, at) {
  await page.locator(byId('image-thumb')).nth(at).focus();
  await page.keyboard.press('Enter');
  await page.locator(byId('image-original')).waitFor();
  await look(page, `images-opened-${at}`);
  await page.keyboard.press('Escape');
  await until(page, () => !document.querySelector('[data-testid="image-original"]'));
}

/** A new chat of the first message and its answer. */
async function branchOff(page) {
  await page.locator(ANSWERED).first().locator(byId('message-menu')).click();
  await page.locator(byId('message-branch')).click();
  await until(page, () => document.querySelectorAll('[data-testid="conversation-row"]').length === 2);
  await until(page, () => document.querySelectorAll('[data-testid="message-user"]').length === 1);
  await showOriginal(page, 0);
}

async function menuOfChat(page, ...items) {
  await page.locator(byId('conversation-row')).first().hover();
  await page.locator(byId('conversation-menu')).first().click();
  for (const item of items) await page.locator(byId(item)).click();
}

/** The open chat as Markdown. */
async function exported(page) {
  const [download] = await Promise.all([page.waitForEvent('download'), menuOfChat(page, 'conversation-export', 'export-md')]);
  return readFileSync(await download.path(), 'utf8');
}

/** Names of files below the data folder that have these bytes. */
function filesWith(dir, bytes) {
  const files = readdirSync(dir, {
    recursive: true,
    withFileTypes: true,
  }).filter((it) => it.isFile());
  const paths = files.map((it) => join(it.parentPath ?? it.path, it.name));
  return paths.filter((path) => readFileSync(path).includes(bytes));
}

async function deleteAllForGood(page) {
  for (let left = 2; left > 0; left--) {
    await menuOfChat(page, 'conversation-delete');
    await until(page, (n) => document.querySelectorAll('[data-testid="conversation-row"]').length === n, left - 1);
  }
  await page.locator(byId('trash-open')).click();
  await page.locator(byId('trash-row')).nth(1).waitFor();
  await page.locator(byId('trash-empty')).click();
  await page.locator(byId('forget-confirm')).click();
  await until(page, () => !document.querySelector('[data-testid="trash-row"]'));
}

/** From the end of a data URL: its beginning is that of other pictures, too. */
const tailOf = (url) => Buffer.from(url.slice(-48));

async function itLeavesWithItsChats(page, server) {
  const thumbnails = await page.locator(THUMBS).evaluateAll((all) => all.map((it) => it.src));
  assert(thumbnails.length === 2, `${thumbnails.length} small pictures`);
  const kept = [PASTED.subarray(-64), DROPPED.subarray(-64), ...thumbnails.map(tailOf)];
  for (const [at, bytes] of kept.entries()) assert(filesWith(server.dir, bytes).length > 0, `${at} is kept`);
  await branchOff(page);
  const markdown = await exported(page);
  assert(markdown.includes('![gradient.png]') && markdown.includes(PASTED.toString('base64')), 'the export has the picture');
  assert(!markdown.includes('dropped.png'), 'the branch ends before the second picture');
  await deleteAllForGood(page);
  for (const bytes of kept) {
    const files = filesWith(server.dir, bytes);
    assert(files.length === 0, `deleted for good, but still in ${files}`);
  }
}

export async function imagesGoWithMessages(origin, server) {
  await server.call('settings_set', { key: 'titles', value: false });
  await server.call('settings_set', { key: 'max_tokens', value: 8 });
  await server.call('model_add', { path: join(FOLDER, 'gemma3') });
  const { page, complaints, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).waitFor();
    await paste(page, 'gradient.png', PASTED);
    await page.locator(`${byId('file')}[data-state="ready"] img`).waitFor();
    // The built-in model can't see: another one is offered.
    await page.locator(byId('step-seeing')).click();
    await until(page, () => /tokens/.test(document.querySelector('[data-testid="file-detail"]')?.textContent ?? ''));
    // The browser tells of every answer that isn't 200: here of the counts that were refused.
    const told = complaints.splice(0);
    assert(
      told.every((line) => /status of 400/.test(line)),
      `the console complains: ${told.join('\n')}`,
    );
    await look(page, 'images-chosen');
    await page.locator(byId('composer')).press('Enter');
    await page.locator(ANSWERED).first().waitFor({ timeout: 120_000 });
    await page.reload();
    const thumb = page.locator(THUMBS);
    await thumb.waitFor();
    assert((await thumb.getAttribute('alt')) === 'gradient.png', 'the name is its text');
    await look(page, 'images-sent');
    await showOriginal(page, 0);
    await dropAndSend(page);
    assert((await page.locator(QUESTION).count()) === 2, 'a second message');
    await itLeavesWithItsChats(page, server);
    // A draft that was being counted when its chat was deleted.
    const isOfDeleted = (line) => /status of 404/.test(line) && line.endsWith('/api/draft_count');
    complaints.push(...complaints.splice(0).filter((line) => !isOfDeleted(line)));
    await assertQuiet();
  } finally {
    await close();
  }
}

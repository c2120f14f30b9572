// Notes of the memory page: written, taken from a message, counted in the context, turned off for a chat.

import { ANSWERED, KEY, assert, browse, byId, look } from './scenario.mjs';

async function ask(page, text, n) {
  await page.locator(byId('composer')).fill(text);
  await page.keyboard.press('Enter');
  await page.locator(ANSWERED).nth(n).waitFor({ timeout: 120_000 });
}

/** Whether the open chat's context names notes. */
async function hasNotes(page) {
  await page.locator(byId('context-ring')).click();
  await page.locator(byId('context-parts')).waitFor();
  await page.waitForTimeout(500);
  const n = await page.locator(`${byId('context-parts')} [data-kind="memory"]`).count();
  await page.keyboard.press('Escape');
  return n === 1;
}

export async function notesAreAPartOfPrompts(origin, server) {
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).waitFor();
    await ask(page, 'I live in Kiel. How do I add a model?', 0);
    assert(!(await hasNotes(page)), 'something was noted by itself');
    assert((await server.call('notes_list', {})).length === 0, 'something was noted by itself');

    await page.locator(byId('message-user')).first().hover();
    await page.locator(byId('message-menu')).first().click();
    await page.locator(byId('message-remember')).click();
    await page.locator(byId('note-offered')).fill('Lives in Kiel.');
    await page.locator(byId('note-offered-save')).click();
    await page.locator(byId('note-offered')).waitFor({ state: 'detached' });
    assert(await hasNotes(page), 'the context does not show the note');

    await page.locator(byId('memory-open')).click();
    await page.locator(byId('note-new')).fill('Uses metric units.');
    await page.locator(byId('note-new-save')).click();
    await page.locator(byId('note')).nth(1).waitFor();
    await page.locator(`${byId('memory-share')} summary`).click();
    const block = await page.locator(`${byId('memory-share')} pre`).innerText();
    assert(block.includes('- Lives in Kiel.\n- Uses metric units.'), `the block is ${block}`);
    await look(page, 'memory');
    await page.locator(byId('note-remove')).first().click();
    await page.locator(byId('toast-undo')).click();
    await page.locator(byId('note')).nth(1).waitFor();
    await page.locator(byId('memory-close')).click();

    await page.locator(byId('chat-options')).click();
    await page.locator(byId('chat-memory')).selectOption('off');
    await page.locator(byId('chat-options')).click();
    assert(!(await hasNotes(page)), 'the chat turned the notes off');
    await assertQuiet();
  } finally {
    await close();
  }
}

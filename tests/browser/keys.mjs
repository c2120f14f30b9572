// Keys alone: Tab comes to everything, the focus is seen, and what is chosen works.

import { ANSWERED, assert, browse, byId, standIn, until } from './scenario.mjs';

/** One that is read, and one that can't be. */
export async function choose(page) {
  await page.locator(byId('attach-input')).setInputFiles([
    { name: 'plan.md', mimeType: 'text/markdown', buffer: Buffer.from('# Plan\n') },
    { name: 'picture.png', mimeType: 'image/png', buffer: Buffer.from('\x89PNG') },
  ]);
  await page.locator(`${byId('file')}[data-state="failed"]`).waitFor();
  await until(page, () => /tokens/.test(document.querySelector('[data-testid="file-detail"]').textContent));
}

/** Tab comes to each of these, and the focus is seen wherever it is. */
async function reaches(page, wanted, presses = 80) {
  const reached = new Set();
  for (let n = 0; n < presses; n++) {
    await page.keyboard.press('Tab');
    const { id, ring } = await page.evaluate(() => {
      const it = document.activeElement;
      // Past the last one the browser's own things come.
      if (it === document.body) return { id: '', ring: true };
      const style = getComputedStyle(it);
      const within = it.closest('form')?.matches(':has(textarea:focus)') ?? false;
      return { id: it.dataset.testid ?? it.getAttribute('aria-label') ?? '', ring: style.outlineStyle !== 'none' || within };
    });
    assert(ring, `no visible focus on ${id}`);
    reached.add(id);
  }
  for (const id of wanted) assert(reached.has(id), `${id} is not reached by Tab: ${[...reached]}`);
}

const focused = (page) => page.evaluate(() => document.activeElement.dataset.testid);

/** Files of a message, tools and plugins, without a pointer. */
export async function keysAloneWorkFilesAndTools() {
  const server = await standIn(400);
  const { page, close } = await browse(server.origin);
  try {
    await page.locator(byId('composer')).fill('What does it say?');
    await choose(page);
    await reaches(page, ['attach', 'file-open', 'file-remove', 'composer']);
    await page.locator(byId('file-remove')).last().focus();
    await page.keyboard.press('Enter');
    await until(page, () => document.querySelectorAll('[data-testid="file"]').length === 1);
    await page.locator(byId('file-open')).focus();
    await page.keyboard.press('Enter');
    await page.locator(byId('file-text')).waitFor();
    await reaches(page, ['file-text'], 6);
    await page.keyboard.press('Escape');
    await page.locator(byId('file-text')).waitFor({ state: 'detached' });
    assert((await focused(page)) === 'file-open', `the focus is on ${await focused(page)}`);
    await page.locator(byId('composer')).press('Enter');
    await page.locator(ANSWERED).waitFor();
    await page.locator('[role="region"][aria-label="Chat"]').focus();
    await page.keyboard.press('Home');
    await page.locator(byId('sent-files')).waitFor();
    await page.keyboard.press('Tab');
    assert((await focused(page)) === 'file-open', `after the conversation comes ${await focused(page)}`);
    await page.keyboard.press('Enter');
    await page.locator(byId('file-text')).waitFor();
    await page.keyboard.press('Escape');
    await toolsByKeys(page);
  } finally {
    await close();
    await server.close();
  }
}

async function toolsByKeys(page) {
  await page.keyboard.press('Control+,');
  await page.locator(`${byId('settings-section')}[data-section="Tools"]`).focus();
  await page.keyboard.press('Enter');
  await page.locator(byId('tool-list-open')).first().focus();
  await page.keyboard.press('Enter');
  await reaches(page, ['tool-server-menu', 'tool-list-open', 'read_file is available to the model', 'Never ask before read_file',
    'tool-server-add', 'tool-server-paste', 'plugin-switch']);
  await page.locator(byId('tool-server-menu')).first().focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Escape');
  assert((await focused(page)) === 'tool-server-menu', `the focus is on ${await focused(page)}`);
  const plugin = page.locator(`${byId('plugin')}[data-name="recipes"]`);
  await plugin.locator(byId('plugin-switch')).focus();
  await page.keyboard.press('Space');
  await plugin.and(page.locator('[data-on="true"]')).waitFor();
  await page.locator(byId('tool-server-add')).focus();
  await page.keyboard.press('Enter');
  await page.keyboard.type('notes');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.type('uvx notes');
  await page.keyboard.press('Enter');
  await page.getByText('uvx notes', { exact: true }).waitFor();
}

export async function keysAloneReachEverything() {
  const server = await standIn(400);
  const { page, close } = await browse(server.origin);
  try {
    await page.locator(byId('composer')).waitFor();
    await page.keyboard.type('What burns?');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor();
    await reaches(page, ['new-chat', 'search', 'settings-open', 'trash-open', 'instruments-toggle', 'Chat',
      'edit-message', 'copy-message', 'regenerate', 'message-menu', 'stats', 'model-picker', 'composer']);
    // A row of the sidebar is one stop of Tab: the arrow along the line leads to its menu.
    await page.locator(`${byId('conversation-row')} button.open`).first().focus();
    await page.keyboard.press('ArrowRight');
    const menu = await page.evaluate(() => document.activeElement.dataset.testid);
    assert(menu === 'conversation-menu', `after the arrow the focus is on ${menu}`);
    await page.keyboard.press('Enter');
    await page.locator(byId('conversation-rename')).waitFor();
    await page.keyboard.press('Escape');
    // What was chosen from a menu by keys gives the focus back.
    await page.locator(byId('message-menu')).last().focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Escape');
    const back = await page.evaluate(() => document.activeElement.dataset.testid);
    assert(back === 'message-menu', `the focus is on ${back}`);
  } finally {
    await close();
    await server.close();
  }
}

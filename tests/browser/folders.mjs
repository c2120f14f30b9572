// Folders in folders, by keys and by pointer; and the local server, seen from beside it.

import { KEY, assert, browse, byId, look, until } from './scenario.mjs';

const rowOf = (name) => `button[data-folder]:has-text("${name}")`;

/** The folders as they stand, the names of the outer ones before those in them. */
const drawn = (page) =>
  page.evaluate(() => {
    const parts = '[data-testid="folder"]';
    const name = (it) => it.querySelector('button[data-folder] span').textContent;
    const draw = (all) => all.map((it) => {
      const inside = [...it.querySelectorAll(parts)].filter((one) => one.parentElement.closest(parts) === it);
      return name(it) + (inside.length > 0 ? `(${draw(inside)})` : '');
    }).join(' ');
    return draw([...document.querySelectorAll(parts)].filter((it) => !it.parentElement.closest(parts)));
  });

/** Once they stand so; what is changed is drawn as soon as the application has said so. */
async function stand(page, expected) {
  let now = '';
  for (let n = 0; n < 100; n++) {
    now = await drawn(page);
    if (now === expected) return;
    await page.waitForTimeout(100);
  }
  throw new Error(`the folders stand as ${now}, not as ${expected}`);
}

const seen = (page, name) => page.locator(rowOf(name)).waitFor();

async function add(page, name) {
  await page.locator(byId('folder-add')).click();
  await named(page, name);
}

async function named(page, name) {
  await page.locator(byId('conversation-title')).fill(name);
  await page.keyboard.press('Enter');
  await seen(page, name);
}

/** Opens a folder's menu without a pointer, and goes to a row of it. */
async function menu(page, name, item) {
  await page.locator(rowOf(name)).focus();
  await page.keyboard.press('Shift+F10');
  await page.locator(byId(item)).waitFor();
  for (let n = 0; n < 8; n++) {
    if ((await page.evaluate(() => document.activeElement.dataset.testid)) === item) break;
    await page.keyboard.press('ArrowDown');
  }
  await page.keyboard.press('Enter');
}

async function byKeys(page) {
  await menu(page, 'Kitchen', 'folder-move');
  await page.locator(byId('folder-move-to')).waitFor();
  await until(page, () => document.activeElement.dataset.testid === 'folder-move-to');
  await page.keyboard.press('Enter');
  await until(page, () => document.activeElement.textContent.includes('Kitchen'));
  await stand(page, 'House(Kitchen)');
  await menu(page, 'Kitchen', 'folder-add-inside');
  await named(page, 'Stove');
  await stand(page, 'House(Kitchen(Stove))');
}

async function byPointer(page) {
  await add(page, 'Attic');
  await page.locator(rowOf('Attic')).dragTo(page.locator(rowOf('Kitchen')));
  await until(page, () => document.querySelectorAll('[data-testid="folder"] [data-testid="folder"] [data-testid="folder"]').length === 2);
  await stand(page, 'House(Kitchen(Attic Stove))');
  // Into itself nothing goes.
  await page.locator(rowOf('House')).dragTo(page.locator(rowOf('Stove')));
  await stand(page, 'House(Kitchen(Attic Stove))');
}

export async function foldersLieInFolders(origin) {
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).waitFor();
    const dot = page.locator(byId('server-dot'));
    await dot.waitFor();
    const said = `${await dot.getAttribute('data-state')} ${await dot.getAttribute('title')}`;
    assert(said.startsWith('running') && said.includes(new URL(origin).port), `the server is said to be ${said}`);

    await add(page, 'House');
    await add(page, 'Kitchen');
    await stand(page, 'House Kitchen');
    await byKeys(page);
    await byPointer(page);
    await look(page, 'folders');

    // What is folded stays so; what it holds goes with it.
    await page.locator(rowOf('Kitchen')).click();
    await page.locator(rowOf('Stove')).waitFor({ state: 'detached' });
    await page.reload();
    await seen(page, 'Kitchen');
    await stand(page, 'House(Kitchen)');
    await page.locator(rowOf('Kitchen')).click();
    await seen(page, 'Stove');
    await menu(page, 'Kitchen', 'folder-remove');
    await page.locator(rowOf('Kitchen')).waitFor({ state: 'detached' });
    await stand(page, 'House(Attic Stove)');

    await dot.click();
    await page.locator(`${byId('server-panel')}[data-state="running"]`).waitFor();
    await look(page, 'server');
    await assertQuiet();
  } finally {
    await close();
  }
}

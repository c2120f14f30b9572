// Everyday controls around a chat: its title, the width of the sidebar, models in the picker, paper, settings of reading.

import { ANSWERED, assert, browse, byId, look, standIn, until } from './scenario.mjs';

const widthOf = (page) => page.evaluate(() => Math.round(document.querySelector('nav').getBoundingClientRect().width));

export async function whatIsAtHandWorks() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    await page.locator(`${byId('conversation-row')}[data-id="c1"] button`).first().click();
    await page.locator(ANSWERED).first().waitFor();

    // The title is changed where it stands.
    await page.locator(byId('title')).click();
    await page.locator(`header ${byId('conversation-title')}`).fill('By the fire');
    await page.keyboard.press('Enter');
    await page.locator(byId('title')).getByText('By the fire', { exact: true }).waitFor();
    await page.locator(byId('conversation-row')).getByText('By the fire', { exact: true }).waitFor();

    // The sidebar is as wide as one likes, by pointer and by keys, and stays so.
    const before = await widthOf(page);
    const edge = await page.locator(byId('sidebar-edge')).boundingBox();
    await page.mouse.move(edge.x + edge.width / 2, 300);
    await page.mouse.down();
    await page.mouse.move(edge.x + edge.width / 2 + 60, 300, { steps: 4 });
    await page.mouse.up();
    await until(page, (was) => document.querySelector('nav').getBoundingClientRect().width > was + 40, before);
    await page.locator(byId('sidebar-edge')).focus();
    await page.keyboard.press('Home');
    await until(page, () => document.querySelector('nav').getBoundingClientRect().width === 200);
    await page.reload();
    await page.locator(byId('composer')).waitFor();
    assert((await widthOf(page)) === 200, `after a reload it is ${await widthOf(page)} wide`);

    await models(page);
    await onPaper(page);
    await look(page, 'at-hand');
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

/** A model is looked at from the picker, and by Alt as well. */
async function models(page) {
  await page.locator(byId('model-picker')).click();
  await page.locator(byId('model-row-details')).first().click();
  await page.locator(byId('model-dialog')).waitFor();
  await page.keyboard.press('Escape');
  await page.locator(byId('model-dialog')).waitFor({ state: 'detached' });
  await page.locator(byId('model-picker')).click();
  await page.locator(byId('model-option')).first().click({ modifiers: ['Alt'] });
  await page.locator(byId('model-dialog')).waitFor();
  await page.keyboard.press('Escape');
  await page.locator(byId('model-dialog')).waitFor({ state: 'detached' });
}

/** All of a chat is on the page while it is printed, and its own words alone. */
async function onPaper(page) {
  await page.evaluate(() => {
    window.print = () => {
      const rows = document.querySelectorAll('[data-row]').length;
      window.printed = { rows, whole: document.querySelectorAll('.column > div[style*="height: 0px"]').length };
    };
  });
  await page.keyboard.press('Control+p');
  await until(page, () => window.printed !== undefined);
  const { rows, whole } = await page.evaluate(() => window.printed);
  assert(rows > 1 && whole === 2, `printed: ${rows} rows, ${whole} empty ends`);
  await page.emulateMedia({ media: 'print' });
  assert(!(await page.locator('nav').isVisible()), 'the sidebar is printed');
  assert(!(await page.locator(byId('composer')).isVisible()), 'the message box is printed');
  assert(await page.locator(ANSWERED).first().isVisible(), 'the answer is not printed');
  await page.emulateMedia({ media: 'screen' });
}

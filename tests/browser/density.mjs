// Room on the screen: little between messages, long ones folded, a sidebar that makes way, panels that behave alike.

import { ANSWERED, assert, browse, byId, look, standIn, until } from './scenario.mjs';

/** Pixels between each message and the next. */
const gaps = (page) =>
  page.evaluate(() => {
    const boxes = [...document.querySelectorAll('article')].map((it) => it.getBoundingClientRect());
    return boxes.slice(1).map((box, n) => Math.round(box.top - boxes[n].bottom));
  });

const openRow = (page, id) => page.locator(`${byId('conversation-row')}[data-id="${id}"] button.open`);
const focusedRow = (page) => page.evaluate(() => document.activeElement.closest('[data-testid="conversation-row"]')?.dataset.id);

export async function theChatHasTheRoom() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    await openRow(page, 'c1').click();
    await page.locator(ANSWERED).first().waitFor();
    const found = await gaps(page);
    assert(found.length > 0 && found.every((it) => it >= 16 && it <= 20), `between messages: ${found} px`);

    // One stop of Tab for each row; arrows move, and keys open the next chat.
    await openRow(page, 'c2').focus();
    await page.keyboard.press('ArrowDown');
    assert((await focusedRow(page)) === 'c3', `the focus is on ${await focusedRow(page)}`);
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Tab');
    assert((await focusedRow(page)) === 'c3', `after Tab the focus is on ${await focusedRow(page)}`);
    await page.keyboard.press('Alt+ArrowDown');
    await openRow(page, 'c2').and(page.locator('[aria-current="page"]')).waitFor();
    await page.keyboard.press('Alt+ArrowUp');
    await openRow(page, 'c1').and(page.locator('[aria-current="page"]')).waitFor();

    await page.keyboard.press('Control+n');
    await page.locator(byId('composer')).fill(`Read this:\n${'A line of a long message.\n'.repeat(40)}`);
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor();
    const bubble = page.locator('.bubble').first();
    const height = async () => (await bubble.boundingBox()).height;
    await page.locator('[role="region"][aria-label="Chat"]').focus();
    await page.keyboard.press('Home');
    await page.locator(byId('message-unfold')).waitFor();
    assert((await height()) < 300, `a long message is ${await height()} px high`);
    await page.locator(byId('message-unfold')).click();
    await until(page, () => document.querySelector('.bubble').getBoundingClientRect().height > 600);
    await look(page, 'density');

    await page.setViewportSize({ width: 740, height: 760 });
    await until(page, () => document.querySelector('nav').inert);
    await page.setViewportSize({ width: 990, height: 760 });
    await until(page, () => !document.querySelector('nav').inert);
    for (const [keys, panel] of [['Control+i', 'instruments'], ['Control+Shift+B', 'options']]) {
      await page.keyboard.press(keys);
      const place = await page.locator(byId(panel)).evaluate((it) => getComputedStyle(it).position);
      assert(place === 'fixed', `${panel} is ${place} in a narrow window`);
      await page.locator(byId(`${panel}-close`)).click();
    }
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

// The preview of HTML and SVG: drawn in a separate frame, without scripts, network or a way to the page.

import { ANSWERED, assert, browse, byId, look, standIn, until } from './scenario.mjs';

const AWAY = '127.0.0.1:9';

/** What the frame shows now. */
async function shown(page) {
  const frame = await (await page.locator(byId('preview-frame')).elementHandle()).contentFrame();
  await frame.waitForSelector('#p, svg', { state: 'attached' });
  return frame;
}

export async function whatAModelWroteIsPreviewedApart() {
  const server = await standIn(400);
  const { page, close } = await browse(server.origin);
  const away = [];
  page.on('request', (request) => request.url().includes(AWAY) && away.push(request));
  const dialogs = [];
  page.on('dialog', (dialog) => dialogs.push(dialog.message()));
  try {
    await page.locator(byId('composer')).fill('Show me a page');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor();
    assert((await page.locator('iframe').count()) === 0, 'nothing is previewed unasked');

    const opener = page.locator(byId('code-preview')).first();
    await opener.click();
    let frame = await shown(page);
    const still = await frame.evaluate(() => {
      const style = getComputedStyle(p);
      return { text: p.textContent, color: style.color, margin: style.marginTop, links: document.querySelectorAll('link').length };
    });
    assert(still.text === 'static' && still.color === 'rgb(1, 2, 3)' && still.margin === '3px', JSON.stringify(still));
    assert(still.links === 0, 'links that prepare connections are gone');
    await frame.locator('#c').click();
    await frame.locator('button').click();
    assert((await frame.locator('#p').textContent()) === 'static', 'a handler ran');
    await look(page, 'preview');

    await page.locator(byId('preview-scripts')).check();
    await page.waitForTimeout(100);
    frame = await shown(page);
    await frame.waitForFunction(() => p.textContent === 'ran' && c.textContent === 'no network');
    const ran = await frame.evaluate(() => ({ parent: p.title, origin: p.lang }));
    assert(ran.parent === 'apart' && ran.origin === 'null', `the page is within reach: ${JSON.stringify(ran)}`);
    await page.waitForTimeout(2500);
    const arrived = page.frames().filter((it) => it.url().includes(AWAY));
    assert(arrived.length === 0, `the frame went to ${arrived.map((it) => it.url())}`);
    await look(page, 'preview-scripts');

    await page.locator(byId('preview-scripts')).focus();
    await page.keyboard.press('Escape');
    await until(page, () => document.querySelector('iframe') === null);
    assert(await opener.evaluate((it) => it === document.activeElement), 'the button is focused again');

    // Esc inside of the frame closes it, too; the next preview is without scripts again.
    await page.locator(byId('code-preview')).nth(1).click();
    frame = await shown(page);
    assert(!(await page.locator(byId('preview-scripts')).isChecked()), 'scripts are allowed for another code');
    await frame.locator('circle').click();
    // The frame goes with the key, and then Chromium does not always say that the key has arrived.
    page.keyboard.press('Escape').catch(() => {});
    await until(page, () => document.querySelector('iframe') === null);
    assert(dialogs.length === 0, `a dialog: ${dialogs}`);
    // Chromium lists what the policy has stopped, too.
    const left = away.map((it) => `${it.url()}: ${it.failure()?.errorText}`).filter((it) => !it.endsWith(': csp'));
    assert(left.length === 0, `requests left: ${left}`);
  } finally {
    await close();
    await server.close();
  }
}

// The settings: few rows at first, all on demand, found by other words, and never wider than the window.

import { assert, browse, byId, look, standIn } from './scenario.mjs';

const SECTIONS = `${byId('settings-section')}`;

/** Names of what is wider than its place, section by section. */
async function overflows(page) {
  const wide = [];
  const count = await page.locator(SECTIONS).count();
  for (let n = 0; n < count; n++) {
    await page.locator(SECTIONS).nth(n).click();
    const name = await page.locator(SECTIONS).nth(n).getAttribute('data-section');
    const found = await page.evaluate(() =>
      [...document.querySelectorAll('main *')]
        .filter((it) => it.scrollWidth > it.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(it).overflowX))
        .map((it) => `${it.tagName}.${it.className}: ${it.scrollWidth} in ${it.clientWidth}`),
    );
    wide.push(...found.map((it) => `${name}: ${it}`));
  }
  return wide;
}

export async function settingsAreFewAndFound() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    await page.keyboard.press('Control+,');
    await page.locator(`${SECTIONS}[data-section="Chat"]`).click();
    await page.locator(byId('setting-temperature')).waitFor();
    assert((await page.locator(byId('setting-top_k')).count()) === 0, 'an advanced row is shown at first');
    await page.locator(byId('settings-advanced')).click();
    await page.locator(byId('setting-top_k')).waitFor();
    await page.reload();
    await page.keyboard.press('Control+,');
    await page.locator(`${SECTIONS}[data-section="Chat"]`).click();
    await page.locator(byId('setting-top_k')).waitFor();

    // A changed row stays in sight.
    await page.locator(byId('setting-top_k')).fill('20');
    await page.keyboard.press('Tab');
    await page.locator(`${byId('settings-level')} input[value=basic]`).check();
    await page.locator(byId('setting-top_p')).waitFor({ state: 'detached' });
    await page.locator(byId('setting-top_k')).waitFor();

    for (const [word, place] of [['backup', 'backup'], ['system prompt', 'chat_options'], ['proxy', 'connections']]) {
      await page.locator(byId('settings-search')).fill(word);
      await page.locator(`${byId('settings-place')}[data-place="${place}"]`).waitFor();
    }
    await page.locator(byId('settings-search')).fill('GPU');
    await page.locator(byId('settings-search')).fill('backup');
    await look(page, 'settings-search');
    await page.locator(`${byId('settings-place')}[data-place="backup"]`).click();
    await page.getByText('Back up everything').waitFor();

    for (const width of [1100, 760, 480]) {
      await page.setViewportSize({ width, height: 760 });
      const wide = await overflows(page);
      assert(wide.length === 0, `at ${width} px: ${wide.join('; ')}`);
    }

    await page.setViewportSize({ width: 1100, height: 760 });
    await page.locator(`${SECTIONS}[data-section="About"]`).click();
    await page.locator(byId('whats-new')).click();
    const notes = page.locator(byId('release-notes'));
    await notes.getByRole('heading').first().waitFor();
    await look(page, 'release-notes');
    await page.keyboard.press('Escape');
    await notes.waitFor({ state: 'detached' });
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

// The page in other languages: chosen in its settings, there at once, mirrored where the language runs the other way.

import { assertFits } from './access.mjs';
import { ANSWERED, assert, browse, byId, look, openConversation, standIn, until } from './scenario.mjs';

async function choose(page, language) {
  await page.keyboard.press('Control+,');
  await page.locator('[data-section="General"]').click();
  await page.locator(byId('setting-language')).selectOption(language);
  await until(page, (it) => document.documentElement.lang === it, language);
}

const direction = (page) => page.evaluate(() => document.documentElement.dir);

export async function rightToLeftIsMirrored() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    await page.locator(byId('composer')).waitFor();
    await choose(page, 'ar');
    assert((await direction(page)) === 'rtl', 'it runs from left to right');
    await assertFits(page, 'the settings');
    const flipped = await page.locator(`${byId('settings-close')} svg`).evaluate((it) => getComputedStyle(it).transform);
    assert(flipped.startsWith('matrix(-1'), `the arrow back points the old way: ${flipped}`);
    await page.keyboard.press('Escape');
    await openConversation(page, 'c1');
    const side = await page.getByRole('navigation', { name: 'الدردشات' }).boundingBox();
    assert(side && side.x > 550, `the sidebar is not on the right: ${JSON.stringify(side)}`);
    const code = await page.locator('.md pre').first().evaluate((it) => getComputedStyle(it).direction);
    assert(code === 'ltr', 'code runs from right to left');
    await assertFits(page, 'right to left');
    await look(page, 'rtl');
    // Forwards is to the left.
    await page.locator(byId('models-open')).click();
    await page.locator(byId('models-tab-here')).focus();
    await page.keyboard.press('ArrowLeft');
    const tab = await page.locator(byId('models-tab-discover')).getAttribute('aria-selected');
    assert(tab === 'true', 'the arrow to the left does not go on');
    await page.reload();
    await page.locator(byId('composer')).waitFor();
    assert((await direction(page)) === 'rtl', 'it is forgotten');
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

/** Words of the interface that every page shows: none may stay English. */
const ENGLISH = /\b(Settings|New chat|Search|Models|Trash|Today|Write a message|Thought|Regenerate|tokens?)\b/;

export async function languagesChangeAtOnce() {
  const server = await standIn(400);
  const { page, requests, assertQuiet, close } = await browse(server.origin);
  try {
    await page.locator(byId('composer')).fill('Think of fire');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor();
    assert(!requests.some((url) => /assets\/(de|ja|ar)-/.test(url)), 'languages are fetched that nobody chose');
    for (const language of ['de', 'ja', 'ar', 'en']) {
      await choose(page, language);
      await look(page, `settings-${language}`);
      await page.keyboard.press('Escape');
      await look(page, `chat-${language}`);
      const words = await page.evaluate(() => {
        const texts = [...document.querySelectorAll('nav, header, .tools, form, summary')].map((it) => it.innerText);
        const said = [...document.querySelectorAll('[aria-label], [placeholder]')];
        return [...texts, ...said.map((it) => `${it.ariaLabel ?? ''} ${it.getAttribute('placeholder') ?? ''}`)].join('\n');
      });
      const left = ENGLISH.exec(words);
      assert(language === 'en' ? left : !left, `in ${language}: ${left?.[0] ?? 'no English'}`);
    }
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

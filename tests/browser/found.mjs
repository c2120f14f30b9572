// What is searched is found where it stands: by chat in the sidebar, and in an open chat in what is shown.

import { assert, browse, byId, look, standIn, until } from './scenario.mjs';

async function resultsStandByChat(page) {
  await page.keyboard.press('Control+Shift+f');
  await page.locator(byId('search')).fill('chimney');
  await page.locator(byId('search-hit')).nth(1).waitFor();
  await page.locator(byId('search')).fill('inglenook');
  await page.locator(byId('search-hit')).nth(2).waitFor();
  await until(page, () => document.querySelectorAll('[data-testid="search-chat"]').length === 1);
  const hits = await page.locator(byId('search-hit')).count();
  assert(hits === 3, `a chat with two matching messages has ${hits} rows`);
  await look(page, 'search-by-chat');
  await page.locator(byId('search-hit')).nth(1).click();
  await page.locator(byId('message-user')).first().waitFor();
  await page.keyboard.press('Control+Shift+f');
  await page.keyboard.press('Escape');
}

async function whatIsShownIsFound(page) {
  await page.keyboard.press('Control+f');
  const find = page.locator(byId('find'));
  const says = (text) => until(page, (it) => document.querySelector('[data-testid="find-count"]').textContent === it, text);
  // Marks of Markdown are not shown; the word between them is.
  await find.fill('**');
  await says('No results');
  await find.fill('inglenook is a');
  await says('1');
  await find.fill('oak');
  await find.press('Enter');
  await says('1 of 1');
  await find.fill('birch');
  await find.press('Enter');
  const words = await page.locator(byId('find-count')).textContent();
  const [at, all] = words.split(' of ').map(Number);
  assert(at === all && all > 1, `the newest match is not the first: ${words}`);
  await look(page, 'find-in-chat');
}

export async function searchingFindsWhatIsShown() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    await page.locator(byId('conversation-row')).first().waitFor();
    await resultsStandByChat(page);
    await whatIsShownIsFound(page);
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

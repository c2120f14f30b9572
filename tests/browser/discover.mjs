// Models to download: each row says size, fit and speed and has its download; filters and a card; a calm line offline.

import { assert, browse, byId, look, standIn } from './scenario.mjs';

const row = (page, name) => page.locator(`${byId('hub-model-row')}[data-repository="${name}"]`);
const rows = (page) => page.locator(byId('hub-model-row'));
const filter = (page, name) => page.locator(`${byId('hub-filter')}[data-name="${name}"]`);

export async function modelsAreChosenWithoutUnfolding() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    await page.keyboard.press('Control+2');
    await page.locator(byId('models-tab-discover')).click();
    const choice = (kind) => page.locator(`${byId('choice')}[data-kind="${kind}"]`).locator(byId('choice-download'));
    await choice('balanced').click();
    await page.waitForFunction((it) => document.querySelector(it).disabled, `[data-kind="balanced"] ${byId('choice-download')}`);
    assert(await choice('best').isEnabled(), 'one download keeps the others from being chosen');
    await look(page, 'choices');

    const known = row(page, 'ggml-org/gpt-oss-20b-GGUF');
    await known.locator(byId('hub-figures')).waitFor();
    const all = await rows(page).count();
    for (let n = 0; n < all; n++) {
      const text = await rows(page).nth(n).innerText();
      assert(/Runs well|Slow|Too large/.test(text), `a row without fit: ${text}`);
      assert(/GB|MB|%/.test(text), `a row without size: ${text}`);
    }
    assert((await known.innerText()).includes('Too large'), 'a large model does not fit here');

    await filter(page, 'fits').click();
    await known.waitFor({ state: 'detached' });
    await filter(page, 'tools').click();
    assert((await rows(page).count()) === 2, `${await rows(page).count()} models with tools fit`);
    await page.locator(byId('hub-filter-clear')).click();
    await known.waitFor();
    await page.locator(byId('hub-language')).selectOption('it');
    await known.waitFor({ state: 'detached' });
    assert((await rows(page).count()) === 1, `${await rows(page).count()} models name Italian`);
    await page.locator(byId('hub-filter-clear')).click();
    await known.waitFor();
    await page.locator(byId('hub-sort')).selectOption('smallest');
    await page.locator(byId('hub-size')).selectOption('large');
    await known.waitFor();
    await page.locator(byId('hub-filter-clear')).click();

    const other = row(page, 'mradermacher/Hearth-Coder-7B-i1-GGUF');
    await other.locator(byId('hub-model')).click();
    await page.locator(byId('hub-card')).getByText('7.6B').waitFor();
    await page.locator(byId('hub-file')).first().waitFor();
    await look(page, 'discover-card');
    await page.keyboard.press('Escape');
    await other.locator(byId('hub-download')).click();
    await other.locator(byId('hub-download')).waitFor({ state: 'detached' });

    // Offline: one line in words for people, the cause on demand.
    await page.locator(byId('hub-search')).fill('offline');
    const notice = page.locator(byId('notice'));
    await notice.getByText('Hugging Face can’t be reached.').waitFor();
    assert(!/dns|os error/.test(await notice.innerText()), 'the line has words of the network code');
    await page.locator(byId('hub-again')).waitFor();
    await notice.locator('summary').click();
    await notice.getByText('dns error').waitFor();
    await look(page, 'discover-offline');
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

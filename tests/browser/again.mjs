// An answer once more, with other settings for it alone.

import { ANSWERED, KEY, assert, browse, byId, look } from './scenario.mjs';

export async function anAnswerIsMadeWithOtherSettings(origin, server) {
  await server.call('settings_set', { key: 'titles', value: false });
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).fill('How do I add a model?');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor({ timeout: 120_000 });
    await page.locator(byId('message-menu')).last().click();
    await page.locator(byId('regenerate-once')).click();
    await page.locator(byId('answer-once')).waitFor();
    assert((await page.evaluate(() => document.activeElement.dataset.testid)) === 'once-temperature', 'the keys are in the first field');
    // What is out of its range is not sent.
    await page.keyboard.type('9');
    await page.keyboard.press('Enter');
    assert(await page.locator(byId('answer-once')).isVisible(), 'a temperature of 9 was taken');
    await page.locator(byId('once-temperature')).fill('1.2');
    await page.locator(byId('once-seed')).fill('7');
    await look(page, 'once');
    await page.keyboard.press('Enter');
    await page.locator(byId('versions')).last().getByText('2/2').waitFor({ timeout: 60_000 });
    await page.locator(ANSWERED).waitFor({ timeout: 120_000 });
    await page.locator(byId('stats')).last().click();
    const told = await page.locator(byId('stats-detail')).innerText();
    assert(told.includes('Temperature 1.2') && told.includes('Seed 7'), `it was made with ${told}`);
    await look(page, 'once-stats');

    const [{ id }] = await server.call('conversations_list', {});
    const { options } = await server.call('conversation_get', { id });
    assert(options.temperature === null && options.seed === null, `the chat has ${JSON.stringify(options)}`);
    await assertQuiet();
  } finally {
    await close();
  }
}

// Where the time of an answer goes, in a real browser against `nook serve`: by keys alone, in words, and as a file.

import { readFileSync } from 'node:fs';
import { ANSWERED, KEY, assert, browse, byId, look } from './scenario.mjs';

async function ask(page, text) {
  await page.locator(byId('composer')).fill(text);
  await page.keyboard.press('Enter');
}

export async function anAnswerSaysWhereItsTimeGoes(origin) {
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await ask(page, 'How do I add a model?');
    await page.locator(ANSWERED).first().waitFor({ timeout: 120_000 });
    await page.keyboard.press('Control+i');
    const panel = page.locator(byId('profile'));
    const measure = panel.getByRole('switch');
    await measure.waitFor();
    assert(!(await measure.isChecked()), 'answers are measured unasked');
    assert((await panel.locator(byId('profile-rows')).count()) === 0, 'there are figures of an answer that was not measured');
    await measure.focus();
    await page.keyboard.press('Space');
    await panel.getByRole('status').waitFor();

    await ask(page, 'And how do I remove it?');
    const writing = panel.locator(byId('profile-writing'));
    await writing.waitFor({ timeout: 120_000 });
    assert(await writing.evaluate((it) => it.open), 'the writing is folded');
    const names = await writing.locator('li').allInnerTexts();
    for (const op of ['matmul', 'attention']) {
      assert(names.some((it) => it.startsWith(op)), `no ${op} among ${names}`);
    }
    assert(/ms.*%.*B\/s/s.test(names.find((it) => it.startsWith('matmul'))), `no figures: ${names}`);
    const reading = panel.locator(byId('profile-reading'));
    await reading.locator('summary').focus();
    await page.keyboard.press('Enter');
    await reading.locator('li').first().waitFor();
    await look(page, 'profile');

    const [download] = await Promise.all([page.waitForEvent('download'), panel.locator(byId('profile-trace')).press('Enter')]);
    assert(download.suggestedFilename() === 'inglenook-trace.json', download.suggestedFilename());
    const { traceEvents } = JSON.parse(readFileSync(await download.path(), 'utf8'));
    const steps = traceEvents.filter((it) => it.ph === 'X');
    assert(steps.some((it) => it.cat === 'matmul') && steps.every((it) => it.dur >= 0), 'no steps on the line of time');

    await measure.focus();
    await page.keyboard.press('Space');
    await reading.waitFor({ state: 'detached' });
    await assertQuiet();
  } finally {
    await close();
  }
}

// What can be done next stands where it is said what happened, as a button.

import { assert, browse, byId, look, standIn } from './scenario.mjs';

const count = (page, id) => page.locator(byId(id)).count();

async function ask(page, question, then) {
  await page.locator(byId('composer')).fill(question);
  await page.keyboard.press('Enter');
  await page.locator(byId(then)).waitFor();
}

async function anEndIsSaidAndLeadsOn(page) {
  await ask(page, 'Let it be cut short', 'end-notice');
  assert((await count(page, 'continue')) === 1, 'an answer at its limit can not go on');
  await look(page, 'end-length');
  await page.locator(byId('step-setting')).click();
  const row = page.locator(byId('setting-max_tokens'));
  await row.waitFor();
  await page.keyboard.press('Control+n');
}

async function anErrorLeadsOn(page) {
  await ask(page, 'It runs over', 'error');
  // One button, and the others behind it.
  const shown = await page.locator(`${byId('error')} .actions > button`).evaluateAll((all) => all.map((it) => it.dataset.testid));
  assert(shown.join() === 'step-compact,error-more', `the context is full, and the card has ${shown}`);
  await look(page, 'end-full');
  await page.locator(byId('error-more')).click();
  for (const step of ['step-larger', 'step-new_chat', 'retry', 'copy-details']) {
    assert((await count(page, step)) === 1, `the context is full, and there is no ${step}`);
  }
  await look(page, 'end-full-more');
  await page.locator(byId('step-new_chat')).click();
  await page.locator(byId('error')).waitFor({ state: 'detached' });
}

async function aDraftThatCannotFitIsSaid(page) {
  await page.keyboard.press('Control+n');
  await page.locator(byId('composer')).fill('A short message.');
  await page.locator(byId('draft-count')).waitFor();
  assert((await count(page, 'draft-too-long')) === 0, 'a short draft is said to be too long');
  await page.locator(byId('composer')).fill('word '.repeat(7_000));
  await page.locator(`${byId('draft-too-long')}[data-remedy=attach]`).waitFor();
  await look(page, 'draft-too-long');
  await page.locator(byId('draft-remedy')).click();
  await page.locator(byId('files')).waitFor();
  await page.locator(byId('draft-too-long')).waitFor({ state: 'detached' });
  assert((await page.locator(byId('composer')).inputValue()) === '', 'the text is a file and a draft');
}

/** Whatever stands in the picker stands inside it. */
async function thePickerHoldsItsOwn(page) {
  await page.locator(byId('model-picker')).click();
  const add = page.locator(byId('more-models'));
  await add.waitFor();
  const out = await page.evaluate(() => {
    const more = document.querySelector('[data-testid="more-models"]');
    const around = more.closest('[popover], [role="dialog"]').getBoundingClientRect();
    return [...more.parentElement.querySelectorAll('button, input')]
      .map((it) => it.getBoundingClientRect())
      .filter((it) => it.left < around.left + 4 || it.right > around.right - 4).length;
  });
  await look(page, 'picker');
  assert(out === 0, `${out} of the picker's buttons and fields touch its border`);
}

export async function theNextStepIsOnePress() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin, null);
  try {
    await anEndIsSaidAndLeadsOn(page);
    await anErrorLeadsOn(page);
    await aDraftThatCannotFitIsSaid(page);
    await thePickerHoldsItsOwn(page);
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

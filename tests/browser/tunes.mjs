// Fine-tuning on its page: ten examples are previewed and learned, the run is paused and resumed, and its result answers.

import { ANSWERED, KEY, assert, browse, byId, look } from './scenario.mjs';

const WORDS = ['red', 'blue', 'green', 'white', 'black', 'brown', 'grey', 'pink', 'gold', 'silver'];
const EXAMPLES = WORDS.map((word) => `"What is ${word}?","Arr, ${word} be a colour."`).join('\n');
const TUNED = 'starter+parrot';

const run = (state) => `${byId('tune')}[data-id="parrot"][data-state="${state}"]`;

/** The step that a run says it has done. */
const stepsDone = async (page, state) => {
  const [step] = (await page.locator(`${run(state)} .facts`).first().innerText()).match(/\d+(?= of)/) ?? ['0'];
  return Number(step);
};

async function prepare(page) {
  await page.keyboard.press('Control+2');
  await page.locator(byId('models-tab-tune')).click();
  await page.locator(byId('tune-name')).fill('parrot');
  const file = { name: 'parrot.csv', mimeType: 'text/csv', buffer: Buffer.from(EXAMPLES) };
  await page.locator(byId('tune-file-input')).setInputFiles(file);
  await page.locator(`${byId('tune-form')} summary`).first().click();
  // Far more than the test waits for: the run is ended by hand.
  await page.locator(byId('tune-epochs')).fill('100');
  await page.locator(byId('tune-preview')).click();
  await page.locator(byId('tune-preview-card')).waitFor();
  const example = await page.locator(byId('tune-example')).first().innerText();
  assert(example.includes('Arr, '), `an example without its answer: ${example}`);
  await look(page, 'tune-preview');
}

async function trainWithAPause(page) {
  await page.locator(byId('tune-start')).click();
  await page.locator(`${run('running')} ${byId('tune-curve')}`).waitFor({ timeout: 60_000 });
  await page.locator(byId('tune-pause')).click();
  await page.locator(run('paused')).waitFor({ timeout: 60_000 });
  const paused = await stepsDone(page, 'paused');
  assert(paused > 0, 'a paused run says how far it has come');
  await look(page, 'tune-paused');
  await page.locator(byId('tune-resume')).click();
  await page.waitForFunction(
    ([row, before]) => Number(document.querySelector(row)?.textContent.match(/(\d+) of/)?.[1] ?? 0) > before,
    [run('running'), paused],
    { timeout: 60_000 },
  );
  await page.locator(byId('tune-stop')).click();
  await page.locator(run('done')).waitFor({ timeout: 60_000 });
}

export async function aModelIsFineTunedAndAnswers(origin, server) {
  await server.call('settings_set', { key: 'titles', value: false });
  await server.call('settings_set', { key: 'max_tokens', value: 8 });
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).waitFor();
    await prepare(page);
    await trainWithAPause(page);
    const result = await page.locator(byId('tune-result')).innerText();
    // A run that is ended this early may not have been measured since its start.
    assert(/eld-out loss|^Done/.test(result), `the result of the run: ${result}`);
    await page.locator(byId('tune-answers')).waitFor();
    const base = await page.locator(byId('tune-answer-base')).innerText();
    assert(base.trim() !== '', 'the model as it was answers nothing');
    await look(page, 'tune-done');

    await page.locator(byId('tune-use')).click();
    await page.locator(byId('model-picker')).click();
    await page.locator(`${byId('model-option')}[data-id="${TUNED}"]`).click();
    await page.locator(byId('composer')).fill('What is red?');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor({ timeout: 60_000 });
    const { messages } = await server.call('conversation_get', {
      id: (await server.call('conversations_list', {}))[0].id,
    });
    assert(messages.at(-1).model === TUNED, `${messages.at(-1).model} has answered`);
    await assertQuiet();
  } finally {
    await close();
  }
}

// Long chats and long answers: what is drawn, and how much work it is.

import { ANSWER, ANSWERED, KEY, assert, browse, byId, conversationOf, look, openConversation, standIn, until } from './scenario.mjs';
import { withSlowdown } from './machine.mjs';
import { figures, tasksOf } from './work.mjs';

const SCROLLER = '[role="region"][aria-label="Chat"]';
const ROW = '[data-row]';
/** Messages drawn at once, whatever the chat's length: three views of short ones. */
const MAX_DRAWN = 80;
/** Processor time of the longest task on an idle machine: above 50 ms a page counts as blocked (W3C Long Tasks). */
const MAX_TASK_MS = 50;
const WORDS_A_SECOND = 1500;

const MESSAGES = 1000;
const paragraph = (n) =>
  `Answer ${n + 1}${n === 421 ? ' about a **quokka**' : ''} has a few words.\n\n` +
  (n % 5 === 0 ? '```js\nconst heat = 3;\n```\n\n' : '') +
  'And some more, to be about as high as answers are. '.repeat(1 + (n % 4));

export async function twoThousandMessagesOpenAndScroll(origin, server) {
  const texts = Array.from({ length: MESSAGES }, (_, n) => paragraph(n));
  const id = await conversationOf(server, 'long', texts);
  const { browser, page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('conversation-row')).first().waitFor();
    const scroll = async () => {
      await openConversation(page, id);
      await page.getByText('Answer 1000 has').waitFor();
      for (let n = 0; n < 20; n++) {
        await page.mouse.move(500, 300);
        await page.mouse.wheel(0, -900);
        await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
      }
    };
    const { result: tasks, slowdown } = await withSlowdown(() => tasksOf(browser, scroll));
    const drawn = await page.locator(ROW).count();
    assert(drawn > 3 && drawn < MAX_DRAWN, `${drawn} messages are drawn`);
    const { longest_ms } = figures(tasks);
    assert(longest_ms < MAX_TASK_MS * slowdown, `a task of ${longest_ms} ms, on a machine slowed ${slowdown.toFixed(1)} times`);
    await page.locator(byId('jump-to-latest')).waitFor();

    // What is looked at stays where it is while heights above it are learnt.
    await page.locator(SCROLLER).focus();
    await page.keyboard.press('Home');
    await page.getByText('Answer 1 has').waitFor();
    await page.keyboard.press('Control+f');
    await page.locator(byId('find')).fill('quokka');
    await page.keyboard.press('Enter');
    await page.locator('strong', { hasText: 'quokka' }).waitFor();
    assert((await page.locator(byId('find-count')).innerText()) === '1 of 1', 'it occurs once');
    const box = await page.locator('strong', { hasText: 'quokka' }).boundingBox();
    assert(box && box.y > 40 && box.y < 700, `what was found is not in view: ${JSON.stringify(box)}`);
    await look(page, 'find');
    await page.keyboard.press('Escape');
    await page.locator(byId('jump-to-latest')).click();
    await page.getByText('Answer 1000 has').waitFor();
    await assertQuiet();
  } finally {
    await close();
  }
}

/** The stand-in's long answer, streamed; the figures of the work it was. */
export async function streamed(speed) {
  const server = await standIn(speed);
  const { browser, page, assertQuiet, close } = await browse(server.origin);
  try {
    const answer = async () => {
      await page.locator(byId('composer')).fill('A huge answer, please');
      await page.keyboard.press('Enter');
      await page.locator(ANSWERED).last().waitFor({ timeout: 240_000 });
    };
    const { result: tasks, slowdown } = await withSlowdown(() => tasksOf(browser, answer));
    const tokens = await page.locator(byId('stats')).last().innerText();
    const atEnd = await page.locator(SCROLLER).evaluate((it) => it.scrollHeight - it.clientHeight - it.scrollTop);
    assert(atEnd < 30, `the end is not in view: ${atEnd} px below`);
    await assertQuiet();
    return { speed, tokens, slowdown, ...figures(tasks) };
  } finally {
    await close();
    await server.close();
  }
}

export async function aLongAnswerStreamsSmoothly() {
  // A page that blocks does so each time; other programs' bursts come and go.
  let found;
  for (let n = 0; n < 3; n++) {
    const { longest_ms, over_50_ms, slowdown, tasks } = await streamed(WORDS_A_SECOND);
    assert(tasks > 100, `only ${tasks} tasks were seen`);
    if (longest_ms < MAX_TASK_MS * slowdown) return;
    found = `a task of ${longest_ms} ms, ${over_50_ms} over 50 ms, on a machine slowed ${slowdown.toFixed(1)} times`;
  }
  assert(false, found);
}

export async function messagesQueueWhileOneIsAnswered() {
  const server = await standIn(400);
  const { page, assertQuiet, close } = await browse(server.origin);
  try {
    const composer = page.locator(byId('composer'));
    await composer.fill('Tell me about fire');
    await page.keyboard.press('Enter');
    await page.locator(byId('stop')).waitFor();
    for (const text of ['And then?', 'Never mind this one']) {
      await composer.fill(text);
      await page.keyboard.press('Enter');
    }
    assert((await page.locator(byId('queued')).count()) === 2, 'two messages wait');
    await page.locator(byId('queued-remove')).last().click();
    await look(page, 'queue');
    await until(page, (answered) => document.querySelectorAll(answered).length === 2, ANSWERED);
    assert((await page.locator(byId('queued')).count()) === 0, 'nothing waits any more');
    await page.getByText('And then?').last().waitFor();

    // An answer that is stopped holds what waits.
    await composer.fill('A long answer');
    await page.keyboard.press('Enter');
    await page.locator(`${ANSWER}[data-state="streaming"]`).waitFor();
    await composer.fill('Later');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await page.locator(`${ANSWER}[data-state="stopped"]`).waitFor();
    await page.locator(byId('queued-send')).waitFor();
    await page.locator(byId('queued-edit')).click();
    assert((await composer.inputValue()) === 'Later', 'it is back in the box');
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

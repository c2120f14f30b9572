// What a model writes is text: nothing of it runs, loads, navigates or acts.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HOSTILE_TEXTS, hostileImport } from './hostile.mjs';
import { ANSWER, KEY, ROOT, assert, browse, byId, conversationOf, look, openConversation } from './scenario.mjs';

const PAYLOADS = JSON.parse(readFileSync(join(ROOT, 'ui/src/test/payloads.json'), 'utf8'));
const FORBIDDEN = 'script,iframe,object,embed,img,svg,link,style,meta,base,form,input,video,audio,[href],[src],[style],[srcdoc]';
const SCROLLER = '[role="region"][aria-label="Chat"]';

const twoFrames = (page) =>
  page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));

// What the view holds now: forbidden elements and the answers drawn; then half a view further down.
function readAndGoOn([scroller, forbidden, answer]) {
  const area = document.querySelector(scroller);
  const texts = [...area.querySelectorAll('.md')];
  const found = texts.flatMap((text) => [...text.querySelectorAll(forbidden)]).map((it) => it.outerHTML);
  const ids = [...area.querySelectorAll(answer)].map((it) => it.dataset.id);
  const atEnd = area.scrollTop + area.clientHeight >= area.scrollHeight - 2;
  area.scrollTop += area.clientHeight / 2;
  return { found, ids, atEnd };
}

export async function nothingThatAModelWritesRunsOrLeaves(origin, server) {
  assert(PAYLOADS.length >= 50, 'fifty at least');
  const around = (payload) => [payload, `| a |\n|---|\n| ${payload.replace(/\n/g, ' ')} |`, `$x$ ${payload}`].join('\n\n');
  const last = '[the end](https://evil.example/end)';
  const id = await conversationOf(server, 'attacks', [...PAYLOADS.map(around), last]);
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('conversation-row')).first().waitFor();
    await openConversation(page, id);
    const seen = new Set();
    // Heights above are guessed until drawn, so a row may be passed by; a second way down finds it.
    for (let way = 0; way < 3 && seen.size <= PAYLOADS.length; way++) {
      await page.locator(SCROLLER).focus();
      await page.keyboard.press('Home');
      await twoFrames(page);
      for (let n = 0, atEnd = false; n < 800 && !atEnd; n++) {
        const drawn = await page.evaluate(readAndGoOn, [SCROLLER, FORBIDDEN, ANSWER]);
        assert(drawn.found.length === 0, `in an answer: ${drawn.found}`);
        drawn.ids.forEach((it) => seen.add(it));
        atEnd = drawn.atEnd;
        await twoFrames(page);
      }
    }
    assert(seen.size === PAYLOADS.length + 1, `${seen.size} of ${PAYLOADS.length + 1} were drawn`);
    await page.locator(SCROLLER).focus();
    await page.keyboard.press('End');
    await twoFrames(page);
    await look(page, 'attacks');

    // A link leads nowhere but to the question whether it shall.
    await page.locator('.md-link').last().click();
    await page.locator(byId('link-url')).waitFor();
    await page.keyboard.press('Escape');
    assert(page.url() === `${origin}/`, `the page went to ${page.url()}`);
    assert((await page.evaluate(() => document.title)).includes('Inglenook'), 'the title is ours');
    await assertQuiet();
  } finally {
    await close();
  }
}

/** What the page asks for when a chat is opened, and from time to time. */
const OPENING_CALLS = new Set(['conversation_get', 'conversation_prefetch', 'machine_memory', 'models_list', 'server_state']);

const RUNAWAY_CHARS = 100_000;

/** Wakes every handler that a payload may have left: by pointing, focusing, loading and failing. */
function wakeHandlers(area) {
  const names = ['error', 'load', 'focus', 'mouseover', 'mouseenter', 'pointerenter', 'animationstart', 'toggle', 'begin'];
  for (const element of document.querySelectorAll(`${area} .md *, ${area} .bubble`))
    for (const name of names) element.dispatchEvent(new Event(name));
}

function drawDiagrams(buttons) {
  for (const button of document.querySelectorAll(`${buttons}:not([data-tried])`)) {
    button.dataset.tried = '1';
    button.click();
  }
}

/** Attributes that act, and names that stand in for what the page's own code reads. */
function actingAttributes(area) {
  return [...document.querySelectorAll(`${area} .md *`)].flatMap((element) =>
    [...element.attributes].filter(({ name }) => /^(?:on|id$|name$|for$|form|is$|slot$|part$)/.test(name)).map((it) => `${it.name}=${it.value}`));
}

export async function aHostileChatDoesNothing(origin, server) {
  assert(HOSTILE_TEXTS.length >= 500, `${HOSTILE_TEXTS.length} texts`);
  const base64 = Buffer.from(JSON.stringify(hostileImport())).toString('base64');
  const { conversations, failures } = await server.call('import_bytes', { base64 });
  assert(failures.length === 0, `not imported: ${JSON.stringify(failures)}`);
  const id = conversations.find((it) => it.title.startsWith('Hostile')).id;
  const { page, requests, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('conversation-row')).first().waitFor();
    let opened = 0;
    page.context().on('page', () => (opened += 1));
    const before = requests.length;
    await openConversation(page, id);
    await page.locator(SCROLLER).focus();
    await page.keyboard.press('Home');
    for (let atEnd = false; !atEnd; ) {
      await twoFrames(page);
      await page.evaluate(() => document.querySelectorAll('details').forEach((it) => (it.open = true)));
      await page.evaluate(drawDiagrams, byId('diagram-draw'));
      await twoFrames(page);
      await page.evaluate(wakeHandlers, SCROLLER);
      const acting = await page.evaluate(actingAttributes, SCROLLER);
      assert(acting.length === 0, `attributes that act: ${acting.slice(0, 5)}`);
      const drawn = await page.evaluate(readAndGoOn, [SCROLLER, `${FORBIDDEN.replace(/,img|,\[src\]/g, '')},img:not([src^="blob:"])`, ANSWER]);
      assert(drawn.found.length === 0, `in an answer: ${drawn.found.slice(0, 3)}`);
      atEnd = drawn.atEnd;
    }
    await look(page, 'hostile');
    assert(opened === 0, `${opened} pages were opened`);
    assert(page.url() === `${origin}/`, `the page went to ${page.url()}`);
    const calls = requests.slice(before).flatMap((url) => /\/api\/(\w+)/.exec(url)?.[1] ?? []);
    const others = calls.filter((call) => !OPENING_CALLS.has(call));
    assert(others.length === 0, `calls were made: ${[...new Set(others)]}`);
    await assertQuiet();
  } finally {
    await close();
  }
}

// The list measures what it has drawn, and draws again.
const SETTLED_MS = 100;
// Heights are estimates until an answer is drawn: a jump may pass one over, and the next finds it.
const SCROLLS_PER_ANSWER = 60;

/** Scrolls up or down until "answer `n`" is drawn. */
async function scrollToAnswer(page, n) {
  const seen = [];
  for (let scrolls = 0; scrolls < SCROLLS_PER_ANSWER; scrolls++) {
    const answers = await page.locator(`${ANSWER} strong`).allInnerTexts();
    if (answers.includes(`answer ${n}`)) return;
    // "Runaway 7" stands right before "answer 8".
    const places = answers.flatMap((words) => {
      const [, calm, digits] = /^(answer )?(\d+)$/.exec(words) ?? [];
      return digits ? [calm ? Number(digits) : Number(digits) + 0.5] : [];
    });
    seen.push(`${Math.min(...places)}–${Math.max(...places)}`);
    if (Math.min(...places) > n) await page.locator(ANSWER).first().evaluate((answer) => answer.scrollIntoView());
    else await page.locator(ANSWER).last().evaluate((answer) => answer.scrollIntoView({ block: 'end' }));
    await page.waitForTimeout(SETTLED_MS);
  }
  assert(false, `answer ${n} was not drawn: ${seen.join(' ')}`);
}

/** A model that repeats itself without end. */
export async function aRunawayAnswerBlanksNothing(origin, server) {
  const units = ['>', '> - ', '- ', '**a ', '[', '<sub>', '$a', '\\[\n', '`', '| a |\n|-|\n', '\\frac{', '> a\nb\n'];
  const answers = [`${'>'.repeat(2000)} deep`, ...units.map((unit) => `Runaway **${units.indexOf(unit)}**\n\n${unit.repeat(RUNAWAY_CHARS / unit.length)}`)];
  const id = await conversationOf(server, 'runaway', answers.flatMap((it, n) => [it, `Calm **answer ${n}**.`]));
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('conversation-row')).first().waitFor();
    await openConversation(page, id);
    await page.locator(`${ANSWER} strong`, { hasText: `answer ${answers.length - 1}` }).waitFor();
    for (let n = answers.length - 1; n >= 0; n--) await scrollToAnswer(page, n);
    await look(page, 'runaway');
    await assertQuiet();
  } finally {
    await close();
  }
}

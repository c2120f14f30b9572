// What a model writes is text: nothing of it runs, loads, navigates or acts.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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

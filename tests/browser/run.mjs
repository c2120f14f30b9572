// The page in a browser: Debian's chromium driven by Playwright, against `nook serve`, and against the stand-in where a
// test chooses what is answered. Last line: `N passed, N failed`. `--keep DIR` leaves screenshots there; names run some.

import { mkdirSync } from 'node:fs';
import { axeFindsNothingGrave, fourTimesAsLargeItStillWorks } from './access.mjs';
import { anAnswerIsMadeWithOtherSettings } from './again.mjs';
import { aHostileChatDoesNothing, aRunawayAnswerBlanksNothing, nothingThatAModelWritesRunsOrLeaves } from './attacks.mjs';
import { anInputMethodEndsNothing } from './composition.mjs';
import { theChatHasTheRoom } from './density.mjs';
import { aDiagramIsDrawnFromItsSource } from './diagram.mjs';
import { modelsAreChosenWithoutUnfolding } from './discover.mjs';
import { filesGoWithMessages } from './files.mjs';
import { foldersLieInFolders } from './folders.mjs';
import { searchingFindsWhatIsShown } from './found.mjs';
import { whatIsAtHandWorks } from './habits.mjs';
import { imagesGoWithMessages } from './images.mjs';
import { keysAloneReachEverything, keysAloneWorkFilesAndTools } from './keys.mjs';
import { languagesChangeAtOnce, rightToLeftIsMirrored } from './languages.mjs';
import { aLongAnswerStreamsSmoothly, messagesQueueWhileOneIsAnswered, twoThousandMessagesOpenAndScroll } from './long.mjs';
import { ANSWERED, KEEP, KEY, assert, browse, byId, look, serve } from './scenario.mjs';
import { whatIsOnesOwnIsKept } from './own.mjs';
import { whatAModelWroteIsPreviewedApart } from './preview.mjs';
import { anAnswerSaysWhereItsTimeGoes } from './profile.mjs';
import { notesAreAPartOfPrompts } from './memory.mjs';
import { aChatBeginsInAProject } from './projects.mjs';
import { aServersNameStandsWhereWordsAreWritten } from './remote.mjs';
import { theServerIsControlledInTheWindow } from './server.mjs';
import { settingsAreFewAndFound } from './settings.mjs';
import { theNextStepIsOnePress } from './steps.mjs';
import { aTemporaryChatHasToolsAndResources, aToolIsAddedAllowedAndAnswered } from './tools.mjs';
import { aModelIsFineTunedAndAnswers } from './tunes.mjs';

// ---- the scenarios ----

async function aQuestionIsAnsweredAndKept(origin) {
  const { page, requests, complaints, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).fill('How do I add a model?');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).first().waitFor({ timeout: 120_000 });
    const text = (await page.locator(ANSWERED).first().innerText()).trim();
    assert(text.length > 20, `a very short answer: ${text}`);
    await look(page, 'answer');

    await page.reload();
    await page.locator(`${byId('conversation-row')} button`).first().click();
    await page.locator(ANSWERED).first().waitFor();
    const again = (await page.locator(ANSWERED).first().innerText()).trim();
    assert(again === text, `after a reload: ${again} is not ${text}`);

    const strangers = requests.filter((url) => !url.startsWith(`${origin}/`));
    assert(strangers.length === 0, `requests left the origin: ${strangers}`);
    assert(requests.every((url) => !url.includes(KEY)), 'the key stands in a request address');
    const violations = await page.evaluate(() => window.cspViolations);
    assert(violations.length === 0, `CSP: ${violations}`);
    assert(complaints.length === 0, `the console complains: ${complaints.join('\n')}`);
  } finally {
    await close();
  }
}

async function theGuideAnswersAndOpensAPlace(origin, server) {
  await server.call('settings_set', { key: 'guide_answers', value: true });
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).fill('How do I turn on dark mode?');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor({ timeout: 10_000 });
    await page.locator(byId('guide-source')).waitFor();
    assert((await page.locator(byId('guide-article')).innerText()).includes('Light or dark'), 'its article is named');
    await look(page, 'guide-answer');
    await page.locator(byId('guide-open')).first().click();
    await page.locator(byId('theme')).waitFor();
    await page.locator(byId('learn-theme')).click();
    await page.locator(byId('help-text')).getByRole('heading', { name: 'Light or dark' }).waitFor();
    await assertQuiet();
  } finally {
    await server.call('settings_set', { key: 'guide_answers', value: false });
    await close();
  }
}

async function thePolicyStands(origin) {
  const answer = await fetch(`${origin}/`);
  const policy = answer.headers.get('content-security-policy') ?? '';
  for (const part of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]) {
    assert(policy.includes(part), `the policy lacks ${part}: ${policy}`);
  }
  const { page, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).waitFor();
    const out = await page.evaluate(() => fetch('http://127.0.0.1:9/').then(() => 'went', () => 'refused'));
    assert(out === 'refused', 'the page may fetch from elsewhere');
    const violations = await page.evaluate(() => window.cspViolations);
    assert(violations.some((it) => it.startsWith('connect-src')), 'the fetch failed for another reason than the policy');
  } finally {
    await close();
  }
}

async function withoutTheKeyNothingIsShown(origin) {
  const { page, close } = await browse(origin, 'wrong-key');
  try {
    await page.getByText(/key/i).first().waitFor();
    assert((await page.locator(byId('conversation-row')).count()) === 0, 'conversations are shown');
    const status = (await fetch(`${origin}/api/conversations_list`, { method: 'POST', body: '{}' })).status;
    assert(status === 401, `without a key: ${status}`);
    await look(page, 'wrong-key');
  } finally {
    await close();
  }
}

async function anotherTokenIsTaken(origin, server) {
  // A model that writes a title can't be looked into meanwhile.
  await server.call('settings_set', { key: 'titles', value: false });
  const { page, assertQuiet, close } = await browse(origin, KEY);
  try {
    await page.locator(byId('composer')).fill('How do I add a model?');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor({ timeout: 120_000 });
    const before = (await page.locator(`${ANSWERED} .md`).innerText()).trim();
    await page.locator(byId('message-menu')).last().click();
    await page.locator(byId('message-tokens')).click();
    await page.locator(byId('alternatives')).waitFor({ timeout: 60_000 });
    const tokens = await page.locator(`${byId('tokens')} [role=button]`).allInnerTexts();
    assert(tokens.length > 5, `an answer of ${tokens.length} tokens`);
    await look(page, 'tokens');
    for (let n = 0; n < 3; n++) await page.keyboard.press('ArrowRight');
    await page.locator(`${byId('tokens')} [role=button]`).nth(3).click();
    await page.locator(byId('take-token')).first().click();
    await page.locator(byId('versions')).last().waitFor({ timeout: 60_000 });
    await page.locator(ANSWERED).waitFor({ timeout: 120_000 });
    const after = (await page.locator(`${ANSWERED} .md`).innerText()).trim();
    assert(after !== before, 'the answer is the same');
    // Bold is shown without its marks.
    const plain = (text) => text.replaceAll('*', '').trim();
    const start = plain(tokens.slice(0, 2).join(''));
    assert(plain(after).startsWith(start), `${after} does not begin with ${start}`);
    assert((await page.locator(byId('versions')).last().innerText()).includes('2/2'), 'it is the second version');
    await assertQuiet();
  } finally {
    await close();
  }
}

/** Each gets its own server. */
const ON_SERVER = [
  aQuestionIsAnsweredAndKept,
  theGuideAnswersAndOpensAPlace,
  thePolicyStands,
  withoutTheKeyNothingIsShown,
  anotherTokenIsTaken,
  anAnswerIsMadeWithOtherSettings,
  foldersLieInFolders,
  aChatBeginsInAProject,
  notesAreAPartOfPrompts,
  nothingThatAModelWritesRunsOrLeaves,
  aHostileChatDoesNothing,
  aRunawayAnswerBlanksNothing,
  twoThousandMessagesOpenAndScroll,
  filesGoWithMessages,
  imagesGoWithMessages,
  aToolIsAddedAllowedAndAnswered,
  aTemporaryChatHasToolsAndResources,
  anAnswerSaysWhereItsTimeGoes,
  aModelIsFineTunedAndAnswers,
];
const ON_STAND_IN = [
  messagesQueueWhileOneIsAnswered,
  aLongAnswerStreamsSmoothly,
  axeFindsNothingGrave,
  whatIsAtHandWorks,
  theNextStepIsOnePress,
  aServersNameStandsWhereWordsAreWritten,
  settingsAreFewAndFound,
  whatIsOnesOwnIsKept,
  theServerIsControlledInTheWindow,
  searchingFindsWhatIsShown,
  modelsAreChosenWithoutUnfolding,
  theChatHasTheRoom,
  keysAloneReachEverything,
  keysAloneWorkFilesAndTools,
  fourTimesAsLargeItStillWorks,
  rightToLeftIsMirrored,
  languagesChangeAtOnce,
  aDiagramIsDrawnFromItsSource,
  whatAModelWroteIsPreviewedApart,
  anInputMethodEndsNothing,
];

// The slowest takes 45 s on two cores. A page that answers nothing any more would be waited for without end.
const SCENARIO_MS = 180_000;

/** Runs a scenario and fails it when its time is over. */
async function withinTime(scenario, server) {
  let timer;
  const over = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not over after ${SCENARIO_MS / 1000} s`)), SCENARIO_MS);
  });
  const run = scenario(server?.origin, server);
  // It may fail later still, when its browser is closed.
  run.catch(() => {});
  try {
    await Promise.race([run, over]);
  } finally {
    clearTimeout(timer);
  }
}

async function main() {
  if (KEEP) mkdirSync(KEEP, { recursive: true });
  let passed = 0;
  let failed = 0;
  const names = process.argv.slice(2).filter((it) => !it.startsWith('--') && it !== KEEP);
  const chosen = [...ON_SERVER, ...ON_STAND_IN].filter((it) => names.length === 0 || names.includes(it.name));
  for (const scenario of chosen) {
    const began = Date.now();
    let server;
    try {
      if (ON_SERVER.includes(scenario)) server = await serve();
      await withinTime(scenario, server);
      passed += 1;
      console.log(`ok      ${scenario.name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${scenario.name}\n${error.stack}`);
    } finally {
      await server?.close();
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  // Also where the browser of a scenario that ran out of time is still open.
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}

await main();

// What the user sets for new chats and for one chat: colors and sizes, default instructions, own prompts, thinking.

import { assert, browse, byId, look, standIn, until } from './scenario.mjs';

const section = (name) => `${byId('settings-section')}[data-section="${name}"]`;

async function looksChange(page) {
  await page.keyboard.press('Control+,');
  await page.locator(section('Appearance')).click();
  await page.locator(`select${byId('setting-accent')}`).selectOption('blue');
  const before = await page.evaluate(() => getComputedStyle(document.body).fontSize);
  await page.locator(`select${byId('setting-text_size')}`).selectOption('large');
  await until(page, () => document.documentElement.dataset.textSize === 'large');
  const after = await page.evaluate(() => getComputedStyle(document.body).fontSize);
  assert(parseFloat(after) > parseFloat(before) * 1.1, `texts stay at ${after}`);
  await look(page, 'settings-look');
  await page.emulateMedia({ colorScheme: 'dark' });
  await look(page, 'settings-look-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.reload();
  // The first paint has them too.
  const at = await page.evaluate(() => ({ ...document.documentElement.dataset }));
  assert(at.accent === 'blue' && at.textSize === 'large', `after a reload: ${JSON.stringify(at)}`);
}

async function newChatsBeginWithInstructions(page) {
  await page.keyboard.press('Control+,');
  await page.locator(section('Chat')).click();
  await page.locator(byId('setting-instructions')).fill('Answer briefly.');
  await page.keyboard.press('Tab');
  await look(page, 'settings-chat');
  await page.keyboard.press('Escape');
  await page.locator(byId('chat-options')).click();
  const prompt = page.locator(byId('system-prompt'));
  await until(page, () => document.querySelector('[data-testid="system-prompt"]').value === 'Answer briefly.');
  await page.locator(byId('option-presence_penalty')).fill('0.5');
  await page.locator(byId('option-stop')).fill('END\n\\n\\n');
  await page.locator(byId('option-json_schema')).fill('{"type": "object"}');
  await look(page, 'options');
  await page.emulateMedia({ colorScheme: 'dark' });
  await look(page, 'options-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await prompt.fill('Rhyme.');
  await page.keyboard.press('Tab');
  await page.locator(byId('composer')).fill('Hello');
  const sent = page.waitForRequest((request) => request.url().endsWith('/api/send'));
  await page.keyboard.press('Enter');
  const { options } = (await sent).postDataJSON();
  assert(options.system_prompt === 'Rhyme.', `sent with ${options.system_prompt}`);
  assert(JSON.stringify(options.stop) === '["END","\\n\\n"]', `stop texts: ${JSON.stringify(options.stop)}`);
  assert(options.presence_penalty === 0.5 && options.json_schema === '{"type": "object"}', JSON.stringify(options));
  await page.locator(byId('chat-options')).click();
}

async function promptsAreWrittenAndInserted(page) {
  await page.keyboard.press('Control+Shift+O');
  await page.locator(byId('composer')).fill('/');
  await page.locator(byId('slash-own')).click();
  await page.locator(byId('setting-prompts')).click();
  await page.locator(byId('own-prompt-name')).fill('mail');
  await page.locator(byId('own-prompt-text')).fill('Write a friendly mail about');
  await look(page, 'own-prompts');
  await page.locator(byId('own-prompt-save')).click();
  await page.locator(byId('own-prompt')).getByText('mail', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.locator(byId('composer')).fill('/ma');
  await page.locator(byId('slash-prompt')).getByText('mail', { exact: true }).waitFor();
  await look(page, 'slash-own');
  await page.locator(byId('composer')).press('Enter');
  await until(page, () => document.querySelector('[data-testid="composer"]').value === 'Write a friendly mail about');
}

async function thinkingIsTheChatsOwn(page, requests) {
  await page.locator(byId('think-toggle')).waitFor();
  const toggle = page.locator(byId('think-toggle'));
  assert((await toggle.getAttribute('aria-pressed')) === 'true', 'thinking is off at first');
  await toggle.click();
  await page.locator(`${byId('think-toggle')}[aria-pressed=false]`).waitFor();
  const written = requests.filter((it) => it.endsWith('/api/settings_set')).length;
  await look(page, 'think-off');
  await page.locator(byId('composer')).press('Control+Shift+O');
  await page.locator(byId('composer')).fill('Another chat');
  await page.locator(`${byId('think-toggle')}[aria-pressed=true]`).waitFor();
  const after = requests.filter((it) => it.endsWith('/api/settings_set')).length;
  assert(after === written, 'thinking of one chat was written into the settings');
}

export async function whatIsOnesOwnIsKept() {
  const server = await standIn(400);
  const { page, requests, assertQuiet, close } = await browse(server.origin);
  try {
    await page.locator(byId('composer')).waitFor();
    await looksChange(page);
    await newChatsBeginWithInstructions(page);
    await promptsAreWrittenAndInserted(page);
    await thinkingIsTheChatsOwn(page, requests);
    await assertQuiet();
  } finally {
    await close();
    await server.close();
  }
}

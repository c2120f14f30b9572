// Screenshots of every view, light and dark, from the built page and the stand-in: `node dev/gallery.mjs DIR [NAME…]`.
// Any message on the page's console fails the run.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const [folder = '../target/gallery', ...names] = process.argv.slice(2);
const SIZES = { small: [900, 600], usual: [1280, 800], large: [1920, 1080] };
const HERE = new URL('.', import.meta.url).pathname;

const id = (page, name) => page.locator(`[data-testid="${name}"]`).first();
const press = (keys) => (page) => page.keyboard.press(keys);
const section = (name) => async (page) => {
  await page.keyboard.press('Control+,');
  await page.locator(`[data-testid="settings-section"][data-section="${name}"]`).click();
};
const tab = (name) => async (page) => {
  await page.keyboard.press('Control+2');
  await id(page, `models-tab-${name}`).click();
};
const step = (n) => async (page) => {
  await section('General')(page);
  await id(page, 'show-welcome').click();
  for (let at = 1; at < n; at++) await id(page, 'welcome-next').click();
};

const speaking = (language, then) => async (page) => {
  await section('General')(page);
  await id(page, 'setting-language').selectOption(language);
  await page.locator(`html[lang="${language}"]`).waitFor();
  await page.keyboard.press('Escape');
  await then(page);
};
const first = async (page) => {
  await page.locator('[data-testid="conversation-row"][data-id="c1"] button').first().click();
  await id(page, 'message-assistant').waitFor();
};

/** An answer that ends early. */
const ending = (question, then) => async (page) => {
  await id(page, 'composer').fill(question);
  await page.keyboard.press('Enter');
  await id(page, then).waitFor();
};

const diagram = (at) => async (page) => {
  await id(page, 'composer').fill('A diagram, please');
  await page.keyboard.press('Enter');
  await page.locator('[data-testid="message-assistant"][data-state="complete"]').waitFor();
  await page.locator('[data-testid="diagram-draw"]').nth(at).click();
  await id(page, 'diagram').waitFor();
  await id(page, 'diagram').scrollIntoViewIfNeeded();
};
/** A message with attachments: as a draft, then sent. */
const files = (isSent) => async (page) => {
  await page.locator('[data-testid="attach-input"]').setInputFiles([
    { name: 'plan.md', mimeType: 'text/markdown', buffer: Buffer.from('# Plan\n\nAdd a model.\n') },
    { name: 'stoves and their chimneys, 1890–1910.pdf', mimeType: 'application/pdf', buffer: Buffer.from('x'.repeat(90_000)) },
    { name: 'woods.csv', mimeType: 'text/csv', buffer: Buffer.from('wood,heat\noak,4.2\n') },
  ]);
  await id(page, 'composer').fill('What do these say about birch?');
  await page.waitForFunction(() => document.querySelectorAll('[data-testid="file"][data-state="ready"]').length === 3);
  await id(page, 'draft-count').waitFor();
  if (!isSent) return;
  await page.keyboard.press('Enter');
  await page.locator('[data-testid="message-assistant"][data-state="complete"]').waitFor();
  // Rows far above are not rendered.
  await page.locator('[role="region"][aria-label="Chat"]').focus();
  await page.keyboard.press('Home');
  await id(page, 'sent-files').waitFor();
};

/** Each view starts from a fresh page. */
const VIEWS = {
  'new-chat': () => {},
  chat: async (page) => {
    await page.getByText('What is an inglenook?').first().click();
    await id(page, 'message-assistant').waitFor();
  },
  slash: async (page) => {
    await id(page, 'composer').pressSequentially('/');
    await id(page, 'slash-menu').waitFor();
  },
  'slash-form': async (page) => {
    await id(page, 'composer').pressSequentially('/summ');
    await id(page, 'slash-prompt').click();
    await id(page, 'prompt-form').waitFor();
  },
  context: async (page) => {
    await first(page);
    await id(page, 'context-ring').click();
    await id(page, 'context-parts').waitFor();
  },
  'end-length': ending('Let it be cut short', 'continue'),
  'end-full': ending('Let it run: it runs over', 'step-compact'),
  diagram: diagram(0),
  pie: diagram(1),
  gantt: diagram(2),
  edit: async (page) => {
    await first(page);
    await page.locator('[data-testid="message-menu"]').last().click();
    await id(page, 'answer-edit').click();
    await id(page, 'edit-text').waitFor();
  },
  once: async (page) => {
    await first(page);
    await page.locator('[data-testid="message-menu"]').last().click();
    await id(page, 'regenerate-once').click();
    await id(page, 'once-temperature').fill('1.2');
  },
  instruments: async (page) => {
    await first(page);
    // The setting outlives the page and shows off until it is loaded: a click before that would switch it off.
    const read = page.waitForResponse((answer) => answer.url().endsWith('/api/profile'));
    await page.keyboard.press('Control+i');
    await (await read).finished();
    await page.waitForTimeout(100);
    await id(page, 'profile-switch').check();
    await id(page, 'profile-writing').waitFor();
    await id(page, 'profile-trace').scrollIntoViewIfNeeded();
  },
  'chat-de': speaking('de', first),
  'chat-ja': speaking('ja', first),
  'chat-ar': speaking('ar', first),
  'end-length-ar': speaking('ar', ending('Let it be cut short', 'continue')),
  'settings-de': speaking('de', section('Chat')),
  'settings-ja': speaking('ja', section('Hardware')),
  'settings-ar': speaking('ar', section('Chat')),
  'models-ar': speaking('ar', tab('discover')),
  options: press('Control+Shift+B'),
  palette: async (page) => {
    await page.keyboard.press('Control+k');
    await page.keyboard.type('mod');
    await id(page, 'palette-row').waitFor();
  },
  picker: press('Control+Shift+M'),
  models: tab('here'),
  discover: async (page) => {
    await tab('discover')(page);
    await id(page, 'hub-model').click();
    await id(page, 'hub-file').waitFor();
  },
  servers: tab('servers'),
  model: async (page) => {
    await tab('here')(page);
    await id(page, 'model-options').click();
    await id(page, 'model-details').click();
  },
  settings: section('Chat'),
  files: files(false),
  'files-sent': files(true),
  'file-text': async (page) => {
    await files(false)(page);
    await id(page, 'file-open').click();
    await id(page, 'file-text').waitFor();
  },
  tools: section('Tools'),
  'tool-list': async (page) => {
    await section('Tools')(page);
    await id(page, 'tool-list').locator('summary').click();
  },
  'tool-form': async (page) => {
    await section('Tools')(page);
    await id(page, 'tool-server-add').click();
  },
  'tool-paste': async (page) => {
    await section('Tools')(page);
    await id(page, 'tool-server-paste').click();
  },
  plugins: async (page) => {
    await section('Tools')(page);
    await page.locator('[data-testid="plugin"]').last().scrollIntoViewIfNeeded();
  },
  'endpoint-form': async (page) => {
    await tab('servers')(page);
    await id(page, 'endpoint-add').click();
  },
  'local-server': section('Local server'),
  'once-ar': speaking('ar', async (page) => {
    await first(page);
    await page.locator('[data-testid="message-menu"]').last().click();
    await id(page, 'regenerate-once').click();
  }),
  'picker-ar': speaking('ar', press('Control+Shift+M')),
  shortcuts: section('Shortcuts'),
  privacy: section('Privacy & network'),
  about: section('About'),
  trash: async (page) => id(page, 'trash-open').click(),
  'welcome-1': step(1),
  'welcome-3': step(3),
};

async function stand() {
  const child = spawn(process.execPath, [join(HERE, 'fake-nook.mjs'), '--port', '0', '--fast'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await new Promise((done, fail) => {
    createInterface({ input: child.stdout }).once('line', done);
    child.once('exit', (code) => fail(new Error(`the stand-in ended with ${code}`)));
  });
  return { child, origin: JSON.parse(line).listening };
}

async function picture(browser, origin, name, size, scheme) {
  const [width, height] = SIZES[size];
  const viewport = { width, height };
  const context = await browser.newContext({ viewport, colorScheme: scheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const complaints = [];
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(origin);
  await id(page, 'composer').waitFor();
  await VIEWS[name](page);
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(folder, `${name}-${size}-${scheme}.png`) });
  await context.close();
  return complaints.map((it) => `${name}, ${size}, ${scheme}: ${it}`);
}

/** Each view has its own stand-in, so that it cannot affect the next. */
async function shoot(browser, ...view) {
  const { child, origin } = await stand();
  try {
    return await picture(browser, origin, ...view);
  } finally {
    child.kill();
  }
}

async function main() {
  mkdirSync(folder, { recursive: true });
  const wanted = names.length > 0 ? names : Object.keys(VIEWS);
  const profile = mkdtempSync(join(tmpdir(), 'inglenook-gallery-'));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
    env: { ...process.env, HOME: profile },
  });
  const complaints = [];
  try {
    for (const name of wanted) {
      for (const size of Object.keys(SIZES)) {
        const both = ['light', 'dark'].map((scheme) => shoot(browser, name, size, scheme));
        complaints.push(...(await Promise.all(both)).flat());
      }
    }
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  }
  for (const complaint of complaints) console.error(complaint);
  console.log(`${wanted.length * 6} pictures in ${folder}`);
  process.exitCode = complaints.length === 0 ? 0 : 1;
}

await main();

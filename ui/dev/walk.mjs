// Ten tasks of a newcomer in the built page over the stand-in, with their clicks counted: `node dev/walk.mjs`.
// A click is a press of a pointer or of a key that acts, such as Enter; typed text is not counted. A dialog of the
// system counts as one click.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const HERE = new URL('.', import.meta.url).pathname;

/** A page whose clicks are counted. */
class Walker {
  clicks = 0;

  constructor(page) {
    this.page = page;
  }

  at(name) {
    return this.page.locator(name.startsWith('[') ? name : `[data-testid="${name}"]`).first();
  }

  async click(...names) {
    for (const name of names) {
      await this.at(name).click();
      this.clicks++;
    }
  }

  async press(keys) {
    await this.page.keyboard.press(keys);
    this.clicks++;
  }

  async type(name, text) {
    await this.at(name).fill(text);
  }

  seen(name) {
    return this.at(name).waitFor();
  }

  section(name) {
    return `[data-testid="settings-section"][data-section="${name}"]`;
  }

  async answered() {
    await this.at('[data-testid="message-assistant"][data-state="complete"]').waitFor();
  }
}

const TASKS = {
  'First answer': async (it) => {
    await it.type('composer', 'What is birch good for?');
    await it.press('Enter');
    await it.answered();
  },
  'A larger model': async (it) => {
    await it.click('models-open', 'models-tab-discover', 'hub-download');
    await it.seen('download-row');
  },
  'Attach a file and ask': async (it) => {
    await it.at('attach').waitFor();
    it.clicks += 2; // The button, and the choice in the system's dialog.
    await it.at('attach-input').setInputFiles({ name: 'plan.md', mimeType: 'text/markdown', buffer: Buffer.from('# Plan') });
    await it.seen('[data-testid="file"][data-state="ready"]');
    await it.type('composer', 'What does this say?');
    await it.press('Enter');
    await it.answered();
  },
  'Find an old answer': async (it) => {
    await it.click('search');
    await it.type('search', 'inglenook');
    await it.click('search-hit');
    await it.seen('message-assistant');
  },
  'Change the instructions': async (it) => {
    await it.click('chat-options');
    await it.type('system-prompt', 'Answer briefly.');
    await it.press('Tab');
  },
  'Summarize a long chat': async (it) => {
    const clicks = it.clicks;
    await it.click('[data-testid="conversation-row"][data-id="c1"] button');
    it.clicks = clicks; // The chat is open already.
    await it.seen('message-assistant');
    await it.click('context-ring', 'compact-now');
  },
  'Connect a tool': async (it) => {
    await it.click('settings-open', it.section('Tools'), 'tool-server-paste');
    await it.type('tool-paste', '{"mcpServers":{"files":{"command":"npx","args":["-y","server"]}}}');
    await it.click('tool-paste-add');
  },
  'Serve another program': async (it) => {
    await it.click('settings-open', it.section('Local server'), 'server-start', 'server-key-copy');
  },
  'Move to another computer': async (it) => {
    await it.click('settings-open', it.section('Data'));
    await it.seen('backup');
    it.clicks += 2; // The button, and the place in the system's dialog.
    it.clicks += 4; // The same on the other computer, with Restore.
  },
  'Delete a chat for good': async (it) => {
    await it.at('[data-testid="conversation-row"][data-id="c1"]').hover();
    await it.click('[data-testid="conversation-row"][data-id="c1"] [data-testid="conversation-menu"]');
    await it.click('conversation-delete', 'trash-open', 'trash-forget', 'forget-confirm');
  },
};

async function stand() {
  const args = [join(HERE, 'fake-nook.mjs'), '--port', '0', '--fast'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise((done) => createInterface({ input: child.stdout }).once('line', done));
  return { child, origin: JSON.parse(line).listening };
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
});
try {
  for (const [name, walk] of Object.entries(TASKS)) {
    const { child, origin } = await stand();
    const page = await browser.newPage();
    page.setDefaultTimeout(10_000);
    try {
      await page.goto(origin);
      const it = new Walker(page);
      await it.seen('composer');
      await walk(it);
      console.log(`${name}: ${it.clicks}`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`${name}: ${String(error).split('\n')[0]}`);
    } finally {
      await page.close();
      child.kill();
    }
  }
} finally {
  await browser.close();
}

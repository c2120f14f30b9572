// Where a scenario takes place: a server with its own data folder (or the stand-in), and a fresh browser.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const { chromium } = createRequire(join(ROOT, 'ui/package.json'))('playwright-core');

const NOOK = resolve(ROOT, process.env.INGLENOOK_NOOK ?? 'target/debug/nook');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const KEY = 'key-of-the-browser-test';
const keepAt = process.argv.indexOf('--keep');
export const KEEP = keepAt > 0 ? process.argv[keepAt + 1] : null;

export const byId = (id) => `[data-testid="${id}"]`;
export const ANSWER = byId('message-assistant');
export const QUESTION = byId('message-user');
export const ANSWERED = `${ANSWER}[data-state="complete"]`;

/** A program that says where it listens in its first line. */
async function listening(program, args, atEnd = () => {}) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  // A scenario that runs out of time leaves it behind.
  process.once('exit', () => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  const origin = await new Promise((done, fail) => {
    lines.once('line', (line) => done(JSON.parse(line).listening));
    child.once('error', fail);
    child.once('exit', (code) => fail(new Error(`${program} ended with ${code} before it listened`)));
  });
  const close = () =>
    new Promise((done) => {
      child.removeAllListeners('exit');
      child.once('exit', done);
      child.kill('SIGTERM');
    }).finally(atEnd);
  return { origin, close };
}

/** `nook serve` on a free port with its own data folder. */
export async function serve() {
  const dir = mkdtempSync(join(tmpdir(), 'inglenook-browser-'));
  const args = ['serve', '--port', '0', '--api-key', KEY, '--data-dir', dir];
  const server = await listening(NOOK, args, () => rmSync(dir, { recursive: true, force: true }));
  const served = { ...server, dir, call: (name, body) => call(server.origin, name, body) };
  // Most scenarios look at what a model writes; the one about the guide turns it on.
  await served.call('settings_set', { key: 'guide_answers', value: false });
  return served;
}

/** The stand-in, for answers that a test chooses: the built page under the same policy. */
export function standIn(speed) {
  const script = join(ROOT, 'ui/dev/fake-nook.mjs');
  return listening(process.execPath, [script, '--port', '0', '--speed', String(speed)]);
}

async function call(origin, name, body) {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const answer = await fetch(`${origin}/api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const result = await answer.json();
  if (!answer.ok) throw new Error(`${name}: ${JSON.stringify(result)}`);
  return result;
}

/** A conversation of these answers, each behind a question, as if a model had written them; its id. */
export async function conversationOf(server, title, answers) {
  const messages = [];
  answers.forEach((text, n) => {
    const parent = n > 0 ? `a${n - 1}` : null;
    messages.push({ id: `q${n}`, parent, role: 'user', text: `Question ${n + 1}`, state: 'complete', created_ms: n });
    messages.push({ id: `a${n}`, parent: `q${n}`, role: 'assistant', text, state: 'complete', created_ms: n });
  });
  const one = { id: `made-${title}`, title, model: 'starter', messages, leaf: messages.at(-1).id };
  const file = { format: 'inglenook.conversations', version: 1, conversations: [one] };
  const base64 = Buffer.from(JSON.stringify(file)).toString('base64');
  const { conversations, failures } = await server.call('import_bytes', { base64 });
  if (conversations.length !== 1) throw new Error(`not imported: ${JSON.stringify(failures)}`);
  return conversations[0].id;
}

/** A fresh browser whose every request and complaint is written down. */
export async function browse(origin, key, options = {}) {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
  args.push('--disable-background-networking', '--disable-component-update', '--disable-sync');
  const browser = await chromium.launch({ executablePath: CHROMIUM, headless: true, args });
  const context = await browser.newContext({ viewport: { width: 1100, height: 760 }, ...options });
  const page = await context.newPage();
  const requests = [];
  const complaints = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.addInitScript(() => {
    window.cspViolations = [];
    document.addEventListener('securitypolicyviolation', (event) => {
      window.cspViolations.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await page.goto(key ? `${origin}/#key=${key}` : origin);
  /** Nothing left the origin, nothing broke the policy, nothing was complained about. */
  const assertQuiet = async () => {
    const strangers = requests.filter((url) => !url.replace(/^blob:/, '').startsWith(`${origin}/`));
    assert(strangers.length === 0, `requests left the origin: ${strangers}`);
    const violations = await page.evaluate(() => window.cspViolations);
    assert(violations.length === 0, `CSP: ${violations}`);
    assert(complaints.length === 0, `the console complains: ${complaints.join('\n')}`);
  };
  return { browser, page, requests, complaints, assertQuiet, close: () => browser.close() };
}

export function assert(holds, message) {
  if (!holds) throw new Error(message);
}

export async function look(page, name) {
  if (KEEP) await page.screenshot({ path: join(KEEP, `browser-${name}.png`) });
}

export async function openConversation(page, id) {
  await page.locator(`${byId('conversation-row')}[data-id="${id}"] button`).first().click();
  await page.locator(ANSWER).first().waitFor();
}

/** Once `holds` is true in the page. */
export const until = (page, holds, arg) => page.waitForFunction(holds, arg, { timeout: 60_000 });

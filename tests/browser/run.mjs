// The page in a browser, served by `nook serve`: Debian's chromium driven by Playwright.
// Last line: `N passed, N failed`. `--keep DIR` leaves screenshots there.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const { chromium } = createRequire(join(ROOT, 'ui/package.json'))('playwright-core');

const NOOK = resolve(ROOT, process.env.INGLENOOK_NOOK ?? 'target/debug/nook');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const KEY = 'key-of-the-browser-test';
const keepAt = process.argv.indexOf('--keep');
const KEEP = keepAt > 0 ? process.argv[keepAt + 1] : null;

const byId = (id) => `[data-testid="${id}"]`;
const ANSWERED = `${byId('message-assistant')}[data-state="complete"]`;

/** `nook serve` on a free port with a data folder of its own. */
async function serve() {
  const dir = mkdtempSync(join(tmpdir(), 'inglenook-browser-'));
  const args = ['serve', '--port', '0', '--api-key', KEY, '--data-dir', dir];
  const child = spawn(NOOK, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const origin = await new Promise((done, fail) => {
    lines.once('line', (line) => done(JSON.parse(line).listening));
    child.once('error', fail);
    child.once('exit', (code) => fail(new Error(`nook serve ended with ${code} before it listened`)));
  });
  const close = () =>
    new Promise((done) => {
      child.removeAllListeners('exit');
      child.once('exit', done);
      child.kill('SIGTERM');
    }).finally(() => rmSync(dir, { recursive: true, force: true }));
  return { origin, close };
}

/** A fresh browser whose every request and complaint is written down. */
async function browse(origin, key) {
  const profile = mkdtempSync(join(tmpdir(), 'inglenook-chromium-'));
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
  args.push('--disable-background-networking', '--disable-component-update', '--disable-sync');
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: true,
    args,
    viewport: { width: 1100, height: 760 },
  });
  const page = context.pages()[0] ?? (await context.newPage());
  const requests = [];
  const complaints = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.addInitScript(() => {
    window.cspViolations = [];
    document.addEventListener('securitypolicyviolation', (event) => {
      window.cspViolations.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await page.goto(key ? `${origin}/#key=${key}` : origin);
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { page, requests, complaints, close };
}

function assert(holds, message) {
  if (!holds) throw new Error(message);
}

async function look(page, name) {
  if (KEEP) await page.screenshot({ path: join(KEEP, `browser-${name}.png`) });
}

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

const SCENARIOS = [aQuestionIsAnsweredAndKept, thePolicyStands, withoutTheKeyNothingIsShown];

async function main() {
  if (KEEP) mkdirSync(KEEP, { recursive: true });
  let passed = 0;
  let failed = 0;
  for (const scenario of SCENARIOS) {
    const began = Date.now();
    let server;
    try {
      server = await serve();
      await scenario(server.origin);
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
  process.exitCode = failed === 0 ? 0 : 1;
}

await main();

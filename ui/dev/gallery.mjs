// Screenshots of every view, light and dark, from the built page and the stand-in: `node dev/gallery.mjs DIR [NAME…]`.
// Any message on the page's console fails the run.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import { VIEWS, id } from './gallery-views.mjs';

const [folder = '../target/gallery', ...names] = process.argv.slice(2);
const ALL_SIZES = { narrow: [700, 800], small: [900, 600], usual: [1280, 800], large: [1920, 1080] };
/** `GALLERY_SIZES=narrow,usual` takes some of the sizes. */
const SIZES = Object.fromEntries(
  Object.entries(ALL_SIZES).filter(([name]) => (process.env.GALLERY_SIZES ?? 'small,usual,large').split(',').includes(name)),
);
const HERE = new URL('.', import.meta.url).pathname;

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
  console.log(`${wanted.length * Object.keys(SIZES).length * 2} pictures in ${folder}`);
  process.exitCode = complaints.length === 0 ? 0 : 1;
}

await main();

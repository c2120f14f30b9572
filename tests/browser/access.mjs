// For everybody: axe on every screen, 400 % zoom.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { choose } from './keys.mjs';
import { ANSWERED, ROOT, assert, browse, byId, look, openConversation, standIn, until } from './scenario.mjs';

const AXE = readFileSync(join(ROOT, 'ui/node_modules/axe-core/axe.min.js'), 'utf8');
const GRAVE = ['serious', 'critical'];

/** Nothing grave on what is shown now. */
async function examine(page, name) {
  // What fades in has its colour when it is there.
  await until(page, () => document.getAnimations().every((it) => it.playState !== 'running' || it.effect.getComputedTiming().iterations === Infinity));
  const found = await page.evaluate(async (grave) => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    return violations
      .filter((it) => grave.includes(it.impact))
      .map((it) => `${it.id}: ${it.help}\n  ${it.nodes.slice(0, 4).map((node) => `${node.html}\n    ${node.failureSummary}`).join('\n  ')}`);
  }, GRAVE);
  await look(page, `axe-${name}`);
  assert(found.length === 0, `axe on ${name}:\n${found.join('\n')}`);
}

/** Every screen, one after the other. */
const SCREENS = {
  empty: async () => {},
  answer: async (page) => {
    await openConversation(page, 'c1');
  },
  answer_top: async (page) => {
    await page.locator('[role="region"][aria-label="Chat"]').focus();
    await page.keyboard.press('Home');
    await page.locator(byId('thinking')).first().locator('summary').click();
  },
  find: async (page) => {
    await page.keyboard.press('Control+f');
    await page.locator(byId('find')).fill('fire');
    await page.keyboard.press('Enter');
  },
  row_menu: async (page) => {
    await page.keyboard.press('Escape');
    await page.locator(byId('conversation-row')).first().hover();
    await page.locator(byId('conversation-menu')).first().click();
  },
  message_menu: async (page) => {
    await page.keyboard.press('Escape');
    await page.locator(byId('message-menu')).last().click();
  },
  once: async (page) => {
    await page.locator(byId('regenerate-once')).click();
    await page.locator(byId('answer-once')).waitFor();
  },
  tokens: async (page) => {
    await page.keyboard.press('Escape');
    await page.locator(byId('message-menu')).last().click();
    await page.locator(byId('message-tokens')).click();
    await page.locator(byId('alternatives')).waitFor();
  },
  stats: async (page) => {
    await page.keyboard.press('Escape');
    await page.locator(byId('message-assistant')).last().hover();
    await page.locator(byId('stats')).first().click();
  },
  context: async (page) => {
    await page.keyboard.press('Escape');
    await page.locator(byId('context-ring')).click();
  },
  instruments: async (page) => {
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+i');
    await page.locator(byId('hit-rate')).waitFor();
  },
  profile: async (page) => {
    const measure = page.locator(byId('profile-switch'));
    if (!(await measure.isChecked())) await measure.click();
    await page.locator(byId('profile-reading')).locator('summary').click();
    await page.locator(byId('profile-trace')).scrollIntoViewIfNeeded();
  },
  models: async (page) => {
    await page.keyboard.press('Control+i');
    await page.locator(byId('model-picker')).click();
  },
  chosen: async (page) => {
    await page.keyboard.press('Escape');
    const rows = page.locator(`${byId('conversation-row')} button.open`);
    await rows.nth(1).click({ modifiers: ['Control'] });
    await rows.nth(3).click({ modifiers: ['Shift'] });
    await page.locator(byId('selection-bar')).waitFor();
  },
  hidden: async (page) => {
    await page.locator(byId('selection-clear')).click();
    await page.locator(byId('composer')).fill('turned\u202e around');
    await page.locator(byId('draft-warning')).waitFor();
  },
  shortcuts: async (page) => {
    await page.locator(byId('hidden-remove')).click();
    await page.locator(byId('composer')).fill('');
    await page.keyboard.press('Control+/');
    await page.locator(byId('shortcut-list')).waitFor();
  },
  settings: async (page) => {
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+,');
    await page.locator(byId('settings-search')).waitFor();
  },
  settings_server: async (page) => {
    // All of it is in view: what is scrolled away counts as hidden.
    await page.setViewportSize({ width: 1100, height: 2400 });
    await page.locator(`${byId('settings-section')}[data-section="Local server"]`).click();
    await page.locator(byId('server-example')).first().waitFor();
    await page.locator(`${byId('server-start')}, ${byId('server-requests')}`).first().waitFor();
    if ((await page.locator(byId('server-start')).count()) === 1) await page.locator(byId('server-start')).click();
    await page.locator(byId('server-requests')).waitFor();
    await page.locator(byId('server-key-renew')).click();
  },
  settings_found: async (page) => {
    await page.setViewportSize({ width: 1100, height: 760 });
    await page.locator(byId('settings-search')).fill('backup');
    await page.locator(byId('settings-place')).first().waitFor();
  },
  tools: async (page) => {
    await page.locator(byId('settings-search')).fill('');
    // All of it is in view: what is scrolled away counts as hidden.
    await page.setViewportSize({ width: 1100, height: 2400 });
    await page.locator(`${byId('settings-section')}[data-section="Tools"]`).click();
    await page.locator(byId('tool-list-open')).first().click();
    await page.locator(byId('plugin')).first().waitFor();
  },
  tool_menu: async (page) => {
    await page.locator(byId('tool-server-menu')).first().click();
  },
  tool_form: async (page) => {
    await page.keyboard.press('Escape');
    await page.locator(byId('tool-server-add')).click();
  },
  tool_paste: async (page) => {
    await page.locator('form').getByRole('button', { name: 'Cancel' }).click();
    await page.locator(byId('tool-server-paste')).click();
  },
  plugins: async (page) => {
    await page.locator('form').getByRole('button', { name: 'Cancel' }).click();
    await page.locator(byId('plugin')).last().waitFor();
  },
  discover: async (page) => {
    await page.keyboard.press('Control+2');
    await page.locator(byId('models-tab-discover')).click();
    await page.locator(byId('hub-figures')).first().waitFor();
    await page.locator(byId('hub-model')).nth(1).click();
    await page.locator(byId('hub-file')).first().waitFor();
  },
  discover_offline: async (page) => {
    await page.keyboard.press('Escape');
    await page.locator(byId('hub-search')).fill('offline');
    await page.locator(byId('notice')).waitFor();
  },
  trash: async (page) => {
    await page.setViewportSize({ width: 1100, height: 760 });
    await page.locator(byId('trash-open')).click();
    await page.locator(byId('trash')).waitFor();
  },
  files_chosen: async (page) => {
    await page.keyboard.press('Control+n');
    await page.locator(byId('composer')).fill('What do they say?');
    await choose(page);
  },
  file_text: async (page) => {
    await page.locator(byId('file-open')).first().click();
    await page.locator(byId('file-text')).waitFor();
  },
  files_sent: async (page) => {
    await page.keyboard.press('Escape');
    await page.locator(byId('file-remove')).last().click();
    await page.locator(byId('send')).click();
    await page.locator(ANSWERED).waitFor();
    await page.locator('[role="region"][aria-label="Chat"]').focus();
    await page.keyboard.press('Home');
    await page.locator(byId('sent-files')).waitFor();
  },
  ended: async (page) => {
    await page.keyboard.press('Control+n');
    await page.locator(byId('composer')).fill('Let it be cut short');
    await page.keyboard.press('Enter');
    await page.locator(byId('end-notice')).waitFor();
  },
  failed: async (page) => {
    await page.keyboard.press('Control+n');
    await page.locator(byId('composer')).fill('It runs over');
    await page.keyboard.press('Enter');
    await page.locator(byId('step-compact')).waitFor();
  },
};

export async function axeFindsNothingGrave() {
  const server = await standIn(400);
  try {
    for (const colorScheme of ['light', 'dark']) {
      const { page, close } = await browse(server.origin, null, { colorScheme, reducedMotion: 'reduce' });
      try {
        await page.evaluate(AXE);
        await page.locator(byId('composer')).waitFor();
        for (const [name, open] of Object.entries(SCREENS)) {
          await open(page);
          await examine(page, `${name}-${colorScheme}`);
        }
      } finally {
        await close();
      }
    }
  } finally {
    await server.close();
  }
}

/** No part of the page is wider than its view, and nothing has to be scrolled sideways. */
export async function assertFits(page, what) {
  const wide = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const main = document.querySelector('main');
    return scrollWidth > clientWidth || main.scrollWidth > main.clientWidth;
  });
  assert(!wide, `${what}: wider than its view`);
}

export async function fourTimesAsLargeItStillWorks() {
  const server = await standIn(400);
  // 1280 × 1024 at 400 %.
  const { page, close } = await browse(server.origin, null, { viewport: { width: 320, height: 256 } });
  try {
    await page.locator(byId('composer')).fill('Hello');
    await assertFits(page, 'an empty chat');
    await page.keyboard.press('Enter');
    await page.locator(ANSWERED).waitFor();
    await assertFits(page, 'a chat');
    await look(page, 'zoom');
    const composer = await page.locator(byId('composer')).boundingBox();
    assert(composer && composer.y + composer.height <= 256 && composer.width > 150, `the message box: ${JSON.stringify(composer)}`);
    await page.keyboard.press('Control+,');
    await page.locator(byId('settings-search')).waitFor();
    await assertFits(page, 'the settings');
  } finally {
    await close();
    await server.close();
  }
}

// Files with messages, in a real browser against `nook serve`: chosen, dropped and pasted, counted, sent, cited, opened.

import { ANSWERED, KEY, assert, browse, byId, look, until } from './scenario.mjs';

const PLAN = '# Plan\n\nFirst add a model, then ask it.\n';

/** Too long for the starter's context, with one sentence that is worth finding. */
function diary() {
  const day = (n) => `Day ${n}: the weather was the same as on other days, and nothing more is to be told of it.\n\n`;
  const days = (from, to) => Array.from({ length: to - from }, (_, n) => day(from + n)).join('');
  return `${days(0, 150)}The lighthouse keeper's name is Maren.\n\n${days(150, 300)}`;
}

/** A page of text, made by hand: objects, their offsets, and the table of offsets. */
function pdf(line) {
  const content = `BT /F1 24 Tf 72 720 Td (${line}) Tj ET`;
  const objects = [
    '<</Type/Catalog/Pages 2 0 R>>',
    '<</Type/Pages/Kids[3 0 R]/Count 1>>',
    '<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>',
    `<</Length ${content.length}>>\nstream\n${content}\nendstream`,
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>',
  ];
  let text = '%PDF-1.4\n';
  const places = objects.map((object, n) => {
    const place = text.length;
    text += `${n + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(place).padStart(10, '0')} 00000 n \n`;
  });
  const table = text.length;
  text += `xref\n0 6\n0000000000 65535 f \n${places.join('')}`;
  return `${text}trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n${table}\n%%EOF\n`;
}

const file = (name, mimeType, text) => ({ name, mimeType, buffer: Buffer.from(text, 'latin1') });

/** Lets files go over the page. */
async function drop(page, name, text) {
  const data = await page.evaluateHandle(
    ([name, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name, { type: 'text/plain' }));
      return data;
    },
    [name, text],
  );
  await page.dispatchEvent('body', 'dragover', { dataTransfer: data });
  await page.locator(byId('drop-zone')).waitFor();
  await look(page, 'files-drop');
  await page.dispatchEvent('body', 'drop', { dataTransfer: data });
}

export async function filesGoWithMessages(origin, server) {
  await server.call('settings_set', { key: 'titles', value: false });
  await server.call('settings_set', { key: 'max_tokens', value: 24 });
  const { page, complaints, assertQuiet, close } = await browse(origin, KEY);
  const chips = page.locator(`${byId('files')} ${byId('file')}`);
  try {
    await page.locator(byId('composer')).waitFor();
    await page.locator(byId('attach-input')).setInputFiles([
      file('plan.md', 'text/markdown', PLAN),
      file('paper.pdf', 'application/pdf', pdf('Whales were counted')),
      file('picture.png', 'image/png', '\x89PNG\r\n\x1a\n\0\0'),
    ]);
    await page.locator(`${byId('file')}[data-state="failed"]`).waitFor();
    const failed = await page.locator(`${byId('file')}[data-state="failed"]`).innerText();
    assert(/picture\.png/.test(failed) && /picture/.test(failed), `the reason: ${failed}`);
    // The browser tells of every answer that isn't 200: here of the one refused file.
    const told = complaints.splice(0);
    assert(told.length === 1 && /status of 400/.test(told[0]), `the console complains: ${told.join('\n')}`);
    await page.locator(byId('composer')).fill('What is the plan?');
    assert(await page.locator(byId('send')).isDisabled(), 'a file that failed goes unsaid');
    // By the keyboard alone.
    await chips.filter({ hasText: 'picture.png' }).locator(byId('file-open')).focus();
    await page.keyboard.press('Delete');
    await until(page, () => !document.querySelector('[data-testid="file"][data-state="failed"]'));
    await drop(page, 'dropped.csv', 'name,count\nfox,1\n');
    await page.locator(byId('file')).nth(2).waitFor();
    await until(page, threeAreCounted);
    await look(page, 'files-chosen');
    await page.reload();
    await until(page, threeAreCounted);
    const chosen = await page.locator(byId('files')).innerText();
    await page.locator(byId('composer')).press('Enter');
    await page.locator(ANSWERED).first().waitFor({ timeout: 120_000 });
    assert((await page.locator(byId('sent-files')).innerText()) === chosen, 'files of the message');
    assert((await chips.count()) === 0, 'they went with it');
    await theyAreStillThere(page, chosen);
    await page.locator(byId('source')).filter({ hasText: 'paper.pdf' }).click();
    await page.locator(byId('file-text')).waitFor();
    assert(/Whales were counted/.test(await page.locator(byId('file-text')).innerText()), 'the text of the PDF');
    await look(page, 'files-text');
    await page.keyboard.press('Escape');
    await aLongTextIsSearched(page);
    await assertQuiet();
  } finally {
    await close();
  }
}

/** In the page. */
function threeAreCounted() {
  const details = [...document.querySelectorAll('[data-testid="file-detail"]')];
  return details.length === 3 && details.every((it) => /tokens/.test(it.textContent));
}

/** After the page is reloaded, and after the conversation is opened from another one. */
async function theyAreStillThere(page, chosen) {
  const sent = page.locator(byId('sent-files'));
  await page.reload();
  await sent.waitFor();
  assert((await sent.innerText()) === chosen, `after a reload: ${await sent.innerText()} is not ${chosen}`);
  assert(/plan\.md\s+Markdown · 40 bytes · \d+ tokens/.test(chosen), `name, kind, size and tokens: ${chosen}`);
  await look(page, 'files-sent');
  await page.keyboard.press('Control+n');
  await until(page, () => !document.querySelector('[data-testid="message-user"]'));
  await page.locator(`${byId('conversation-row')} button`).first().click();
  await sent.waitFor();
  assert((await sent.innerText()) === chosen, `opened anew: ${await sent.innerText()} is not ${chosen}`);
}

async function aLongTextIsSearched(page) {
  await page.keyboard.press('Control+n');
  await until(page, () => !document.querySelector('[data-testid="message-user"]'));
  await page.locator(byId('composer')).focus();
  const paste = (text) =>
    page.evaluate((text) => {
      const data = new DataTransfer();
      data.setData('text/plain', text);
      const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
      document.querySelector('[data-testid="composer"]').dispatchEvent(event);
    }, text);
  await paste('x'.repeat(2600));
  await page.locator(byId('toast-undo')).click();
  await until(page, () => document.querySelector('[data-testid="composer"]').value.length === 2600);
  assert((await page.locator(byId('file')).count()) === 0, 'undone, it is no file');
  await page.locator(byId('composer')).fill('');
  await paste(diary());
  await page.locator(byId('composer')).fill("What is the lighthouse keeper's name?");
  await until(page, () =>
    /searched when you send/.test(document.querySelector('[data-testid="file-detail"]')?.textContent ?? ''),
  );
  await page.locator(byId('composer')).press('Enter');
  await page.locator(ANSWERED).first().waitFor({ timeout: 120_000 });
  await page.locator(byId('source')).first().click();
  await page.locator(`${byId('file-text')} mark`).waitFor();
  await look(page, 'files-source');
  const marks = await page.locator(`${byId('file-text')} mark`).innerText();
  assert(marks.length > 20, `a passage is marked: ${marks}`);
}

// How much work the page's main thread does at a time: tasks by the processor time they took, so that a machine
// under load measures the same.

const CATEGORIES = ['toplevel', 'disabled-by-default-devtools.timeline', '__metadata', 'blink.user_timing'];

/** Runs `work` under the browser's tracing; the tasks of the busiest page's main thread, in milliseconds. */
export async function tasksOf(browser, work) {
  const client = await browser.newBrowserCDPSession();
  await client.send('Tracing.start', {
    transferMode: 'ReturnAsStream',
    traceConfig: { includedCategories: CATEGORIES },
  });
  await work();
  const ended = new Promise((done) => client.once('Tracing.tracingComplete', done));
  await client.send('Tracing.end');
  const { stream } = await ended;
  let text = '';
  for (;;) {
    const piece = await client.send('IO.read', { handle: stream });
    text += piece.base64Encoded ? Buffer.from(piece.data, 'base64').toString() : piece.data;
    if (piece.eof) break;
  }
  await client.send('IO.close', { handle: stream });
  await client.detach();
  return tasksIn(JSON.parse(text).traceEvents);
}

function tasksIn(events) {
  const mains = new Set(
    events
      .filter((it) => it.name === 'thread_name' && it.args?.name === 'CrRendererMain')
      .map((it) => `${it.pid} ${it.tid}`),
  );
  const byThread = new Map();
  for (const it of events) {
    if (it.ph !== 'X' || !/RunTask$/.test(it.name) || !mains.has(`${it.pid} ${it.tid}`)) continue;
    // Microseconds of this thread's processor time; wall time where the browser gives none.
    const ms = (it.tdur ?? it.dur) / 1000;
    const of = `${it.pid} ${it.tid}`;
    if (!byThread.has(of)) byThread.set(of, []);
    byThread.get(of).push({ ms, wallMs: it.dur / 1000, atUs: it.ts });
  }
  const sum = (tasks) => tasks.reduce((all, it) => all + it.ms, 0);
  return [...byThread.values()].sort((a, b) => sum(b) - sum(a))[0] ?? [];
}

/** The figures of some tasks: how many, the longest, the share above a frame, all together. */
export function figures(tasks) {
  const sorted = tasks.map((it) => it.ms).sort((a, b) => b - a);
  return {
    tasks: sorted.length,
    longest_ms: round(sorted[0] ?? 0),
    longest_five_ms: sorted.slice(0, 5).map(round),
    over_16_ms: sorted.filter((ms) => ms > 16).length,
    over_50_ms: sorted.filter((ms) => ms > 50).length,
    all_ms: round(sorted.reduce((all, ms) => all + ms, 0)),
  };
}

const round = (ms) => Math.round(ms * 10) / 10;

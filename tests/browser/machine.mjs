// How fast this machine is just now. Limits in milliseconds are those of an idle machine: one whose cores are shared
// with others may take longer in proportion.

/** Processor time of `typicalWork` on the machine of docs/BENCHMARKS.md while it is idle, in milliseconds. */
const REFERENCE_MS = 5;
const EVERY_MS = 400;

/** Text, small objects and lists, as a page works on them. */
function typicalWork() {
  const words = [];
  for (let n = 0; n < 24_000; n++) words.push(`word${(n * 7919) % 4001}`);
  const seen = new Map();
  for (const word of words) seen.set(word, { word, n: (seen.get(word)?.n ?? 0) + 1 });
  const sorted = [...seen.values()].sort((a, b) => b.n - a.n || (a.word < b.word ? -1 : 1));
  return sorted.map(({ word, n }) => `${word}:${n}`).join(' ').replace(/\d+/g, (digits) => digits.length).length;
}

function processorMs() {
  const before = process.cpuUsage();
  typicalWork();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * Runs `work` and measures the machine beside it. `slowdown`: how many times as long as on an idle machine the same
 * work took, at least 1. The slowest tenth counts: it is compared with the longest of many tasks.
 */
export async function withSlowdown(work) {
  for (let n = 0; n < 20; n++) typicalWork(); // compiled before it is measured
  const samples = [processorMs()];
  const timer = setInterval(() => samples.push(processorMs()), EVERY_MS);
  try {
    const result = await work();
    samples.sort((a, b) => a - b);
    const slowest = samples[Math.floor((samples.length - 1) * 0.9)];
    return { result, slowdown: Math.max(1, slowest / REFERENCE_MS) };
  } finally {
    clearInterval(timer);
  }
}

// Fine-tuning runs of the stand-in: a step every 200 ms, with losses that fall.

const STEPS = 40;
const lossOf = (step) => 0.4 + 2.2 * Math.exp(-step / 12) + 0.08 * Math.sin(step * 2.7);
const stepOf = (step) => ({ step, loss: lossOf(step), held_out: step % 4 === 0 ? lossOf(step) + 0.15 : null, tok_s: 180, seconds: 0.2 });
const ANSWERS = [
  { line: 4, prompt: 'Is ash good?', expected: 'Aye. Ash burns even green.', base: 'Ash is a hardwood that is often used as firewood.', tuned: 'Aye. Ash burns well and clean.' },
  { line: 9, prompt: 'And willow?', expected: 'Aye. Willow burns poorly.', base: 'Willow is a tree that grows near water.', tuned: 'Aye. Willow burns fast and cool.' },
];
const stepsTo = (n) => Array.from({ length: n }, (_, at) => stepOf(at + 1));

const run = (id, state, n, more = {}) => ({ id, model: 'starter', data: `${id}.jsonl`, chats: null, state, n_steps: STEPS, last: n > 0 ? stepOf(n) : null, before: 2.75, seconds_left: null, created_ms: 1_700_000_000_000, folder: `/home/you/.local/share/inglenook/tunes/${id}`, tuned: null, ...more });
const tunes = [
  run('sweep', { state: 'done', report: { before: 2.75, after: lossOf(STEPS) + 0.15, steps: STEPS, stopped_early: false, worse_than_before: false } }, STEPS, { tuned: 'starter+sweep' }),
];

export const tuneCalls = (publish, fail) => {
  const find = (id) => tunes.find((it) => it.id === id) ?? (() => { throw fail(404, 'tune.not_found', `There is no fine-tuning run called "${id}".`, 'Open the list of runs again.'); })();
  const told = (tune) => { publish({ type: 'tune_changed', tune: { ...tune } }); return { ...tune }; };
  const finish = (tune) => {
    const n = tune.last?.step ?? 0;
    Object.assign(tune, { seconds_left: null, tuned: `${tune.model}+${tune.id}`, state: { state: 'done', report: { before: 2.75, after: lossOf(n) + 0.15, steps: n, stopped_early: false, worse_than_before: false } } });
    return told(tune);
  };
  const go = (tune) => {
    tune.state = { state: 'running' };
    const timer = setInterval(() => {
      if (tune.state.state !== 'running') return clearInterval(timer);
      tune.last = stepOf((tune.last?.step ?? 0) + 1);
      tune.seconds_left = (STEPS - tune.last.step) * 0.2;
      if (tune.last.step >= STEPS) finish(tune); else told(tune);
    }, 200);
    return told(tune);
  };
  return {
    tunes_list: () => tunes,
    tune_get: (a) => { const info = find(a.id); return { info, steps: stepsTo(info.last?.step ?? 0), answers: info.state.state === 'done' ? ANSWERS : [] }; },
    tune_preview: (a) => ({
      chats: a.data.from === 'chats' ? { chats: 3, answers: 14, left_out: [{ reason: 'replaced', count: 4 }, { reason: 'unfinished', count: 2 }, { reason: 'files', count: 1 }] } : null,
      examples: 180, held_out: 20, tokens: 12_400, learned_tokens: 5_300, max_tokens: 2048, steps: 135, seconds: 410, gpu: null, memory_bytes: 1_600_000_000, free_bytes: 9_900_000_000,
      first: [
        { line: 1, pieces: [{ text: '<|user|>\nIs birch good?\n<|assistant|>\n', is_learned: false }, { text: 'Aye. Birch burns bright and quick.<|end|>', is_learned: true }] },
        { line: 2, pieces: [{ text: '<|user|>\nAnd oak?\n<|assistant|>\n', is_learned: false }, { text: 'Aye. Oak burns slow and long.<|end|>', is_learned: true }] },
      ],
      n_skipped: 2, skipped: [{ line: 7, reason: 'it repeats line 3' }, { line: 12, reason: 'it has no answer of the assistant' }],
    }),
    tune_start: (a) => {
      if (tunes.some((it) => it.id === a.name)) throw fail(400, 'tune.name_taken', `There is already a fine-tuning run called ${a.name}.`, 'Choose another name, or remove that run.');
      const data = a.data.from === 'chats' ? { data: '', chats: 3 } : { data: a.data.name ?? a.data.path };
      const tune = run(a.name, { state: 'running' }, 0, { model: a.model, ...data, created_ms: Date.now() });
      tunes.unshift(tune);
      return go(tune);
    },
    tune_pause: (a) => { const tune = find(a.id); if (tune.state.state === 'running') Object.assign(tune, { state: { state: 'paused' }, seconds_left: null }); return told(tune); },
    tune_resume: (a) => go(find(a.id)),
    tune_stop: (a) => finish(find(a.id)),
    tune_remove: (a) => { tunes.splice(tunes.indexOf(find(a.id)), 1); publish({ type: 'tune_removed', id: a.id }); return null; },
  };
};

// Profile of the stand-in; available as soon as profiling is enabled.
const STEPS = [['matmul', 'ffn.gate+up Q4_K 2048→16384', 0.44, 18.9e9], ['matmul', 'ffn.down Q6_K 8192→2048', 0.24, 12.4e9], ['attention', 'attention', 0.14, 1.2e9], ['matmul', 'attention.q+k+v Q4_K+Q6_K 2048→3072', 0.1, 4.6e9], ['rms_norm', 'attention_norm', 0.03, 0.1e9]];
const part = (phase, ms) => ({ phase, ms, rows: [...STEPS.map(([op, what, share, bytes]) => ({ op, what, on_card: op !== 'rms_norm', calls: 16 * 42, ms: share * ms, share, bytes, gb_s: bytes / (share * ms) / 1e6 })), { op: 'rest', what: 'between steps', on_card: false, calls: 1, ms: 0.05 * ms, share: 0.05, bytes: 0, gb_s: null }] });
const PROFILE = { is_on: false, answer: null };

export const PROFILE_CALLS = {
  profile: () => PROFILE,
  profile_switch: ({ on }) => Object.assign(PROFILE, { is_on: on, answer: on ? { model: 'starter', parts: [part('reading', 240), part('writing', 1180)], n_left_out: 1200 } : null }),
  profile_trace: () => ({ name: 'inglenook-trace.json', text: JSON.stringify({ traceEvents: [], displayTimeUnit: 'ms' }) }),
};

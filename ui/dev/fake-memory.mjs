// The stand-in's caches and memory: numbers that stay as they are.

const pool = { places: 4096, held: 1210, shared: 310, fragmentation: 0.08 };
const KV = { turns: 14, prompt_tokens: 41_200, hit_rate: 0.81, memory: { bytes: 412_000_000, budget_bytes: 1_000_000_000, hit_tokens: 28_100 }, shared_tokens: 4_100, disk: { bytes: 1_300_000_000, budget_bytes: 8_000_000_000, hit_tokens: 5_270 }, files: 41, pinned_bytes: 0, contexts: 6, pages: pool, aged_pages: { ...pool, held: 0 }, window_pages: { ...pool, held: 0 }, states: { ...pool, held: 0 } };

export const MEMORY_CALLS = {
  kv_stats: () => KV,
  machine_memory: () => ({ ours_bytes: 1_420_000_000, free_bytes: 9_900_000_000, total_bytes: 16_700_000_000 }),
};

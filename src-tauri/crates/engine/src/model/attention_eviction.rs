//! Attention eviction: each layer and head drops the tokens that the newest queries attend to least (cf. H2O,
//! SnapKV).
//!
//! Remaining keys are rotated to their new positions, so the sequence continues as a shorter one. Not exact:
//! remaining tokens have seen the evicted ones. Runs in small steps, so that other requests can run in between.

use kernels::cpu::isa::IsaLevel;
use kernels::ops::kv_rows::KvRows;
use kernels::ops::{dot, hadamard, rope, softcap};
use kernels::{
    AttentionShape, N_COORDINATES, Op, PAGE_LEN, Retention, RopeShape, StepProfile, ValueId, rotation_width,
};

use super::{Chunk, LogitsSelection, Model};
use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::kv::checksum::xxh64;
use crate::kv::evicted::{EVICTED_TOKEN, EvictedHistory};
use crate::kv::sequence_id::SequenceId;
use crate::vision::is_image_token;

/// How much is evicted, and when. All fields count tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionEviction {
    /// Length at which a sequence evicts before it takes more.
    pub max_tokens: usize,
    /// Length after eviction.
    pub n_kept: usize,
    /// Oldest tokens that always stay, as part of `n_kept`.
    pub n_oldest: usize,
    /// Newest tokens that always stay, as part of `n_kept`.
    pub n_newest: usize,
}

/// Newest tokens whose queries decide what stays (SnapKV's observation window).
pub const OBSERVATION_TOKENS: usize = 16;

/// Attention to a token also counts for this many on either side: words are more than one token.
const NEIGHBOURS: usize = 2;

/// Evicted tokens that carry a hash of the text, so that no other sequence is mistaken for this one.
const N_FINGERPRINT_TOKENS: usize = 3;

/// Histories to remember. A prompt without one is computed again.
const MAX_EVICTED_HISTORIES: usize = 32;

/// Queries of the observation window in one attention layer.
struct ProbeQueries {
    shape: AttentionShape,
    /// (n, n_heads, head_dim)
    q: Vec<f32>,
    /// (n)
    positions: Vec<u32>,
}

/// A prompt that is being read with eviction, step by step. Nothing else may use the sequence meanwhile.
pub struct EvictingPrefill {
    seq: SequenceId,
    prompt: Vec<TokenId>,
    eviction: AttentionEviction,
    /// The prompt in its evicted form. Its first `n_held` tokens are the result of eviction.
    text: Vec<TokenId>,
    n_held: usize,
    phase: EvictionPhase,
}

/// Next step of an eviction.
enum EvictionPhase {
    /// Rewinds to before the observation window.
    Rewind,
    /// Prefills up to it, then captures its queries.
    Prefill,
    /// Builds the new pages layer by layer.
    Evict { queries: Vec<ProbeQueries>, pages: Vec<Vec<Vec<u8>>> },
}

impl EvictingPrefill {
    /// Returns the sequence that is prefilled.
    pub fn seq(&self) -> SequenceId {
        self.seq
    }

    /// Returns how many tokens of the prompt have been read.
    fn n_read(&self, n_held: usize) -> usize {
        self.prompt.len() - self.text.len() + n_held.min(self.text.len())
    }
}

impl Model {
    /// Reads `prompt` with eviction until the rest fits into `max_tokens`. Returns the prompt in its evicted form.
    ///
    /// `go_on` receives the number of tokens read and returns whether to continue.
    pub fn prefill_evicting(
        &mut self,
        seq: SequenceId,
        prompt: &[TokenId],
        eviction: AttentionEviction,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<TokenId>> {
        let mut prefill = self.begin_evicting_prefill(seq, prompt.to_vec(), eviction)?;
        while self.step_evicting_prefill(&mut prefill, self.max_rows())? {
            if !go_on(prefill.n_read(self.len(seq)?)) {
                return Ok(prefill.text);
            }
        }
        Ok(self.finish_evicting_prefill(prefill))
    }

    /// Begins a prefill that `step_evicting_prefill` continues.
    ///
    /// Errors: `request.forget`.
    pub fn begin_evicting_prefill(
        &mut self,
        seq: SequenceId,
        prompt: Vec<TokenId>,
        eviction: AttentionEviction,
    ) -> Result<EvictingPrefill> {
        check(&eviction)?;
        self.check_tokens(&prompt)?;
        if prompt.iter().any(|token| is_image_token(*token)) {
            return Err(EngineError::new(
                "request.forget",
                "a text with images cannot be shortened by evicting tokens",
                "Choose another way to make room in the settings, or leave out the images.",
            ));
        }
        let (text, n_held) = self.resume_evicted(seq, &prompt)?;
        Ok(EvictingPrefill { seq, prompt, eviction, text, n_held, phase: EvictionPhase::Rewind })
    }

    /// Runs at most `n_rows` tokens, or one layer of eviction. Returns false when nothing was left to do.
    pub fn step_evicting_prefill(&mut self, prefill: &mut EvictingPrefill, n_rows: usize) -> Result<bool> {
        let EvictingPrefill { seq, prompt, eviction, text, n_held, phase } = prefill;
        let (seq, eviction) = (*seq, *eviction);
        if text.len() <= eviction.max_tokens {
            return Ok(false);
        }
        self.allow_interrupts(false);
        let until = eviction.max_tokens.saturating_sub(OBSERVATION_TOKENS);
        match phase {
            EvictionPhase::Rewind => {
                // The observation window is computed again, to capture its queries.
                if self.len(seq)? > until && self.truncate(seq, until)? < *n_held {
                    // Recurrent layers cannot rewind to there.
                    self.truncate(seq, 0)?;
                    text.clone_from(prompt);
                    *n_held = 0;
                }
                *phase = EvictionPhase::Prefill;
            }
            EvictionPhase::Prefill => {
                let n = self.len(seq)?;
                let end = (n + n_rows.clamp(1, self.max_rows())).min(until);
                if n < end {
                    self.forward(&[Chunk { seq, tokens: &text[n..end], logits: LogitsSelection::None }])?;
                } else {
                    let queries = self.capture_queries(seq, &text[n..eviction.max_tokens])?;
                    *phase = EvictionPhase::Evict { queries, pages: Vec::new() };
                }
            }
            EvictionPhase::Evict { queries, pages } if pages.len() < self.graph().kv().layers.len() => {
                pages.push(self.evict_from_layer(seq, pages.len(), queries, eviction)?);
            }
            EvictionPhase::Evict { pages, .. } => {
                let held = evicted_tokens(self.cache.tokens(seq)?, eviction);
                let state = match self.cache.state(seq)? {
                    Some(slot) => Some(self.executor(seq)?.state(slot)?),
                    None => None,
                };
                self.replace_content(seq, &held, pages, state.as_deref())?;
                text.splice(..eviction.max_tokens, held);
                *n_held = eviction.n_kept;
                *phase = EvictionPhase::Rewind;
            }
        }
        Ok(true)
    }

    /// Frees the sequence's memory and starts over.
    pub fn restart_evicting_prefill(&mut self, prefill: &mut EvictingPrefill) -> Result<()> {
        self.truncate(prefill.seq, 0)?;
        prefill.text.clone_from(&prefill.prompt);
        prefill.n_held = 0;
        prefill.phase = EvictionPhase::Rewind;
        Ok(())
    }

    /// Returns the prompt in its evicted form, and remembers which text it stands for.
    pub fn finish_evicting_prefill(&mut self, prefill: EvictingPrefill) -> Vec<TokenId> {
        let EvictingPrefill { prompt, text, n_held, .. } = prefill;
        if n_held > 0 {
            let record = EvictedHistory {
                text: prompt[..prompt.len() - (text.len() - n_held)].to_vec(),
                held: text[..n_held].to_vec(),
            };
            self.cache.evicted.retain(|it| *it != record);
            self.cache.evicted.push_back(record);
            if self.cache.evicted.len() > MAX_EVICTED_HISTORIES {
                self.cache.evicted.pop_front();
            }
        }
        text
    }

    /// Returns whether the sequence holds evicted tokens.
    pub fn has_evicted(&self, seq: SequenceId) -> bool {
        self.cache.tokens(seq).is_ok_and(|tokens| tokens.iter().any(|token| *token >= EVICTED_TOKEN))
    }

    /// Returns the prompt in the form of a sequence that has evicted part of it, or unchanged if there is none.
    pub fn as_evicted(&self, prompt: &[TokenId]) -> Vec<TokenId> {
        let past =
            self.cache.evicted.iter().filter(|it| it.is_continued_by(prompt)).max_by_key(|it| it.text.len());
        past.map_or_else(|| prompt.to_vec(), |it| it.apply(prompt))
    }

    /// Returns the prompt in the sequence's form and the length of its evicted part. Continues an earlier eviction if
    /// the prompt extends its text, else starts over.
    fn resume_evicted(&mut self, seq: SequenceId, prompt: &[TokenId]) -> Result<(Vec<TokenId>, usize)> {
        let tokens = self.cache.tokens(seq)?;
        let fits = |it: &&EvictedHistory| it.is_continued_by(prompt) && tokens.starts_with(&it.held);
        if let Some(it) = self.cache.evicted.iter().filter(fits).max_by_key(|it| it.text.len()) {
            let (shown, n_held) = (it.apply(prompt), it.held.len());
            if self.truncate(seq, common_prefix(self.cache.tokens(seq)?, &shown))? >= n_held {
                return Ok((shown, n_held));
            }
        }
        if self.cache.tokens(seq)?.iter().any(|token| *token >= EVICTED_TOKEN) {
            self.truncate(seq, 0)?;
        }
        self.truncate(seq, common_prefix(self.cache.tokens(seq)?, prompt))?;
        Ok((prompt.to_vec(), 0))
    }

    /// Runs tokens and captures their queries.
    fn capture_queries(&mut self, seq: SequenceId, tokens: &[TokenId]) -> Result<Vec<ProbeQueries>> {
        let mut queries: Vec<ProbeQueries> = Vec::new();
        for tokens in tokens.chunks(self.max_rows()) {
            let mut observe = |ran: &StepProfile| {
                if let Some((shape, q, batch)) = ran.queries()
                    && shape.window.is_none()
                {
                    let (q, positions) = (q.to_vec(), batch.positions.to_vec());
                    queries.push(ProbeQueries { shape: shape.clone(), q, positions });
                }
            };
            self.forward_observed(&[Chunk { seq, tokens, logits: LogitsSelection::None }], &mut observe)?;
        }
        Ok(queries)
    }

    /// Returns the pages of a layer after eviction.
    fn evict_from_layer(
        &self,
        seq: SequenceId,
        layer: usize,
        queries: &[ProbeQueries],
        eviction: AttentionEviction,
    ) -> Result<Vec<Vec<u8>>> {
        let (layout, n) = (self.graph().kv().layers[layer], self.len(seq)?);
        let table = match layout.retention() {
            Retention::All => self.cache.pages(seq)?,
            Retention::Window => self.cache.window_pages(seq)?.table(),
        };
        let first = table.iter().position(|&page| page != kernels::NO_PAGE).unwrap_or(0);
        let (executor, mut bytes) = (self.executor(seq)?, Vec::with_capacity(table.len() - first));
        for &page in &table[first..] {
            bytes.push((executor.kv_layout(layer, page), executor.kv_page(layer, page)?));
        }
        // (positions from the `first` page on)
        let pages = bytes.iter().map(|(layout, page)| (*layout, &**page));
        let rows = KvRows::read_mixed(layout, n - first * PAGE_LEN, pages);
        let kept: Vec<Vec<usize>> = match layout.retention() {
            Retention::All => {
                let mass = attention_mass(layer, &rows, n, queries, layout.n_kv_heads);
                mass.iter().map(|mass| select_kept(mass, eviction)).collect()
            }
            // Windowed layers see the newest tokens only, which all stay.
            Retention::Window => vec![(n - eviction.n_kept..n).collect(); layout.n_kv_heads],
        };
        Ok(move_rows(&rows, first * PAGE_LEN, &kept, self.rope_of(layer)).pages())
    }

    /// Returns how the keys of a layer are rotated, if they are.
    fn rope_of(&self, layer: usize) -> Option<RopeShape> {
        let nodes = self.graph().nodes();
        let key = nodes.iter().find_map(|node| match &node.op {
            Op::KvWrite { k, layer: of, .. } if *of == layer => Some(*k),
            _ => None,
        })?;
        let maker = |value: ValueId| nodes.iter().find(|node| node.output == Some(value));
        let mut node = maker(key)?;
        if let Op::Hadamard { x, .. } = &node.op {
            // keys are stored quantized
            node = maker(*x)?;
        }
        match &node.op {
            Op::Rope { rope, .. } => Some(rope.clone()),
            _ => None,
        }
    }

    /// Replaces the content of a sequence by `tokens` and these pages of each layer.
    fn replace_content(
        &mut self,
        seq: SequenceId,
        tokens: &[TokenId],
        pages: &[Vec<Vec<u8>>],
        state: Option<&[u8]>,
    ) -> Result<()> {
        // The remaining rows are written again, but come from requantized ones.
        let n_requantized = self.cache.requantized(seq)?.n_chunks;
        self.cache.truncate(seq, 0)?;
        self.cache.set_requantized_view(seq, n_requantized)?;
        for tokens in tokens.chunks(self.max_rows()) {
            self.cache.reserve(seq, tokens.len())?;
            self.cache.commit(seq, tokens)?;
        }
        let Self { cache, replicas, .. } = self;
        let executor = &mut replicas[cache.replica_of(seq)?].executor;
        for (layer, pages) in pages.iter().enumerate() {
            let table = match executor.graph().kv().layers[layer].retention() {
                Retention::All => cache.pages(seq)?,
                Retention::Window => cache.window_pages(seq)?.table(),
            };
            for (&page, bytes) in table.iter().zip(pages).filter(|(page, _)| **page != kernels::NO_PAGE) {
                executor.write_kv_page(layer, page, bytes)?;
            }
        }
        if let (Some(slot), Some(state)) = (cache.state(seq)?, state) {
            executor.write_state(slot, state)?;
        }
        Ok(())
    }
}

/// Returns the length of the common prefix, without the last token of `text`: its logits are needed.
fn common_prefix(held: &[TokenId], text: &[TokenId]) -> usize {
    let n = held.iter().zip(text).take_while(|(a, b)| a == b).count();
    n.min(text.len().saturating_sub(1))
}

fn check(eviction: &AttentionEviction) -> Result<()> {
    let AttentionEviction { max_tokens, n_kept, n_oldest, n_newest } = *eviction;
    let fits = n_kept < max_tokens
        && n_oldest + n_newest + N_FINGERPRINT_TOKENS <= n_kept
        && n_newest >= OBSERVATION_TOKENS;
    match fits && max_tokens > OBSERVATION_TOKENS {
        true => Ok(()),
        false => Err(EngineError::new(
            "request.forget",
            format!(
                "{n_kept} of {max_tokens} tokens cannot be kept, with the first {n_oldest} and the newest {n_newest} always among them"
            ),
            "Use a longer context, or a shorter system prompt.",
        )),
    }
}

/// Returns the attention mass per position, summed over the heads that share its keys. (n_kv_heads, n)
fn attention_mass(
    layer: usize,
    rows: &KvRows,
    n: usize,
    queries: &[ProbeQueries],
    n_kv_heads: usize,
) -> Vec<Vec<f32>> {
    // The choice may differ between instruction sets by rounding. Their contexts are never mixed.
    let dot = dot::LEVELS.at(IsaLevel::detect());
    let mut mass = vec![vec![0.0f32; n]; n_kv_heads];
    let mut scores = vec![0.0f32; n];
    for ProbeQueries { shape, q, positions } in queries.iter().filter(|queries| queries.shape.layer == layer)
    {
        let (d, group) = (shape.head_dim, shape.n_heads / shape.n_kv_heads);
        for (row, &position) in positions.iter().enumerate() {
            let scores = &mut scores[..(position as usize + 1).min(n)];
            for head in 0..shape.n_heads {
                let q = &q[(row * shape.n_heads + head) * d..][..d];
                for (at, score) in scores.iter_mut().enumerate() {
                    *score = dot(q, rows.key(head / group, at)) * shape.scale;
                }
                if let Some(cap) = shape.softcap {
                    softcap::scalar(scores, cap);
                }
                let sink = shape.sinks.as_ref().map(|sinks| sinks[head]);
                let max = scores.iter().fold(sink.unwrap_or(f32::NEG_INFINITY), |a, b| a.max(*b));
                let all: f32 = scores.iter().map(|score| (score - max).exp()).sum();
                let all = all + sink.map_or(0.0, |sink| (sink - max).exp());
                for (mass, score) in mass[head / group].iter_mut().zip(&*scores) {
                    *mass += (score - max).exp() / all;
                }
            }
        }
    }
    mass
}

/// Returns the positions that stay, in order.
fn select_kept(mass: &[f32], eviction: AttentionEviction) -> Vec<usize> {
    let AttentionEviction { n_kept, n_oldest, n_newest, .. } = eviction;
    let last = mass.len() - n_newest;
    let near = |at: usize| {
        let around = &mass[at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(mass.len())];
        around.iter().sum::<f32>() / around.len() as f32
    };
    let mut middle: Vec<(usize, f32)> = (n_oldest..last).map(|at| (at, near(at))).collect();
    // Ties go to the newer token.
    middle.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(b.cmp(a)));
    middle.truncate(n_kept - n_oldest - n_newest);
    let mut kept: Vec<usize> = (0..n_oldest).chain(middle.into_iter().map(|(at, _)| at)).collect();
    kept.extend(last..mass.len());
    kept.sort_unstable();
    kept
}

/// Copies the rows of `kept` (n_kv_heads, positions) together and rotates their keys to the new positions. `rows`
/// begin at position `first`; earlier ones are not needed.
fn move_rows(rows: &KvRows, first: usize, kept: &[Vec<usize>], rotation: Option<RopeShape>) -> KvRows {
    let mut out = KvRows::zeroed(rows.layout(), kept.first().map_or(0, Vec::len));
    // The factor was applied when the keys were computed.
    let rotation = rotation.map(|rope| RopeShape { mscale: 1.0, ..rope });
    let is_transformed = rows.layout().precision.keys.is_quantized();
    let n_angles = rotation.as_ref().map_or(0, |rope| rope.inv_freq.len());
    let (mut cos, mut sin) = (vec![0.0; n_angles], vec![0.0; n_angles]);
    for (head, kept) in kept.iter().enumerate() {
        for (to, &from) in kept.iter().enumerate() {
            let Some(at) = from.checked_sub(first) else { continue };
            out.value_mut(head, to).copy_from_slice(rows.value(head, at));
            let key = out.key_mut(head, to);
            key.copy_from_slice(rows.key(head, at));
            if let Some(rope) = &rotation
                && from > to
            {
                let back = u32::try_from(from - to).expect("the context is shorter than 2^32 tokens");
                rope::angles(rope, [back; N_COORDINATES], &mut cos, &mut sin);
                sin.iter_mut().for_each(|sin| *sin = -*sin);
                let width = rotation_width(key.len());
                if is_transformed {
                    hadamard::scalar(key, width);
                }
                rope::scalar(key, key.len(), rope.style, &cos, &sin);
                if is_transformed {
                    hadamard::scalar(key, width);
                }
            }
        }
    }
    out
}

/// Returns the evicted form of a sequence: its oldest and newest tokens, and between them evicted tokens that
/// identify the text.
fn evicted_tokens(tokens: &[TokenId], eviction: AttentionEviction) -> Vec<TokenId> {
    let AttentionEviction { max_tokens, n_kept, n_oldest, n_newest } = eviction;
    let numbers = tokens.iter().copied().chain([max_tokens, n_kept, n_oldest, n_newest].map(|n| n as u32));
    let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    let hash = xxh64(&bytes);
    let marks =
        (0..N_FINGERPRINT_TOKENS).map(|part| EVICTED_TOKEN | (hash >> (part * 22)) as u32 & 0x3f_ffff);
    let rest = std::iter::repeat_n(EVICTED_TOKEN, n_kept - n_oldest - n_newest - N_FINGERPRINT_TOKENS);
    let middle = marks.chain(rest);
    tokens[..n_oldest]
        .iter()
        .copied()
        .chain(middle)
        .chain(tokens[tokens.len() - n_newest..].iter().copied())
        .collect()
}

#[cfg(test)]
mod tests;

//! A sequence forgets, layer by layer and head by head, the tokens that its newest ones attend to least. What stays
//! moves up: its keys are turned to their new positions, so that the sequence goes on as if it were shorter.
//!
//! Not exact: what stays has seen what goes. Costs nothing where it isn't asked for; where it is, scores are computed
//! from the queries of the last tokens, a layer at a time, so that others need not wait.

use kernels::cpu::isa::IsaLevel;
use kernels::ops::kv_rows::KvRows;
use kernels::ops::{dot, rope, softcap};
use kernels::{AttentionShape, Op, PAGE_LEN, Retention, RopeShape, StepProfile};

use super::{Chunk, LogitsSelection, Model};
use crate::TokenId;
use crate::error::{EngineError, Result};
use crate::kv::checksum::xxh64;
use crate::kv::evicted::{EVICTED_TOKEN, EvictedHistory};
use crate::kv::sequence_id::SequenceId;

/// How much is forgotten, and when. Tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionEviction {
    /// A sequence of so many forgets before it takes more.
    pub n_most: usize,
    /// What it has afterwards.
    pub n_keep: usize,
    /// Of these the oldest and the newest that always stay.
    pub n_first: usize,
    pub n_newest: usize,
}

/// Tokens whose queries say what is attended to.
pub const OBSERVATION_TOKENS: usize = 16;

/// What a token is attended to counts for so many on either side of it: words are more than one token.
const NEIGHBOURS: usize = 2;

/// Stand-ins that tell what was forgotten, so that no other sequence is taken for this one.
const N_FINGERPRINT_TOKENS: usize = 3;

/// So many of these are remembered; what is not is read again.
const MAX_EVICTED_HISTORIES: usize = 32;

/// Queries of one attention of the last tokens.
struct ProbeQueries {
    shape: AttentionShape,
    /// (n, n_heads, head_dim)
    q: Vec<f32>,
    /// (n)
    positions: Vec<u32>,
}

/// A prompt that is being read with forgetting on the way, some of the work at a time: others have their turn between.
/// Meanwhile the sequence is nobody else's.
pub struct EvictingPrefill {
    seq: SequenceId,
    prompt: Vec<TokenId>,
    forget: AttentionEviction,
    /// The prompt as the sequence has it, or will: of it `n_held` tokens stand for more than they are.
    text: Vec<TokenId>,
    n_held: usize,
    round: EvictionPhase,
}

/// What of one forgetting comes next.
enum EvictionPhase {
    Begins,
    Reads,
    /// Layer by layer: the pages that each will have.
    Forgets {
        asked: Vec<ProbeQueries>,
        pages: Vec<Vec<Vec<u8>>>,
    },
}

impl EvictingPrefill {
    pub fn seq(&self) -> SequenceId {
        self.seq
    }

    /// Tokens of the prompt that have been read.
    fn n_read(&self, n_held: usize) -> usize {
        self.prompt.len() - self.text.len() + n_held.min(self.text.len())
    }
}

impl Model {
    /// Has the sequence read so much of `prompt`, forgetting on the way, that the rest fits into `n_most` tokens.
    /// Returns the prompt as the sequence has it: with stand-ins for what it forgot. `go_on` is told how far it is, and
    /// says whether to.
    pub fn prefill_evicting(
        &mut self,
        seq: SequenceId,
        prompt: &[TokenId],
        forget: AttentionEviction,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<TokenId>> {
        let mut reading = self.begin_evicting_prefill(seq, prompt.to_vec(), forget)?;
        while self.step_evicting_prefill(&mut reading, self.max_rows())? {
            if !go_on(reading.n_read(self.len(seq)?)) {
                return Ok(reading.text);
            }
        }
        Ok(self.finish_evicting_prefill(reading))
    }

    /// Begins what `step_evicting_prefill` goes on with. Error `request.forget`.
    pub fn begin_evicting_prefill(
        &mut self,
        seq: SequenceId,
        prompt: Vec<TokenId>,
        forget: AttentionEviction,
    ) -> Result<EvictingPrefill> {
        check(&forget)?;
        self.check_tokens(&prompt)?;
        let (text, n_held) = self.resume_evicted(seq, &prompt)?;
        Ok(EvictingPrefill { seq, prompt, forget, text, n_held, round: EvictionPhase::Begins })
    }

    /// A run of at most `n_rows` tokens, or one layer. False: nothing was left to do.
    pub fn step_evicting_prefill(&mut self, reading: &mut EvictingPrefill, n_rows: usize) -> Result<bool> {
        let EvictingPrefill { seq, prompt, forget, text, n_held, round } = reading;
        let (seq, forget) = (*seq, *forget);
        if text.len() <= forget.n_most {
            return Ok(false);
        }
        self.allow_interrupts(false);
        let until = forget.n_most.saturating_sub(OBSERVATION_TOKENS);
        match round {
            EvictionPhase::Begins => {
                // The tokens that are to say what they attend to are read once more.
                if self.len(seq)? > until && self.truncate(seq, until)? < *n_held {
                    // Layers that lose their state can't go back to there.
                    self.truncate(seq, 0)?;
                    text.clone_from(prompt);
                    *n_held = 0;
                }
                *round = EvictionPhase::Reads;
            }
            EvictionPhase::Reads => {
                let n = self.len(seq)?;
                let end = (n + n_rows.clamp(1, self.max_rows())).min(until);
                if n < end {
                    self.forward(&[Chunk { seq, tokens: &text[n..end], logits: LogitsSelection::None }])?;
                } else {
                    let asked = self.ask(seq, &text[n..forget.n_most])?;
                    *round = EvictionPhase::Forgets { asked, pages: Vec::new() };
                }
            }
            EvictionPhase::Forgets { asked, pages } if pages.len() < self.graph().kv().layers.len() => {
                pages.push(self.evict_from_layer(seq, pages.len(), asked, forget)?);
            }
            EvictionPhase::Forgets { pages, .. } => {
                let held = evicted_tokens(self.cache.tokens(seq)?, forget);
                let state = match self.cache.state(seq)? {
                    Some(slot) => Some(self.executor(seq)?.state(slot)?),
                    None => None,
                };
                self.refill(seq, &held, pages, state.as_deref())?;
                text.splice(..forget.n_most, held);
                *n_held = forget.n_keep;
                *round = EvictionPhase::Begins;
            }
        }
        Ok(true)
    }

    /// The sequence is asked to give back its memory; what it had read is read again.
    pub fn restart_evicting_prefill(&mut self, reading: &mut EvictingPrefill) -> Result<()> {
        self.truncate(reading.seq, 0)?;
        reading.text.clone_from(&reading.prompt);
        reading.n_held = 0;
        reading.round = EvictionPhase::Begins;
        Ok(())
    }

    /// The prompt as the sequence has it. What it stands for is remembered.
    pub fn finish_evicting_prefill(&mut self, reading: EvictingPrefill) -> Vec<TokenId> {
        let EvictingPrefill { prompt, text, n_held, .. } = reading;
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

    /// The sequence holds tokens that stand for more than they are.
    pub fn has_evicted(&self, seq: SequenceId) -> bool {
        self.cache.tokens(seq).is_ok_and(|tokens| tokens.iter().any(|token| *token >= EVICTED_TOKEN))
    }

    /// The prompt as a sequence would have it that has forgotten most of it; itself where none has.
    pub fn as_evicted(&self, prompt: &[TokenId]) -> Vec<TokenId> {
        let past =
            self.cache.evicted.iter().filter(|it| it.is_continued_by(prompt)).max_by_key(|it| it.text.len());
        past.map_or_else(|| prompt.to_vec(), |it| it.apply(prompt))
    }

    /// The prompt as the sequence has it, and how much of it stands for more than it is: as it was left where the
    /// prompt goes on from there, else from the beginning.
    fn resume_evicted(&mut self, seq: SequenceId, prompt: &[TokenId]) -> Result<(Vec<TokenId>, usize)> {
        let tokens = self.cache.tokens(seq)?;
        let fits = |it: &&EvictedHistory| it.is_continued_by(prompt) && tokens.starts_with(&it.held);
        if let Some(it) = self.cache.evicted.iter().filter(fits).max_by_key(|it| it.text.len()) {
            let (shown, n_held) = (it.apply(prompt), it.held.len());
            if self.truncate(seq, common(self.cache.tokens(seq)?, &shown))? >= n_held {
                return Ok((shown, n_held));
            }
        }
        if self.cache.tokens(seq)?.iter().any(|token| *token >= EVICTED_TOKEN) {
            self.truncate(seq, 0)?;
        }
        self.truncate(seq, common(self.cache.tokens(seq)?, prompt))?;
        Ok((prompt.to_vec(), 0))
    }

    /// Reads tokens and keeps their queries.
    fn ask(&mut self, seq: SequenceId, tokens: &[TokenId]) -> Result<Vec<ProbeQueries>> {
        let mut asked: Vec<ProbeQueries> = Vec::new();
        for tokens in tokens.chunks(self.max_rows()) {
            let mut observe = |ran: &StepProfile| {
                if let Some((shape, q, batch)) = ran.queries()
                    && shape.window.is_none()
                {
                    let (q, positions) = (q.to_vec(), batch.positions.to_vec());
                    asked.push(ProbeQueries { shape: shape.clone(), q, positions });
                }
            };
            self.forward_observed(&[Chunk { seq, tokens, logits: LogitsSelection::None }], &mut observe)?;
        }
        Ok(asked)
    }

    /// The pages that a layer has when it has forgotten.
    fn evict_from_layer(
        &self,
        seq: SequenceId,
        layer: usize,
        asked: &[ProbeQueries],
        forget: AttentionEviction,
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
        // (positions from `first` pages on)
        let pages = bytes.iter().map(|(layout, page)| (*layout, &**page));
        let rows = KvRows::read_mixed(layout, n - first * PAGE_LEN, pages);
        let stays: Vec<Vec<usize>> = match layout.retention() {
            Retention::All => {
                let mass = attended(layer, &rows, n, asked, layout.n_kv_heads);
                mass.iter().map(|mass| choose(mass, forget)).collect()
            }
            // They see the newest only, which all stay.
            Retention::Window => vec![(n - forget.n_keep..n).collect(); layout.n_kv_heads],
        };
        Ok(moved(&rows, first * PAGE_LEN, &stays, self.rope_of(layer)).pages())
    }

    /// How the keys of a layer were turned; None: they were not.
    fn rope_of(&self, layer: usize) -> Option<RopeShape> {
        let nodes = self.graph().nodes();
        let key = nodes.iter().find_map(|node| match &node.op {
            Op::KvWrite { k, layer: of, .. } if *of == layer => Some(*k),
            _ => None,
        })?;
        nodes.iter().find(|node| node.output == Some(key)).and_then(|node| match &node.op {
            Op::Rope { rope, .. } => Some(rope.clone()),
            _ => None,
        })
    }

    /// The sequence holds `tokens` instead of what it held, with these pages of each layer.
    fn refill(
        &mut self,
        seq: SequenceId,
        tokens: &[TokenId],
        pages: &[Vec<Vec<u8>>],
        state: Option<&[u8]>,
    ) -> Result<()> {
        // what stays is written anew, but comes from what has aged
        let n_requantized = self.cache.aged(seq)?.n_chunks;
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

/// Tokens that two texts begin with, but for the last of the second: its logits are wanted.
fn common(held: &[TokenId], text: &[TokenId]) -> usize {
    let n = held.iter().zip(text).take_while(|(a, b)| a == b).count();
    n.min(text.len().saturating_sub(1))
}

fn check(forget: &AttentionEviction) -> Result<()> {
    let AttentionEviction { n_most, n_keep, n_first, n_newest } = *forget;
    let fits = n_keep < n_most
        && n_first + n_newest + N_FINGERPRINT_TOKENS <= n_keep
        && n_newest >= OBSERVATION_TOKENS;
    match fits && n_most > OBSERVATION_TOKENS {
        true => Ok(()),
        false => Err(EngineError::new(
            "request.forget",
            format!(
                "of {n_most} tokens {n_keep} cannot be kept, {n_first} and {n_newest} of them in any case"
            ),
            "Use a longer context, or a shorter system prompt.",
        )),
    }
}

/// (n_kv_heads, n): how much the last tokens attend to each position, by the heads that share its keys.
fn attended(
    layer: usize,
    rows: &KvRows,
    n: usize,
    asked: &[ProbeQueries],
    n_kv_heads: usize,
) -> Vec<Vec<f32>> {
    // What is chosen may differ between instruction sets as roundings do; contexts of one are never another's.
    let dot = dot::LEVELS.at(IsaLevel::detect());
    let mut mass = vec![vec![0.0f32; n]; n_kv_heads];
    let mut scores = vec![0.0f32; n];
    for ProbeQueries { shape, q, positions } in asked.iter().filter(|asked| asked.shape.layer == layer) {
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

/// The positions that stay, in order.
fn choose(mass: &[f32], forget: AttentionEviction) -> Vec<usize> {
    let AttentionEviction { n_keep, n_first, n_newest, .. } = forget;
    let last = mass.len() - n_newest;
    let near = |at: usize| {
        let around = &mass[at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(mass.len())];
        around.iter().sum::<f32>() / around.len() as f32
    };
    let mut middle: Vec<(usize, f32)> = (n_first..last).map(|at| (at, near(at))).collect();
    // Of equals the newer stays.
    middle.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(b.cmp(a)));
    middle.truncate(n_keep - n_first - n_newest);
    let mut stays: Vec<usize> = (0..n_first).chain(middle.into_iter().map(|(at, _)| at)).collect();
    stays.extend(last..mass.len());
    stays.sort_unstable();
    stays
}

/// The rows of `stays` (n_kv_heads, positions) one after another, their keys turned from where they were to where they
/// are. `rows` begin at position `first`; what lies before it is not there and not needed.
fn moved(rows: &KvRows, first: usize, stays: &[Vec<usize>], turned: Option<RopeShape>) -> KvRows {
    let mut out = KvRows::zeroed(rows.layout(), stays.first().map_or(0, Vec::len));
    // Scaled once, when they were made.
    let turned = turned.map(|rope| RopeShape { mscale: 1.0, ..rope });
    let n_angles = turned.as_ref().map_or(0, |rope| rope.inv_freq.len());
    let (mut cos, mut sin) = (vec![0.0; n_angles], vec![0.0; n_angles]);
    for (head, stays) in stays.iter().enumerate() {
        for (to, &from) in stays.iter().enumerate() {
            let Some(at) = from.checked_sub(first) else { continue };
            out.value_mut(head, to).copy_from_slice(rows.value(head, at));
            let key = out.key_mut(head, to);
            key.copy_from_slice(rows.key(head, at));
            if let Some(rope) = &turned
                && from > to
            {
                let back = u32::try_from(from - to).expect("the context is shorter than 2^32 tokens");
                rope::angles(rope, back, &mut cos, &mut sin);
                sin.iter_mut().for_each(|sin| *sin = -*sin);
                rope::scalar(key, key.len(), rope.style, &cos, &sin);
            }
        }
    }
    out
}

/// What stands for the tokens of a sequence that has forgotten: the oldest and newest themselves, and between them
/// stand-ins that no other text has.
fn evicted_tokens(tokens: &[TokenId], forget: AttentionEviction) -> Vec<TokenId> {
    let AttentionEviction { n_most, n_keep, n_first, n_newest } = forget;
    let numbers = tokens.iter().copied().chain([n_most, n_keep, n_first, n_newest].map(|n| n as u32));
    let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    let hash = xxh64(&bytes);
    let marks =
        (0..N_FINGERPRINT_TOKENS).map(|part| EVICTED_TOKEN | (hash >> (part * 22)) as u32 & 0x3f_ffff);
    let rest = std::iter::repeat_n(EVICTED_TOKEN, n_keep - n_first - n_newest - N_FINGERPRINT_TOKENS);
    let middle = marks.chain(rest);
    tokens[..n_first]
        .iter()
        .copied()
        .chain(middle)
        .chain(tokens[tokens.len() - n_newest..].iter().copied())
        .collect()
}

#[cfg(test)]
mod tests;

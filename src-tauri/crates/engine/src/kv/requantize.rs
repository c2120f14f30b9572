//! Old positions of a long sequence in fewer bits: when they age, how far a sequence has aged, and what its tokens saw
//! of that as they were computed.
//!
//! Whole stretches age, the oldest first, and never come back. By length they age where a token's position says so and
//! nothing else: what is computed for it depends on its position alone, as without. Pure numbers: who holds which
//! pages is the cache's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::CHECKPOINT_CHUNK_TOKENS;
use crate::error::EngineError;

/// The newest tokens that never age, whatever is asked: what is guessed, taken back or looked up is near the end.
pub const MIN_EXACT_TOKENS: usize = 256;

/// Where contexts age by length and nobody says when: half of the context that models are usually given.
pub const DEFAULT_REQUANTIZE_AFTER_TOKENS: usize = 4096;

/// When positions age. Where it saves nothing, they don't: see `kernels::KvLayout::can_requantize`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvRequantize {
    /// Never: contexts are exact.
    #[default]
    Off,
    /// When contexts would have to leave memory otherwise.
    Pressure,
    /// So many tokens after them.
    After(usize),
}

impl KvRequantize {
    /// Stretches that a token at `position` sees aged, where length decides: they end so far before the stretch that
    /// it is in itself.
    pub fn due(self, position: usize) -> usize {
        match self {
            Self::Off | Self::Pressure => 0,
            Self::After(n) => {
                (position / CHECKPOINT_CHUNK_TOKENS * CHECKPOINT_CHUNK_TOKENS)
                    .saturating_sub(n.max(MIN_EXACT_TOKENS))
                    / CHECKPOINT_CHUNK_TOKENS
            }
        }
    }

    /// The token at `position` sees more of them than the one before it.
    pub fn is_due_at(self, position: usize) -> bool {
        position.is_multiple_of(CHECKPOINT_CHUNK_TOKENS)
            && position > 0
            && self.due(position) > self.due(position - 1)
    }

    /// Tokens that one sequence of `n_ctx` holds exactly at most, in the middle of a run.
    pub fn n_exact(self, n_ctx: usize) -> usize {
        match self {
            Self::Off | Self::Pressure => n_ctx,
            // as much before, the stretch that is written, and the one that ages
            Self::After(n) => (n.max(MIN_EXACT_TOKENS).next_multiple_of(CHECKPOINT_CHUNK_TOKENS)
                + 2 * CHECKPOINT_CHUNK_TOKENS)
                .min(n_ctx),
        }
    }

    /// For files: what is written under one may be read under the same.
    pub(super) fn identity_word(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Pressure => 1,
            Self::After(n) => 2 + n as u64,
        }
    }
}

impl fmt::Display for KvRequantize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Pressure => f.write_str("pressure"),
            Self::After(n) => write!(f, "after:{n}"),
        }
    }
}

impl FromStr for KvRequantize {
    type Err = EngineError;

    /// `off`, `pressure` or `after:N`. Error `request.kv_requantize`.
    fn from_str(text: &str) -> Result<Self, EngineError> {
        let after = |text: &str| text.strip_prefix("after:").and_then(|n| n.trim().parse().ok());
        match text.trim() {
            "off" => Ok(Self::Off),
            "pressure" => Ok(Self::Pressure),
            text => after(text).filter(|&n: &usize| n >= MIN_EXACT_TOKENS).map(Self::After).ok_or_else(|| {
                EngineError::new(
                    "request.kv_requantize",
                    format!("\"{text}\" doesn't say when contexts age"),
                    format!("Give off, pressure, or after:N with at least {MIN_EXACT_TOKENS} tokens, such as after:2048."),
                )
            }),
        }
    }
}

/// From a position on, tokens saw so many stretches aged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequantizedView {
    pub from: u32,
    pub n_requantized: u32,
}

/// How far a sequence has aged, and what its tokens saw of it. Empty: it is exact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requantized {
    /// Stretches that are held in fewer bits, from the first one on.
    pub n_chunks: usize,
    /// In order of position, each another number than the one before.
    pub views: Vec<RequantizedView>,
}

impl Requantized {
    /// As length alone would have it at `n` tokens.
    pub fn by_length(aging: KvRequantize, n: usize) -> Self {
        let mut aged = Self::default();
        for start in (0..n).step_by(CHECKPOINT_CHUNK_TOKENS) {
            aged.n_chunks = aging.due(start);
            aged.record_view(start);
        }
        aged
    }

    /// No token saw anything aged, and none has.
    pub fn is_exact(&self) -> bool {
        self.n_chunks == 0 && self.views.is_empty()
    }

    /// Tokens from `position` on see what has aged by now; those for which more was said already saw that.
    pub fn record_view(&mut self, position: usize) {
        let n_requantized = u32::try_from(self.n_chunks).unwrap_or(u32::MAX);
        let last = self.views.last().copied();
        let is_said = last.is_some_and(|seen| seen.from as usize == position);
        if !is_said && last.map_or(0, |seen| seen.n_requantized) != n_requantized {
            let from = u32::try_from(position).expect("the context is shorter than 2^32 tokens");
            self.views.push(RequantizedView { from, n_requantized });
        }
    }

    /// The greatest position ≤ `n` that can be gone on from: stretches that have aged are held whole or not at all.
    pub fn reach(&self, n: usize) -> usize {
        if n < self.n_chunks * CHECKPOINT_CHUNK_TOKENS {
            n / CHECKPOINT_CHUNK_TOKENS * CHECKPOINT_CHUNK_TOKENS
        } else {
            n
        }
    }

    /// Goes back to `n`, which `reach` gave. What has aged stays so.
    pub fn truncate(&mut self, n: usize) {
        self.n_chunks = self.n_chunks.min(n / CHECKPOINT_CHUNK_TOKENS);
        self.views.retain(|seen| (seen.from as usize) < n);
    }

    /// The same at `n` tokens.
    pub fn at(&self, n: usize) -> Self {
        let mut aged = self.clone();
        aged.truncate(n);
        aged
    }

    /// What the tokens `start..end` saw, as bytes to hash: none where that was exact.
    pub(super) fn views_within(&self, start: usize, end: usize) -> Vec<u8> {
        let before = self.views.iter().rfind(|seen| seen.from as usize <= start);
        let first = RequantizedView {
            from: start as u32,
            n_requantized: before.map_or(0, |seen| seen.n_requantized),
        };
        let within = self.views.iter().filter(|seen| (start + 1..end).contains(&(seen.from as usize)));
        let all: Vec<RequantizedView> = std::iter::once(first).chain(within.copied()).collect();
        match all.iter().all(|seen| seen.n_requantized == 0) {
            true => Vec::new(),
            false => all.iter().flat_map(|seen| seen.bytes()).collect(),
        }
    }
}

impl RequantizedView {
    pub(super) const N_BYTES: usize = 8;

    pub(super) fn bytes(self) -> [u8; Self::N_BYTES] {
        ((u64::from(self.n_requantized) << 32) | u64::from(self.from)).to_le_bytes()
    }

    pub(super) fn of_bytes(bytes: [u8; Self::N_BYTES]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Self { from: word as u32, n_requantized: (word >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_alone_says_what_has_aged() {
        let after = KvRequantize::After(512);
        for (position, due) in [(0, 0), (767, 0), (768, 1), (1023, 1), (1024, 2), (1025, 2), (10_240, 38)] {
            assert_eq!(after.due(position), due, "{position}");
        }
        assert_eq!((KvRequantize::Off.due(100_000), KvRequantize::Pressure.due(100_000)), (0, 0));
        // not whole stretches: no sooner than asked
        for n in [257, 300, 511, 512] {
            assert_eq!(KvRequantize::After(n).due(767), 0, "{n}");
            assert_eq!(KvRequantize::After(n).due(768), 1, "{n}");
        }
        for position in 0..3000 {
            let grows = position > 0 && after.due(position) > after.due(position - 1);
            assert_eq!(after.is_due_at(position), grows, "{position}");
            let n_exact = position + 1 - after.due(position) * CHECKPOINT_CHUNK_TOKENS;
            assert!(n_exact <= after.n_exact(usize::MAX), "{position}");
        }
    }

    #[test]
    fn settings_are_read_and_written() {
        for (text, aging) in [
            ("off", KvRequantize::Off),
            ("pressure", KvRequantize::Pressure),
            ("after:2048", KvRequantize::After(2048)),
        ] {
            assert_eq!(text.parse::<KvRequantize>().unwrap(), aging);
            assert_eq!(aging.to_string(), text);
        }
        for text in ["", "on", "after", "after:", "after:-1", "after:255", "after:x", "2048"] {
            assert_eq!(text.parse::<KvRequantize>().unwrap_err().code(), "request.kv_requantize", "{text}");
        }
    }

    #[test]
    fn what_tokens_saw_tells_contexts_apart() {
        let by_length = Requantized::by_length(KvRequantize::After(256), 1300);
        assert_eq!(by_length.n_chunks, 4);
        assert_eq!(by_length.views.len(), 4);
        assert!(by_length.views_within(0, 256).is_empty() && by_length.views_within(256, 512).is_empty());
        assert!(!by_length.views_within(512, 768).is_empty());
        assert!(Requantized::by_length(KvRequantize::After(256), 512).is_exact());
        // gone back into what has aged: whole stretches of it are left, and they stay as they are
        assert_eq!((by_length.reach(1100), by_length.reach(1000), by_length.reach(300)), (1100, 768, 256));
        let mut back = by_length.at(768);
        assert_eq!(back.n_chunks, 3);
        assert_eq!(back.views_within(512, 768), by_length.views_within(512, 768));
        back.record_view(768);
        assert_ne!(
            back.views_within(768, 1024),
            by_length.views_within(768, 1024),
            "more has aged than is due there"
        );
        for seen in by_length.views {
            assert_eq!(RequantizedView::of_bytes(seen.bytes()), seen);
        }
    }
}

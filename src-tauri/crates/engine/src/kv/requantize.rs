//! Requantization of old keys and values: when chunks are requantized, how far a sequence is, and what its tokens saw
//! of it.
//!
//! Whole chunks are requantized, oldest first, and never restored. By length, a chunk's turn depends on positions
//! alone, so results stay independent of batching. Plain numbers: page ownership is the cache's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::CHECKPOINT_CHUNK_TOKENS;
use crate::error::EngineError;

/// Newest tokens that are never requantized: drafts, rewinds and prompt lookups happen near the end.
pub const MIN_EXACT_TOKENS: usize = 256;

/// Default for requantization by length: half of the usual context.
pub const DEFAULT_REQUANTIZE_AFTER_TOKENS: usize = 4096;

/// When keys and values are requantized. Has no effect where it saves nothing, see `kernels::KvLayout::can_requantize`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvRequantize {
    /// Never: contexts are exact.
    #[default]
    Off,
    /// When a context would have to leave memory otherwise.
    Pressure,
    /// Once this many tokens follow them.
    After(usize),
}

impl KvRequantize {
    /// Returns how many chunks the token at `position` sees requantized by length: those that end this far before its
    /// own chunk.
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

    /// Returns whether the token at `position` sees more of them than the one before.
    pub fn is_due_at(self, position: usize) -> bool {
        position.is_multiple_of(CHECKPOINT_CHUNK_TOKENS)
            && position > 0
            && self.due(position) > self.due(position - 1)
    }

    /// Returns how many tokens a sequence of `n_ctx` holds exactly at most, in the middle of a run.
    pub fn n_exact(self, n_ctx: usize) -> usize {
        match self {
            Self::Off | Self::Pressure => n_ctx,
            // The exact tokens before, the chunk being written, and the chunk being requantized.
            Self::After(n) => (n.max(MIN_EXACT_TOKENS).next_multiple_of(CHECKPOINT_CHUNK_TOKENS)
                + 2 * CHECKPOINT_CHUNK_TOKENS)
                .min(n_ctx),
        }
    }

    /// Returns the mode as a number for checkpoint files: only files of the same mode can be read.
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

    /// Parses `off`, `pressure` or `after:N`.
    ///
    /// Errors: `request.kv_aging`.
    fn from_str(text: &str) -> Result<Self, EngineError> {
        let after = |text: &str| text.strip_prefix("after:").and_then(|n| n.trim().parse().ok());
        match text.trim() {
            "off" => Ok(Self::Off),
            "pressure" => Ok(Self::Pressure),
            text => after(text).filter(|&n: &usize| n >= MIN_EXACT_TOKENS).map(Self::After).ok_or_else(|| {
                EngineError::new(
                    "request.kv_aging",
                    format!("\"{text}\" does not say when to requantize contexts"),
                    format!("Use off, pressure, or after:N with at least {MIN_EXACT_TOKENS} tokens, such as after:2048."),
                )
            }),
        }
    }
}

/// From position `from` on, tokens saw `n_requantized` chunks requantized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequantizedView {
    /// First position of the tokens.
    pub from: u32,
    /// Requantized chunks that they saw, counted from the beginning.
    pub n_requantized: u32,
}

/// How far a sequence is requantized, and what its tokens saw of it. Empty for an exact sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requantized {
    /// Requantized chunks, counted from the beginning.
    pub n_chunks: usize,
    /// Ordered by position; each has another count than the one before.
    pub views: Vec<RequantizedView>,
}

impl Requantized {
    /// Returns the state at `n` tokens when only length decides.
    pub fn by_length(requantize: KvRequantize, n: usize) -> Self {
        let mut requantized = Self::default();
        for start in (0..n).step_by(CHECKPOINT_CHUNK_TOKENS) {
            requantized.n_chunks = requantize.due(start);
            requantized.record_view(start);
        }
        requantized
    }

    /// Returns whether nothing is requantized and no token saw otherwise.
    pub fn is_exact(&self) -> bool {
        self.n_chunks == 0 && self.views.is_empty()
    }

    /// Records that tokens from `position` on see the current chunks. An earlier record for the same position stays.
    pub fn record_view(&mut self, position: usize) {
        let n_requantized = u32::try_from(self.n_chunks).unwrap_or(u32::MAX);
        let last = self.views.last().copied();
        let is_recorded = last.is_some_and(|view| view.from as usize == position);
        if !is_recorded && last.map_or(0, |view| view.n_requantized) != n_requantized {
            let from = u32::try_from(position).expect("the context is shorter than 2^32 tokens");
            self.views.push(RequantizedView { from, n_requantized });
        }
    }

    /// Returns the greatest position ≤ `n` to continue from: requantized chunks are held whole or not at all.
    pub fn reach(&self, n: usize) -> usize {
        if n < self.n_chunks * CHECKPOINT_CHUNK_TOKENS {
            n / CHECKPOINT_CHUNK_TOKENS * CHECKPOINT_CHUNK_TOKENS
        } else {
            n
        }
    }

    /// Rewinds to `n`, a result of `reach`. Requantized chunks stay so.
    pub fn truncate(&mut self, n: usize) {
        self.n_chunks = self.n_chunks.min(n / CHECKPOINT_CHUNK_TOKENS);
        self.views.retain(|view| (view.from as usize) < n);
    }

    /// Returns the state at `n` tokens.
    pub fn at(&self, n: usize) -> Self {
        let mut requantized = self.clone();
        requantized.truncate(n);
        requantized
    }

    /// Returns what the tokens `start..end` saw, as bytes to hash. Empty if all of it was exact.
    pub(super) fn views_within(&self, start: usize, end: usize) -> Vec<u8> {
        let before = self.views.iter().rfind(|view| view.from as usize <= start);
        let first = RequantizedView {
            from: start as u32,
            n_requantized: before.map_or(0, |view| view.n_requantized),
        };
        let within = self.views.iter().filter(|view| (start + 1..end).contains(&(view.from as usize)));
        let all: Vec<RequantizedView> = std::iter::once(first).chain(within.copied()).collect();
        match all.iter().all(|view| view.n_requantized == 0) {
            true => Vec::new(),
            false => all.iter().flat_map(|view| view.bytes()).collect(),
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
    fn requantization_depends_on_length_alone() {
        let after = KvRequantize::After(512);
        for (position, due) in [(0, 0), (767, 0), (768, 1), (1023, 1), (1024, 2), (1025, 2), (10_240, 38)] {
            assert_eq!(after.due(position), due, "{position}");
        }
        assert_eq!((KvRequantize::Off.due(100_000), KvRequantize::Pressure.due(100_000)), (0, 0));
        // not whole chunks: no sooner than requested
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
    fn settings_parse_and_format() {
        for (text, requantize) in [
            ("off", KvRequantize::Off),
            ("pressure", KvRequantize::Pressure),
            ("after:2048", KvRequantize::After(2048)),
        ] {
            assert_eq!(text.parse::<KvRequantize>().unwrap(), requantize);
            assert_eq!(requantize.to_string(), text);
        }
        for text in ["", "on", "after", "after:", "after:-1", "after:255", "after:x", "2048"] {
            assert_eq!(text.parse::<KvRequantize>().unwrap_err().code(), "request.kv_aging", "{text}");
        }
    }

    #[test]
    fn views_distinguish_contexts() {
        let by_length = Requantized::by_length(KvRequantize::After(256), 1300);
        assert_eq!(by_length.n_chunks, 4);
        assert_eq!(by_length.views.len(), 4);
        assert!(by_length.views_within(0, 256).is_empty() && by_length.views_within(256, 512).is_empty());
        assert!(!by_length.views_within(512, 768).is_empty());
        assert!(Requantized::by_length(KvRequantize::After(256), 512).is_exact());
        // rewound into requantized chunks: the whole ones that are left stay requantized
        assert_eq!((by_length.reach(1100), by_length.reach(1000), by_length.reach(300)), (1100, 768, 256));
        let mut back = by_length.at(768);
        assert_eq!(back.n_chunks, 3);
        assert_eq!(back.views_within(512, 768), by_length.views_within(512, 768));
        back.record_view(768);
        assert_ne!(
            back.views_within(768, 1024),
            by_length.views_within(768, 1024),
            "more is requantized than is due there"
        );
        for view in by_length.views {
            assert_eq!(RequantizedView::of_bytes(view.bytes()), view);
        }
    }
}

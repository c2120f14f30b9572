//! Sequences as the pieces that checkpoint files hold, and back.

use std::collections::HashMap;

use engine::{EngineError, Model, SequenceId};

/// Pieces by name, the tokens that they lead along, and which of them is at the end.
#[derive(Clone)]
pub struct StoredChunks {
    pub tokens: Vec<u32>,
    pub head: String,
    pub pieces: HashMap<String, Vec<u8>>,
}

impl StoredChunks {
    /// All that leads to the sequence's end, and to `positions` before it.
    pub fn of(model: &Model, seq: SequenceId, positions: &[usize]) -> Self {
        let tokens = model.tokens(seq).unwrap().to_vec();
        let all = [positions, &[tokens.len()]].concat();
        let pieces = model.pieces(seq, &all).unwrap();
        let head = pieces.last().map(|piece| piece.name.clone()).unwrap_or_default();
        let pieces = pieces.iter().map(|piece| (piece.name.clone(), model.piece_bytes(seq, piece).unwrap()));
        Self { pieces: pieces.collect(), tokens, head }
    }

    /// A sequence of the first `n` tokens, or of as many of them as any head leads to.
    pub fn restore(&self, model: &mut Model, n: usize) -> Result<SequenceId, EngineError> {
        let heads = self.pieces.iter().filter(|(name, _)| name.contains('-'));
        let reach = |bytes: &[u8]| Some(model.match_head(&self.tokens, n, bytes).ok()?.n_tokens);
        let reaching = heads.filter_map(|(name, bytes)| Some((reach(bytes)?, name)));
        let Some((n, head)) = reaching.max() else { return model.new_sequence() };
        self.take(model, n, head)
    }

    /// Whole again; or what the judge says.
    pub fn restore_all(&self, model: &mut Model) -> Result<SequenceId, EngineError> {
        self.take(model, self.tokens.len(), &self.head)
    }

    fn take(&self, model: &mut Model, n: usize, head: &str) -> Result<SequenceId, EngineError> {
        let missing = || EngineError::new("test.missing", "no such piece", "");
        let read = &mut |name: &str| self.pieces.get(name).cloned().ok_or_else(missing);
        model.restore(&self.tokens[..n], Some(&self.pieces[head]), read)
    }

    /// One bit of a piece changed.
    pub fn flip(&mut self, name: &str, bit: usize) {
        let bytes = self.pieces.get_mut(name).unwrap();
        let n_bits = bytes.len() * 8;
        bytes[bit % n_bits / 8] ^= 1 << (bit % 8);
    }
}

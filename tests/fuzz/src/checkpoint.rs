//! Stored contexts: pieces of real ones, changed. Unchanged pieces restore the context; changed ones never panic.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arbitrary::{Arbitrary, Unstructured};
use engine::kv::snapshot::fuzzing::reseal;
use engine::shape::{self, Shape};
use engine::{Chunk, Devices, EngineError, KvDType, LoadOptions, LogitsSelection, Model};
use weights::{SharedBytes, WeightFile};

use crate::FuzzTarget;

/// Restores changed checkpoints.
pub static CHECKPOINT: FuzzTarget = FuzzTarget { name: "checkpoint", read, max_bytes: 64 << 20 };

/// Plain attention, and windows.
const SHAPES: &[&str] = &["llama-3.2-1b", "gemma-3-1b"];

/// Tokens of the stored context: one whole chunk and a rest.
const N_TOKENS: u32 = 300;

const N_CTX: usize = 512;

/// A model, and the pieces that hold a context of it.
struct StoredContext {
    model: Model,
    tokens: Vec<u32>,
    head: String,
    pieces: HashMap<String, Vec<u8>>,
    /// Their names, in the order of the file.
    names: Vec<String>,
}

#[derive(Debug, Arbitrary)]
enum PieceEdit {
    Set {
        at: u16,
        to: u8,
    },
    /// A word of the header.
    Word {
        at: u8,
        to: u64,
    },
    SmallWord {
        at: u8,
        to: u8,
    },
    Cut(u16),
    Extend(u8),
    Swap(u8),
    Remove,
}

#[derive(Debug, Arbitrary)]
struct CheckpointChange {
    shape: u8,
    piece: u8,
    edits: Vec<PieceEdit>,
    is_sealed: bool,
    n_tokens: u16,
}

fn read(input: &[u8]) {
    static CONTEXTS: OnceLock<Vec<Mutex<StoredContext>>> = OnceLock::new();
    let contexts =
        CONTEXTS.get_or_init(|| SHAPES.iter().filter_map(|like| stored(like)).map(Mutex::new).collect());
    let Ok(change) = CheckpointChange::arbitrary(&mut Unstructured::new(input)) else { return };
    let context = &contexts[usize::from(change.shape) % contexts.len()];
    context.lock().unwrap_or_else(PoisonError::into_inner).check(&change);
}

impl StoredContext {
    fn check(&mut self, change: &CheckpointChange) {
        let name = self.names[usize::from(change.piece) % self.names.len()].clone();
        let mut pieces = self.pieces.clone();
        change.edits.iter().for_each(|edit| apply(edit, &name, &self.names, &mut pieces));
        if let Some(piece) = pieces.get_mut(&name).filter(|_| change.is_sealed) {
            reseal(piece);
        }
        let is_same = pieces == self.pieces;
        let n = usize::from(change.n_tokens).min(self.tokens.len());
        let n = if is_same { self.tokens.len() } else { n };
        let head = pieces.get(&self.head).map(Vec::as_slice);
        let matched = head.map(|head| self.model.match_head(&self.tokens, n, head));
        let missing = || EngineError::new("fuzz.missing", "no such piece", "");
        let read = &mut |name: &str| pieces.get(name).cloned().ok_or_else(missing);
        let restored = self.model.restore(&self.tokens[..n], head, read);
        if is_same {
            assert!(matched.is_some_and(|matched| matched.is_ok()), "an unchanged head serves");
            assert!(restored.is_ok(), "an unchanged checkpoint is restored: {:?}", restored.as_ref().err());
        }
        let Ok(seq) = restored else { return };
        if is_same {
            for piece in self.model.pieces(seq, &[n]).expect("a restored context has pieces") {
                let bytes = self.model.piece_bytes(seq, &piece).expect("its pieces have bytes");
                assert_eq!(
                    self.pieces.get(&piece.name),
                    Some(&bytes),
                    "{} is written as it was read",
                    piece.name
                );
            }
        }
        self.model.free(seq);
    }
}

fn apply(edit: &PieceEdit, name: &str, names: &[String], pieces: &mut HashMap<String, Vec<u8>>) {
    let other = |at: &u8| pieces.get(&names[usize::from(*at) % names.len()]).cloned();
    let swapped = if let PieceEdit::Swap(at) = edit { other(at) } else { None };
    let Some(piece) = pieces.get_mut(name) else { return };
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(found) = piece.get_mut(at..at + bytes.len()) {
            found.copy_from_slice(bytes);
        }
    };
    match edit {
        PieceEdit::Set { at, to } => put(usize::from(*at), &[*to]),
        PieceEdit::Word { at, to } => put(8 + usize::from(*at % 20) * 8, &to.to_le_bytes()),
        PieceEdit::SmallWord { at, to } => put(8 + usize::from(*at % 20) * 8, &u64::from(*to).to_le_bytes()),
        PieceEdit::Cut(n) => piece.truncate(usize::from(*n)),
        PieceEdit::Extend(n) => piece.resize(piece.len() + usize::from(*n), 0),
        PieceEdit::Swap(_) => *piece = swapped.unwrap_or_default(),
        PieceEdit::Remove => drop(pieces.remove(name)),
    }
}

/// A small model of this shape with a context. None: there is no such shape.
fn stored(like: &str) -> Option<StoredContext> {
    let like = shape::find(like).ok()?;
    let small = Shape { n_layers: 4, d_model: 64, d_ff: 64, n_heads: 2, n_kv_heads: 1, n_vocab: 600, ..like };
    let mut bytes = Vec::new();
    shape::write(&small, shape::mix("f16").ok()?, 1, &mut bytes).ok()?;
    let file = WeightFile::from_bytes("small", SharedBytes::from_vec(bytes)).ok()?;
    let options = LoadOptions {
        devices: Devices::Cpu,
        threads: Some(1),
        kv: KvDType::F16.both(),
        ctx: Some(N_CTX),
        max_sequences: 2,
        ..LoadOptions::default()
    };
    let mut model = Model::load(Arc::new(file), &options, &mut |_| {}).expect("a made-up model loads");
    let seq = model.new_sequence().expect("there is room for a sequence");
    let tokens: Vec<u32> = (0..N_TOKENS).map(|i| i * 7 % 599).collect();
    model.forward(&[Chunk { seq, tokens: &tokens, logits: LogitsSelection::None }]).expect("it computes");
    let all = model.pieces(seq, &[tokens.len()]).expect("it has pieces");
    let head = all.last()?.name.clone();
    let names: Vec<String> = all.iter().map(|piece| piece.name.clone()).collect();
    let bytes = all.iter().map(|piece| model.piece_bytes(seq, piece).expect("pieces have bytes"));
    let pieces = names.iter().cloned().zip(bytes).collect();
    model.free(seq);
    Some(StoredContext { model, tokens, head, pieces, names })
}

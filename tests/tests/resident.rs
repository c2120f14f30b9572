//! Models larger than the memory they may take: the same logits, bit for bit, and no more memory than was said.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::shape::{self, Shape, ShapeFact};
use engine::{Chunk, LoadOptions, LogitsSelection, Model, WeightBudget};
use weights::WeightFile;

const EXPERTS: &[&[(&str, ShapeFact)]] = &[&[
    ("expert_count", ShapeFact::Count(16)),
    ("expert_used_count", ShapeFact::Count(2)),
    ("expert_feed_forward_length", ShapeFact::Count(512)),
    ("attention.sliding_window", ShapeFact::Count(64)),
    ("rope.scaling.type", ShapeFact::Text("yarn")),
    ("rope.scaling.factor", ShapeFact::Real(8.0)),
    ("rope.scaling.original_context_length", ShapeFact::Count(64)),
    ("rope.scaling.yarn_beta_fast", ShapeFact::Real(32.0)),
    ("rope.scaling.yarn_beta_slow", ShapeFact::Real(1.0)),
]];

/// A file of a few dozen megabytes, removed at the end.
struct TemporaryModel(PathBuf);

impl TemporaryModel {
    fn new(like: &str, mix: &str) -> Self {
        let shape = shape::find(like).unwrap();
        let more = if like == "gpt-oss-20b" { EXPERTS } else { shape.more };
        let shape = Shape {
            n_layers: 6,
            d_model: 512,
            d_ff: 1024,
            n_heads: 8,
            n_kv_heads: 2,
            n_vocab: 600,
            more,
            ..shape
        };
        let path =
            std::env::temp_dir().join(format!("inglenook-resident-{}-{like}.gguf", std::process::id()));
        let made = Self(path);
        let mut out = BufWriter::new(File::create(&made.0).unwrap());
        shape::write(&shape, shape::mix(mix).unwrap(), 3, &mut out).unwrap();
        out.flush().unwrap();
        made
    }

    fn load(&self, resident: Option<WeightBudget>) -> Model {
        let file = Arc::new(WeightFile::open(&self.0).unwrap());
        let options = LoadOptions { threads: Some(2), resident, ctx: Some(512), ..LoadOptions::default() };
        Model::load(file, &options, &mut |_| {}).unwrap()
    }
}

impl Drop for TemporaryModel {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Bytes of a mapped file that this process holds. None: the system doesn't say.
fn held_of(path: &Path) -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let name = path.file_name()?.to_str()?;
    let (mut is_ours, mut held) = (false, 0);
    for line in maps.lines() {
        if let Some(rest) = line.strip_prefix("Rss:") {
            let kb: u64 = rest.trim().trim_end_matches(" kB").parse().ok()?;
            held += if is_ours { kb << 10 } else { 0 };
        } else if line.split(' ').next().is_some_and(|range| range.contains('-')) {
            is_ours = line.ends_with(name);
        }
    }
    Some(held)
}

/// Logits of a prompt and of tokens after it; and the most that was held of the file after any of them.
fn answer(model: &mut Model, path: &Path) -> (Vec<u32>, Option<u64>) {
    let seq = model.new_sequence().unwrap();
    let mut tokens: Vec<u32> = (0..90).map(|i| i * 37 % 599).collect();
    let (mut bits, mut most) = (Vec::new(), None);
    for n in 0..24u32 {
        let logits = model.forward(&[Chunk { seq, tokens: &tokens, logits: LogitsSelection::Last }]).unwrap();
        bits.extend(logits.row(0).unwrap().iter().map(|logit| logit.to_bits()));
        most = most.max(held_of(path));
        tokens = vec![(n * 101 + 7) % 599];
    }
    model.free(seq);
    (bits, most)
}

/// Beyond the budget: pages at the ends of pieces that the system maps around, and what is read beside the products.
const SLACK: u64 = 3 << 20;

fn check(like: &str, mix: &str, budgets: &[u64]) {
    let made = TemporaryModel::new(like, mix);
    let file_bytes = std::fs::metadata(&made.0).unwrap().len();
    let (expected, _) = answer(&mut made.load(None), &made.0);
    for (&n_bytes, is_tight) in budgets.iter().zip([false, true].into_iter().cycle()) {
        let mut model = made.load(Some(WeightBudget { n_bytes, is_tight }));
        for round in 0..2 {
            let (bits, held) = answer(&mut model, &made.0);
            assert!(bits == expected, "{like} {mix}: other logits within {n_bytes} bytes, round {round}");
            if let Some(held) = held.filter(|_| n_bytes > 1) {
                assert!(
                    held <= n_bytes + SLACK,
                    "{like} {mix}: {held} of {file_bytes} held, {n_bytes} allowed"
                );
            }
        }
    }
}

#[test]
fn a_budget_changes_no_logit_and_is_kept() {
    check("llama-3.2-1b", "q8_0", &[1, 8 << 20, 12 << 20, 1 << 40]);
    check("gpt-oss-20b", "mxfp4", &[1, 16 << 20, 20 << 20]);
}

//! `nook bench`: prefill and decode speed, of a model or of random weights in a published shape.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use api::worker::protocol::Kv;
use api::{Dirs, Error, ErrorKind, Result};
use engine::shape;
use engine::spec::Role;
use engine::{Chunk, Model, SequenceId, TokenId, Wanted, arch};
use io::{Clock, Io, RealClock, RealIo};
use serde::Serialize;
use weights::WeightFile;

use crate::args::{BenchArgs, Global};
use crate::{out, place, text};

/// One test, one line.
#[derive(Debug, Serialize)]
struct Row {
    /// `pp512`: a prompt of 512 tokens; `tg128`: 128 tokens one by one.
    test: String,
    depth: usize,
    tok_s: Speeds,
    /// Bytes read from memory for each token: weights, keys and values.
    bytes_per_token: u64,
    gb_s: f64,
    /// Bytes of the whole context, full.
    context_bytes: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Speeds {
    median: f64,
    min: f64,
    max: f64,
}

pub fn bench(global: &Global, args: &BenchArgs) -> Result<()> {
    let file = match (&args.subject.model, &args.subject.shape) {
        (Some(model), _) => place::open_to_run(model, global)?,
        (None, Some(shape)) => made_up(shape, args.keep.as_deref(), global)?,
        (None, None) => unreachable!("the command line demands one of them"),
    };
    let deepest = args.depth.iter().copied().max().unwrap_or(0);
    let context = deepest + args.prompt.max(args.generate) + 1;
    let mut options = place::load_options(global, Kv::F16, context)?;
    options.max_sequences = 1;
    let weight_bytes = bytes_per_pass(&file)?;
    let model = place::model(file, &options, global)?;
    if model.n_ctx() < context {
        return Err(Error::new(
            ErrorKind::Limit,
            "request.context_full",
            format!("The tests need a context of {context} tokens; the model holds {}.", model.n_ctx()),
            "Give a smaller --depth, --prompt or --gen, or a larger --ctx.",
        ));
    }
    let BenchArgs { repeat, copied_depth, .. } = *args;
    let mut bench = Bench { model, weight_bytes, clock: RealClock::new(), repeat, copied_depth };
    for &depth in &args.depth {
        if args.prompt > 0 {
            show(&bench.prefill(args.prompt, depth)?, global.json);
        }
        if args.generate > 0 {
            show(&bench.decode(args.generate, depth)?, global.json);
        }
    }
    Ok(())
}

fn show(row: &Row, as_json: bool) {
    if as_json {
        return out::json(row);
    }
    let Row { test, depth, tok_s, gb_s, .. } = row;
    let Speeds { median, min, max } = tok_s;
    out::line(&format!(
        "{test:<8} depth {depth:<7} {median:>9.2} tok/s  ({min:.2} to {max:.2})  {gb_s:>6.2} GB/s"
    ));
}

/// Weights that every token needs: of experts those that are chosen, of a table of embeddings that is not the output
/// too only a row.
fn bytes_per_pass(file: &WeightFile) -> Result<u64> {
    let family = arch::find(file)?;
    let spec = arch::spec(file, family)?;
    let bytes_of = |placed: &arch::Placed| {
        let n_bytes: u64 = placed.parts.iter().map(|part| part.data.len() as u64).sum();
        match placed.role {
            Role::TokenEmbedding if !spec.tied_embeddings => 0,
            Role::PositionEmbedding | Role::PerLayerEmbedding => 0,
            _ => match placed.layer.and_then(|layer| spec.layers[layer].ffn.experts()) {
                Some(experts) if placed.role.is_expert_matrix() => {
                    n_bytes / experts.n_experts as u64 * experts.n_used as u64
                }
                _ => n_bytes,
            },
        }
    };
    Ok(arch::tensors(file, family, &spec)?.iter().map(bytes_of).sum())
}

struct Bench {
    model: Model,
    weight_bytes: u64,
    clock: RealClock,
    repeat: u32,
    copied_depth: bool,
}

/// Tokens that are computed where the rest are copies.
const COMPUTED: usize = 1024;

impl Bench {
    /// A prompt of `n` tokens after `depth` others.
    fn prefill(&mut self, n: usize, depth: usize) -> Result<Row> {
        let tokens = self.tokens(depth, n);
        let seconds = self.timed(depth, &mut |model, seq| {
            model.forward(&[Chunk { seq, tokens: &tokens, logits: Wanted::Last }])?;
            Ok(())
        })?;
        let n_passes = n.div_ceil(self.model.max_rows()) as u64;
        let bytes = self.weight_bytes * n_passes / n as u64;
        Ok(self.row(format!("pp{n}"), n, depth, &seconds, bytes))
    }

    /// `n` tokens, one after another.
    fn decode(&mut self, n: usize, depth: usize) -> Result<Row> {
        let tokens = self.tokens(depth, n);
        let seconds = self.timed(depth, &mut |model, seq| {
            for token in &tokens {
                model.forward(&[Chunk { seq, tokens: std::slice::from_ref(token), logits: Wanted::Last }])?;
            }
            Ok(())
        })?;
        let mean_depth = (depth + n / 2) as u64;
        let info = self.model.info();
        let bytes = self.weight_bytes + info.kv_bytes_per_token * mean_depth + info.kv_fixed_bytes;
        Ok(self.row(format!("tg{n}"), n, depth, &seconds, bytes))
    }

    /// Seconds of each repetition, after one that isn't counted.
    fn timed(
        &mut self,
        depth: usize,
        work: &mut dyn FnMut(&mut Model, SequenceId) -> Result<()>,
    ) -> Result<Vec<f64>> {
        let seq = self.model.new_sequence()?;
        self.deepen(seq, depth)?;
        let mut seconds = Vec::new();
        for repetition in 0..=self.repeat {
            let start = self.clock.monotonic();
            work(&mut self.model, seq)?;
            if repetition > 0 {
                seconds.push((self.clock.monotonic() - start).as_secs_f64());
            }
            if self.model.truncate(seq, depth)? < depth {
                self.model.truncate(seq, 0)?;
                self.deepen(seq, depth)?;
            }
        }
        self.model.free(seq);
        Ok(seconds)
    }

    /// An empty sequence that becomes `depth` tokens deep, and can go back there.
    fn deepen(&mut self, seq: SequenceId, depth: usize) -> Result<()> {
        let n_computed = if self.copied_depth { depth.min(COMPUTED) } else { depth };
        let before = self.tokens(0, n_computed);
        self.model.forward(&[Chunk { seq, tokens: &before, logits: Wanted::None }])?;
        if n_computed < depth {
            self.model.fill_with_copies(seq, depth)?;
        }
        Ok(self.model.keep(seq)?)
    }

    /// `n` ids that look like nothing, the same each time.
    fn tokens(&self, from: usize, n: usize) -> Vec<TokenId> {
        let n_vocab = self.model.info().n_vocab as u64;
        let id = |at: usize| ((at as u64 * 7919 + 17) % n_vocab) as TokenId;
        (from..from + n).map(id).collect()
    }

    fn row(&self, test: String, n: usize, depth: usize, seconds: &[f64], bytes_per_token: u64) -> Row {
        let mut speeds: Vec<f64> = seconds.iter().map(|seconds| n as f64 / seconds.max(1e-9)).collect();
        speeds.sort_by(f64::total_cmp);
        let middle = speeds.len() / 2;
        let median = match speeds.len() % 2 {
            0 => (speeds[middle - 1] + speeds[middle]) / 2.0,
            _ => speeds[middle],
        };
        let tok_s = Speeds { median, min: speeds[0], max: speeds[speeds.len() - 1] };
        let context_bytes = self.model.info().kv_bytes.live();
        Row {
            test,
            depth,
            tok_s,
            bytes_per_token,
            gb_s: median * bytes_per_token as f64 / 1e9,
            context_bytes,
        }
    }
}

/// A file of the shape, opened. Without `keep` it is gone from its folder at once; its pages live as long as they
/// are mapped.
fn made_up(wanted: &str, keep: Option<&Path>, global: &Global) -> Result<WeightFile> {
    let (name, dtype) = wanted.split_once(':').ok_or_else(|| {
        let message = format!("\"{wanted}\" is not NAME:DTYPE.");
        Error::new(ErrorKind::Usage, "usage.shape", message, "Such as --shape llama-3.2-1b:q4_k_m.")
    })?;
    let (shape, mix) = (shape::find(name).map_err(usage)?, shape::mix(dtype).map_err(usage)?);
    let io = RealIo;
    let path = match keep {
        Some(path) => path.to_owned(),
        None => {
            let folder = Dirs::resolve(global.app_config()?.data_dir)?.cache;
            io.create_dir_all(&folder)?;
            folder.join(format!("bench-{}-{name}-{dtype}.gguf", std::process::id()))
        }
    };
    if keep.is_some() && io.exists(&path)? {
        let message = format!("{} is there already.", path.display());
        return Err(Error::input("bench.exists", message, "Name a file that isn't, or remove it."));
    }
    let mut writer = BufWriter::with_capacity(WRITTEN_AT_ONCE, Appending { io: &io, path: path.clone() });
    let written = shape::write(shape, mix, SEED, &mut writer).and_then(|()| {
        let flushed = writer.flush();
        flushed.map_err(|error| {
            engine::EngineError::new("bench.write", error.to_string(), "Free some disk space.")
        })
    });
    let file = written.map_err(Error::from).and_then(|()| Ok(WeightFile::open(&path)?));
    if keep.is_none() || file.is_err() {
        io.remove_file(&path)?;
    }
    if let (Some(path), Ok(file)) = (keep, &file) {
        out::log(&format!("{}: {}", path.display(), text::bytes(file.len_bytes())));
    }
    file
}

const SEED: u64 = 1;
const WRITTEN_AT_ONCE: usize = 64 << 20;

/// A name that the command line got wrong.
fn usage(error: engine::EngineError) -> Error {
    Error::new(ErrorKind::Usage, error.code(), error.to_string(), error.remedy())
}

/// Writes to the end of a file.
struct Appending<'a> {
    io: &'a RealIo,
    path: PathBuf,
}

impl Write for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.io.append(&self.path, bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

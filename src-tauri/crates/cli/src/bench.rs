//! `nook bench`: prefill and decode speed, of a model or of random weights in a published shape.

mod kernel_cases;
mod kernels;
mod made_up;
mod profile;
mod speed;
mod sustained;

use api::worker::protocol::Kv;
use api::{Error, ErrorKind, Result};
use engine::arch;
use engine::spec::Role;
use io::RealClock;
use weights::WeightFile;

use crate::args::{BenchArgs, Global};
use crate::place;
use made_up::made_up;
use speed::Bench;

pub use kernels::GROUPS;

pub fn bench(global: &Global, args: &BenchArgs) -> Result<()> {
    if let Some(group) = &args.kernels {
        return kernels::kernels(group, global);
    }
    let file = match (&args.subject.model, &args.subject.shape) {
        (Some(model), _) => place::open_to_run(model, global)?,
        (None, Some(shape)) => made_up(shape, args.keep.as_deref(), global)?,
        (None, None) => {
            return Err(Error::new(
                ErrorKind::Usage,
                "usage.subject",
                "There is nothing to measure.",
                "Name a model by --model, a shape by --shape, or give --kernels.",
            ));
        }
    };
    let per_turn = if args.sustained.is_some() { sustained::TURN } else { 0 };
    let deepest = args.depth.iter().copied().max().unwrap_or(0);
    let context = deepest + args.prompt.max(args.generate).max(per_turn) + 1;
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
    let BenchArgs { repeat, copied_depth, profile, .. } = *args;
    let (clock, json) = (RealClock::new(), global.json);
    let mut bench = Bench { model, weight_bytes, clock, repeat, copied_depth, profile, json };
    if let Some(seconds) = args.sustained {
        return sustained::sustained(&mut bench, seconds);
    }
    for &depth in &args.depth {
        if args.prompt > 0 {
            bench.prefill(args.prompt, depth)?;
        }
        if args.generate > 0 {
            bench.decode(args.generate, depth)?;
        }
    }
    Ok(())
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

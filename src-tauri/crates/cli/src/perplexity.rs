//! `nook perplexity`: perplexity of a model on a text, and its KL divergence from another model.

use std::path::PathBuf;

use clap::Args;
use contract::Error;
use contract::KvAging;
use contract::Result;
use contract::protocol::Kv;
use engine::perplexity::{self, Divergence, PerplexityScore};
use engine::tokenizer::Special;
use serde_json::json;

use crate::args::global::Global;
use crate::args::values::{aging, kv};
use crate::{interrupt, open_model, out, progress};

/// Default window in tokens, without `--ctx`.
const WINDOW: usize = 512;

#[derive(Debug, Args)]
pub struct PerplexityArgs {
    /// Library id or path
    #[arg(long)]
    pub model: String,
    /// Text file; - reads standard input
    #[arg(long, value_name = "F")]
    pub file: PathBuf,
    /// Model to compare with: KL divergence from it, and agreement on the most likely token
    #[arg(long, value_name = "M2")]
    pub against: Option<String>,
    /// Precision of the other model's KV cache [default: as --kv]
    #[arg(long, value_name = "KEYS[/VALUES]", value_parser = kv, requires = "against")]
    pub against_kv: Option<Kv>,
    /// When to convert the other model's KV cache to q8_0 [default: as --kv-aging]
    #[arg(long, value_name = "off|pressure|after:N", value_parser = aging, requires = "against")]
    pub against_kv_aging: Option<KvAging>,
    /// Parse control tokens in the text
    #[arg(long)]
    pub parse_special: bool,
}

pub fn perplexity(global: &Global, args: &PerplexityArgs) -> Result<()> {
    let text = open_model::read_text(&args.file)?;
    // only the first model gets the adapters
    let (kv, kv_aging) = (args.against_kv.or(global.kv), args.against_kv_aging.or(global.kv_aging));
    let plain = Global { lora: Vec::new(), kv, kv_aging, ..global.clone() };
    let load = |name: &str, global: &Global| {
        let mut options = open_model::load_options(global, Kv::F32, WINDOW)?;
        options.max_sequences = 1;
        open_model::model(open_model::open_to_run(name, global)?, &options, global)
    };
    let mut model = load(&args.model, global)?;
    let special = if args.parse_special { Special::Parse } else { Special::Plain };
    let ids = perplexity::encode(&model, &text, special)?;
    let mut against = args.against.as_deref().map(|name| load(name, &plain)).transpose()?;
    if let Some(against) = &against
        && perplexity::encode(against, &text, special)? != ids
    {
        let message = "The two models tokenize the text differently.";
        return Err(Error::input(
            "perplexity.vocabularies",
            message,
            "Compare models with the same tokenizer.",
        ));
    }
    let max_ctx = against.as_ref().map_or(model.n_ctx(), |against| against.n_ctx().min(model.n_ctx()));
    let n_ctx = max_ctx.min(global.ctx.map_or(WINDOW, |n| n as usize));
    let stop = interrupt::flag();
    let mut progress = progress::percent("measuring", &stop);
    let (quality, difference) =
        perplexity::measure(&mut model, against.as_mut(), &ids, n_ctx, &mut progress)?;
    show(&quality, difference.as_ref(), global.json);
    Ok(())
}

fn show(quality: &PerplexityScore, difference: Option<&Divergence>, as_json: bool) {
    let PerplexityScore { perplexity, tokens, windows, n_ctx } = quality;
    if as_json {
        let mut report = json!({
            "perplexity": perplexity,
            "tokens": tokens,
            "windows": windows,
            "n_ctx": n_ctx,
            "method": "windows overlap by half, every token is scored once, BOS first where the model wants it",
        });
        if let Some(difference) = difference {
            report["against_perplexity"] = json!(difference.perplexity);
            report["mean_kl"] = json!(difference.mean_kl);
            report["max_kl"] = json!(difference.max_kl);
            report["top1_agreement"] = json!(difference.top1_agreement);
        }
        return out::json(&report);
    }
    out::line(&format!("perplexity {perplexity:.4} over {tokens} tokens in {windows} windows of {n_ctx}"));
    if let Some(Divergence { perplexity, mean_kl, max_kl, top1_agreement }) = difference {
        out::line(&format!("perplexity of the other model {perplexity:.4}"));
        out::line(&format!("KL divergence from it {mean_kl:.6} nats, maximum {max_kl:.6}"));
        out::line(&format!("same most likely token at {:.2} % of positions", top1_agreement * 100.0));
    }
}

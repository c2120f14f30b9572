//! What a smaller context in memory costs: precisions and windows beside the whole context in 16-bit floats, on text
//! that the model writes itself. `--nocapture` shows the table.

use std::path::Path;
use std::sync::Arc;

use engine::kv::requantize::KvRequantize;
use engine::{
    Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model, Request, Sampling, TokenId, generate,
};
use test_support::{Missing, skip_part};
use weights::WeightFile;

fn load(
    path: &Path,
    n_ctx: usize,
    kv: KvDType,
    kv_window: Option<usize>,
    kv_requantize: KvRequantize,
) -> Model {
    let file = Arc::new(WeightFile::open(path).unwrap());
    let options = LoadOptions {
        devices: Devices::Cpu,
        threads: Some(2),
        ctx: Some(n_ctx),
        kv: kv.both(),
        kv_window,
        kv_requantize,
        ..LoadOptions::default()
    };
    Model::load(file, &options, &mut |_| {}).unwrap()
}

/// `n` tokens as likely as the model finds them.
fn written(model: &mut Model, first: TokenId, n: usize) -> Vec<TokenId> {
    let request = Request {
        id: 1,
        prompt: vec![first],
        sequence: None,
        sampling: Sampling {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: Some(5),
            ..Sampling::default()
        },
        max_tokens: Some(n - 1),
        stop: Vec::new(),
        ignore_eos: true,
        markup_tokens: Vec::new(),
        budget: None,
        speculation: None,
        script: engine::speculate::Script::default(),
        constraint: None,
        logprobs: None,
        resumed: Vec::new(),
    };
    let answer = generate(model, request, &mut |_| true).unwrap();
    [&[first], &answer.ids[..]].concat()
}

/// Natural logarithms of the probabilities after each token of the second half. (n / 2, n_vocab)
fn log_probabilities(model: &mut Model, tokens: &[TokenId]) -> Vec<Vec<f64>> {
    let seq = model.new_sequence().unwrap();
    let (before, rest) = tokens.split_at(tokens.len() / 2);
    model.forward(&[Chunk { seq, tokens: before, logits: LogitsSelection::None }]).unwrap();
    let logits = model.forward(&[Chunk { seq, tokens: rest, logits: LogitsSelection::All }]).unwrap();
    let log_softmax = |row: &[f32]| {
        let max = row.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
        let sum: f64 = row.iter().map(|x| f64::from(x - max).exp()).sum();
        row.iter().map(|x| f64::from(x - max) - sum.ln()).collect()
    };
    (0..logits.n_rows()).map(|row| log_softmax(logits.row(row).unwrap())).collect()
}

#[derive(Debug)]
struct Cost {
    /// mean divergence from the whole context, in nats
    kl: f64,
    /// share of positions where the likeliest token is the same
    top1: f64,
    /// how much less likely the text is, in nats per token
    loss: f64,
}

fn cost(exact: &[Vec<f64>], found: &[Vec<f64>], tokens: &[TokenId]) -> Cost {
    let n = exact.len() as f64;
    let likeliest = |row: &[f64]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
    let kl =
        |(p, q): (&Vec<f64>, &Vec<f64>)| -> f64 { p.iter().zip(q).map(|(p, q)| p.exp() * (p - q)).sum() };
    let pairs = || exact.iter().zip(found);
    let next = &tokens[tokens.len() / 2 + 1..];
    let loss = |rows: &[Vec<f64>]| -> f64 {
        -rows.iter().zip(next).map(|(row, &token)| row[token as usize]).sum::<f64>() / next.len() as f64
    };
    Cost {
        kl: pairs().map(kl).sum::<f64>() / n,
        top1: pairs().filter(|(p, q)| likeliest(p) == likeliest(q)).count() as f64 / n,
        loss: loss(found) - loss(exact),
    }
}

/// Blocks of 32 don't fit into heads of 8 elements: those cases are left out.
fn check(name: &str, path: &Path, first: TokenId, n: usize, has_blocks: bool) {
    let mut model = load(path, n, KvDType::F16, None, KvRequantize::Off);
    let tokens = written(&mut model, first, n);
    let exact = log_probabilities(&mut model, &tokens);
    let full = model.info().kv_bytes.live();
    let cost_as = |kv, window, aging| {
        let mut model = load(path, n, kv, window, aging);
        let cost = cost(&exact, &log_probabilities(&mut model, &tokens), &tokens);
        let Cost { kl, top1, loss } = cost;
        eprintln!(
            "{name}, {n} tokens, {kv:?}, window {window:?}, aging {aging}: KL {kl:.6}, top-1 {top1:.4}, loss {loss:+.5}"
        );
        (cost, model.info().kv_bytes.live())
    };
    let cost_of = |kv, window| cost_as(kv, window, KvRequantize::Off);
    let (exacter, _) = cost_of(KvDType::F32, None);
    assert!(exacter.kl < 2e-3 && exacter.top1 > 0.97, "{name}: {exacter:?}");
    if has_blocks {
        let ((q8_0, n_q8_0), (q4_0, n_q4_0)) = (cost_of(KvDType::Q8_0, None), cost_of(KvDType::Q4_0, None));
        assert!(n_q4_0 < n_q8_0 && n_q8_0 < full);
        assert!(q8_0.kl < 2e-3 && q8_0.top1 > 0.97, "{name}: {q8_0:?}");
        assert!(q4_0.kl > q8_0.kl && q4_0.kl < 0.5, "{name}: {q4_0:?}");
        cost_of(KvDType::Q8_0, Some(n / 4));
        let (aged, n_aged) = cost_as(KvDType::F16, None, KvRequantize::After(256));
        assert!(n_aged <= full && (n <= 768 || n_q8_0 < n_aged && n_aged < full), "{n_aged} of {full}");
        // the newest tokens are what matters most, and they stay exact
        assert!(aged.kl > 0.0 && aged.kl < q8_0.kl * 1.1 && aged.top1 > 0.98, "{name}: {aged:?}");
    }
    let windows = [n / 2, n / 4, n / 8].map(|window| cost_of(KvDType::F16, Some(window)).0);
    // a narrower window loses more
    assert!(windows.is_sorted_by(|wider, narrower| wider.kl < narrower.kl), "{name}: {windows:?}");
}

#[test]
fn smaller_contexts_cost_what_is_said() {
    let starter = inglenook_tests::workspace_root().join("models/starter/starter.gguf");
    check("starter", &starter, 1, 1024, true);
    let stories = inglenook_tests::reference_dir().join("real/stories260K/stories260K-f32.gguf");
    if stories.exists() || !inglenook_tests::reference_is_small() {
        check("stories260K", &stories, 1, 512, false);
    } else {
        skip_part!(Missing::Reference, "the small set has no stories260K");
    }
}

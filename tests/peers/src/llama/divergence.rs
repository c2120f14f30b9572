//! The divergence of llama.cpp's logits for a quantized file from those for another file of the same model.
//! By the method of `nook perplexity`: windows overlap by half, and every token is scored once.

use crate::options::Options;
use crate::runner::Runner;

/// Tokens of a window.
const WINDOW: usize = 512;

/// Means over the scored positions.
pub struct Divergence {
    pub n_tokens: usize,
    /// In nats.
    pub mean_kl: f64,
    /// Share of positions with the same most likely token.
    pub top1_agreement: f64,
}

/// Compares the model of `options` with the file `base` on `text`.
pub fn measure(options: &Options, base: &str, text: &str) -> Result<Divergence, String> {
    let mut model = Runner::load(options)?;
    let mut reference = Runner::load(&Options { model: base.to_owned(), ..options.clone() })?;
    let ids = model.tokenize(text, false)?;
    if ids != reference.tokenize(text, false)? || model.n_vocab() != reference.n_vocab() {
        return Err(format!("{} and {base} tokenize the text differently", options.model));
    }
    // A text of nothing is BOS, where the model wants one.
    let before: Vec<u32> = model.tokenize("", true)?.into_iter().take(1).collect();
    let body = WINDOW - before.len();
    let (mut start, mut scored) = (0, usize::from(before.is_empty()));
    let (mut n, mut kl, mut n_agreed) = (0_usize, 0.0, 0_usize);
    while scored < ids.len() {
        let end = (start + body).min(ids.len());
        let window: Vec<u32> = before.iter().chain(&ids[start..end]).copied().collect();
        let first = before.len() + scored - start - 1;
        let (ours, theirs) = (model.all_logits(&window)?, reference.all_logits(&window)?);
        for row in first..window.len() - 1 {
            let row = row * model.n_vocab()..(row + 1) * model.n_vocab();
            let (ours, theirs) = (&ours[row.clone()], &theirs[row]);
            kl += divergence(ours, theirs);
            n_agreed += usize::from(largest(ours) == largest(theirs));
            n += 1;
        }
        scored = end;
        start += body / 2;
    }
    let count = n.max(1) as f64;
    Ok(Divergence { n_tokens: n, mean_kl: kl / count, top1_agreement: n_agreed as f64 / count })
}

/// KL(reference ‖ logits) in nats.
fn divergence(logits: &[f32], reference: &[f32]) -> f64 {
    let (total, reference_total) = (log_sum_exp(logits), log_sum_exp(reference));
    let terms = logits.iter().zip(reference).map(|(&ours, &theirs)| {
        let (ours, theirs) = (f64::from(ours) - total, f64::from(theirs) - reference_total);
        theirs.exp() * (theirs - ours)
    });
    terms.sum::<f64>().max(0.0)
}

/// ln Σ exp(x)
fn log_sum_exp(values: &[f32]) -> f64 {
    let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    f64::from(max) + values.iter().map(|&value| f64::from(value - max).exp()).sum::<f64>().ln()
}

fn largest(values: &[f32]) -> Option<usize> {
    (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]))
}

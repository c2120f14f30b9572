//! Verdicts as tables: machines, models, contexts.

use engine::shape;
use weights::WeightFile;

use super::*;
use contract::types::FitFacts;

const GB: u64 = 1_000_000_000;

fn sizes(name: &str, mix: &str) -> MemoryEstimate {
    let outline: WeightFile = shape::outline(&shape::find(name).unwrap(), shape::mix(mix).unwrap()).unwrap();
    MemoryEstimate::of(&outline).unwrap()
}

fn here(free: u64, gb_s: f64) -> MachineFacts {
    let speeds = ["Q4_K", "Q6_K", "Q8_0", "MXFP4", "F16"].map(|format| (format.to_owned(), gb_s * 1e9));
    let speeds = MeasuredSpeeds { formats: speeds.into(), ..MeasuredSpeeds::default() };
    MachineFacts { free_bytes: Some(free), total_bytes: Some(2 * free), speeds, gpu: None }
}

fn asked(context: u32) -> LoadDefaults {
    LoadDefaults { context, kv: Kv::F16, ..LoadDefaults::default() }
}

#[test]
fn verdicts_follow_memory_then_speed() {
    use FitVerdict::{RunsWell, Slow, WontFit};
    for (name, mix, free, gb_s, context, expected) in [
        ("llama-3.2-1b", "q4_k_m", 4 * GB, 20.0, 8192, RunsWell),
        ("llama-3.1-8b", "q4_k_m", 16 * GB, 40.0, 8192, RunsWell),
        ("llama-3.1-8b", "q4_k_m", 16 * GB, 15.0, 8192, Slow),
        // the weights leave too little memory for the rest
        ("llama-3.1-8b", "q4_k_m", 6_100_000_000, 100.0, 2048, Slow),
        ("llama-3.1-8b", "q4_k_m", 5 * GB, 100.0, 8192, WontFit),
        ("llama-3.1-8b", "q4_k_m", 16 * GB, 100.0, 131_072, WontFit),
        ("gpt-oss-20b", "mxfp4_moe", 16 * GB, 20.0, 8192, RunsWell),
        ("gpt-oss-20b", "mxfp4_moe", 10 * GB, 20.0, 8192, WontFit),
        ("llama-3.2-1b", "q4_k_m", 0, 20.0, 1, WontFit),
    ] {
        let fit =
            estimate(&sizes(name, mix), EstimateBasis::Exactly, &here(free, gb_s), &asked(context), None);
        assert_eq!(fit.verdict, expected, "{name} in {free}: {}", fit.reason);
        assert_eq!(fit.needs.total > free, expected == WontFit);
        assert!(fit.longest_context.is_none_or(|n| (n >= context) == (expected != WontFit)), "{fit:?}");
    }
}

#[test]
fn numbers_of_a_known_model() {
    let fit = estimate(
        &sizes("llama-3.1-8b", "q4_k_m"),
        EstimateBasis::Exactly,
        &here(16 * GB, 40.0),
        &asked(8192),
        None,
    );
    assert!((fit.needs.weights / 1_000_000).abs_diff(4921) < 60, "{fit:?}");
    assert_eq!(fit.needs.context, 8192 * 131_072);
    let parts = [fit.needs.weights, fit.needs.context, fit.needs.activations, fit.needs.vocabulary];
    assert_eq!(fit.needs.total, parts.iter().sum::<u64>());
    let (begin, full) = (fit.tok_s.unwrap(), fit.tok_s_full.unwrap());
    assert!((8.0..9.0).contains(&begin) && full < begin, "{begin} {full}");
    assert!(fit.reason.contains("6.1 GB of 16.0 GB"), "{}", fit.reason);
    // a context beyond the model's own is its own
    let fit = estimate(
        &sizes("gemma-3-1b", "q8_0"),
        EstimateBasis::Exactly,
        &here(16 * GB, 40.0),
        &asked(99_999),
        None,
    );
    assert_eq!((fit.context, fit.longest_context), (32_768, Some(32_768)));
}

#[test]
fn what_caches_hold_is_read_as_caches_are() {
    let mut here = here(16 * GB, 10.0);
    here.speeds.cached = [("Q8_0".to_owned(), 80e9)].into();
    let of = |n_bytes: u64| {
        let sizes =
            MemoryEstimate { read: [("Q8_0".to_owned(), n_bytes)].into(), ..MemoryEstimate::default() };
        (tok_s(&sizes, &here.speeds, Kv::F16, 0).unwrap() * n_bytes as f64 / 1e9).round()
    };
    assert_eq!((of(4 << 20), of(64 << 20)), (80.0, 10.0));
}

#[test]
fn tokens_cost_more_than_their_weights() {
    let (sizes, mut here) = (sizes("llama-3.2-1b", "q4_k_m"), here(16 * GB, 40.0));
    let seconds = |here: &MachineFacts, depth| 1.0 / tok_s(&sizes, &here.speeds, Kv::F16, depth).unwrap();
    let of_weights = seconds(&here, 1000);
    here.speeds.beside.layer_s = 1e-5;
    assert!((seconds(&here, 1000) - of_weights - 16.0 * 1e-5).abs() < 1e-9);
    // computing on keys and values counts where it takes longer than reading them
    let read = sizes.kv_read(1000, crate::engine_types::kv_precision(Kv::F16)) as f64 / 40e9;
    here.speeds.beside.attended_s = 0.5 * read / sizes.attended(1000) as f64;
    assert!((seconds(&here, 1000) - of_weights - 16.0 * 1e-5).abs() < 1e-9);
    here.speeds.beside.attended_s *= 4.0;
    assert!((seconds(&here, 1000) - of_weights - 16.0 * 1e-5 - read).abs() < 1e-9);
}

#[test]
fn f13_a_refusal_says_what_would_fit() {
    let long = estimate(
        &sizes("llama-3.1-8b", "q4_k_m"),
        EstimateBasis::Exactly,
        &here(7 * GB, 40.0),
        &asked(65_536),
        None,
    );
    let n = long.longest_context.unwrap();
    assert!(long.reason.contains(&format!("context of {n} tokens")), "{}", long.reason);
    let short = estimate(
        &sizes("llama-3.1-8b", "q4_k_m"),
        EstimateBasis::Exactly,
        &here(7 * GB, 40.0),
        &asked(n),
        None,
    );
    assert_ne!(short.verdict, FitVerdict::WontFit);
    let none =
        estimate(&sizes("llama-3.1-8b", "q4_k_m"), EstimateBasis::Exactly, &here(GB, 40.0), &asked(64), None);
    assert_eq!(none.longest_context, None);
    assert!(none.reason.ends_with("Choose a smaller one."), "{}", none.reason);
}

#[test]
fn what_is_not_known_is_not_claimed() {
    let sizes = sizes("llama-3.2-1b", "q8_0");
    let fit = estimate(&sizes, EstimateBasis::About, &MachineFacts::default(), &asked(4096), None);
    assert_eq!((fit.verdict, fit.exact, fit.tok_s), (FitVerdict::RunsWell, false, None));
    assert_eq!((fit.free_bytes, fit.longest_context), (None, Some(131_072)));
}

#[test]
fn a_run_corrects_the_next_estimate() {
    let sizes = sizes("llama-3.2-1b", "q8_0");
    let run = |tok_s| FitMeasured {
        tok_s,
        estimated_tok_s: Some(20.0),
        memory_bytes: None,
        estimated_memory_bytes: 1,
        tokens: 100,
        at_ms: 0,
    };
    let with = |run| {
        estimate(&sizes, EstimateBasis::Exactly, &here(16 * GB, 40.0), &asked(4096), run).tok_s.unwrap()
    };
    let plain = with(None);
    for (measured, expected) in [(20.0, plain), (22.0, plain * 1.1), (16.0, plain * 0.8), (2.0, plain)] {
        assert!((with(Some(run(measured))) - expected).abs() < 0.11, "{measured}");
    }
}

#[test]
fn published_facts_come_near_the_file() {
    for (name, mix, dtype, parameters, active) in [
        ("llama-3.2-1b", "q4_k_m", "Q4_K_M", 1_236_000_000, None),
        ("smollm3-3b", "q4_k_m", "Q4_K_M", 3_075_000_000, None),
        ("llama-3.1-8b", "q8_0", "Q8_0", 8_030_000_000, None),
        ("gpt-oss-20b", "mxfp4_moe", "MXFP4", 20_914_000_000, Some(3_600_000_000)),
    ] {
        let exact = sizes(name, mix);
        let facts = FitFacts {
            bytes: exact.weights,
            parameters: Some(parameters),
            active_parameters: active,
            dtype: Some(dtype.into()),
            context_length: Some(65_536),
        };
        let of = |sizes: &MemoryEstimate| {
            estimate(sizes, EstimateBasis::About, &here(64 * GB, 40.0), &asked(8192), None)
        };
        let (about, exact) = (of(&published(&facts)), of(&exact));
        let off = |a: f64, b: f64| (a / b - 1.0).abs();
        let memory = off(about.needs.total as f64, exact.needs.total as f64);
        let speed = off(about.tok_s.unwrap(), exact.tok_s.unwrap());
        assert!(memory < 0.15 && speed < 0.25, "{name}: memory off by {memory:.2}, speed by {speed:.2}");
    }
    let nothing =
        estimate(&published(&FitFacts::default()), EstimateBasis::About, &here(GB, 40.0), &asked(64), None);
    assert_eq!(nothing.needs.weights, 0);
}

#[test]
fn what_drafts_counts_and_is_not_read_for_each_token() {
    let (target, draft) = (sizes("llama-3.1-8b", "q4_k_m"), sizes("llama-3.2-1b", "q4_k_m"));
    let with = |draft: Option<DraftEstimate>| {
        let asked = LoadDefaults { draft, ..asked(8192) };
        estimate(&target, EstimateBasis::Exactly, &here(7 * GB, 40.0), &asked, None)
    };
    let (plain, alone) =
        (with(None), estimate(&draft, EstimateBasis::Exactly, &here(7 * GB, 40.0), &asked(8192), None));
    let beside = with(Some(DraftEstimate::new("llama", draft.clone())));
    assert_eq!(beside.needs.total, plain.needs.total + alone.needs.total);
    assert_eq!((plain.verdict, beside.verdict), (FitVerdict::RunsWell, FitVerdict::WontFit));
    assert!(beside.longest_context < plain.longest_context, "{:?}", beside.longest_context);
    assert_eq!(beside.tok_s, plain.tok_s);
    // an assistant has no context: it attends to the keys and values of its target
    let assisted = with(Some(DraftEstimate::new("gemma4-assistant", draft.clone())));
    assert_eq!(assisted.needs.total, plain.needs.total + draft.weights);
    assert_eq!((assisted.needs.context, assisted.tok_s), (plain.needs.context, plain.tok_s));
    let of_draft = Some(DraftEstimate::new("llama", draft));
    assert_eq!(memory_at(&target, of_draft.as_ref(), 8192, Kv::F16), beside.needs.total);
}

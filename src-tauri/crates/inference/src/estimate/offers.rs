//! Published figures of the catalogue's offers, and which offer suits this computer best.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use contract::types::{ChoiceKind, FitFacts, FitVerdict, ModelFit, OfferFit};
use contract::{Error, Result};

use super::{MachineFacts, MeasuredSpeeds, OverheadCosts};

const SOURCE: &str = include_str!("../../../../../models/sizes.toml");

/// Share of free memory that a recommended model leaves to other programs.
const COMFORT: (u64, u64) = (7, 10);

/// Largest download of a first suggestion, in bytes: more takes too long to be a first step.
const MAX_FIRST_BYTES: u64 = 4_000_000_000;

/// Least speed of a first suggestion, in tokens per second: about twice as fast as people read.
const MIN_FIRST_TOK_S: f64 = 10.0;

/// Share of all memory that counts as free for a suggestion. What other programs use now says nothing about tomorrow.
const STEADY_FREE: (u64, u64) = (3, 4);

/// Bytes of weights per second that a core of a computer of the last ten years multiplies at least, with AVX2 or NEON.
const CORE_BYTES_S: f64 = 6e9;

/// The same of all cores: memory with two channels of DDR4 gives no more.
const MAX_CORES_BYTES_S: f64 = 24e9;

/// Seconds of a layer apart from its weights, assumed of any computer.
const ASSUMED_LAYER_S: f64 = 20e-6;

/// The format of published figures.
const PUBLISHED_FORMAT: &str = "Q4_K";

/// Speed of a fast choice in tokens per second: an answer of some sentences takes seconds.
const MIN_FAST_TOK_S: f64 = 25.0;

/// Largest download of the best choice, in bytes.
const MAX_BEST_BYTES: u64 = 12_000_000_000;

/// The machine as suggestions see it: without what other programs use at the moment, and as fast as any with its number
/// of cores. Only a slower measurement counts, which `kept` holds if it was made while no other program computed. So the
/// same machine gets the same suggestion at every start, before and after it was measured.
pub fn steady(here: MachineFacts, kept: &MeasuredSpeeds, n_cores: usize) -> MachineFacts {
    let free_bytes = here.total_bytes.map(|total| total / STEADY_FREE.1 * STEADY_FREE.0).or(here.free_bytes);
    let assumed = (CORE_BYTES_S * n_cores.max(1) as f64).min(MAX_CORES_BYTES_S);
    let speed = kept.formats.get(PUBLISHED_FORMAT).map_or(assumed, |measured| measured.min(assumed));
    let speeds = MeasuredSpeeds {
        formats: [(PUBLISHED_FORMAT.to_owned(), speed)].into(),
        cached: BTreeMap::new(),
        beside: OverheadCosts { layer_s: ASSUMED_LAYER_S, attended_s: 0.0 },
    };
    MachineFacts { free_bytes, speeds, ..here }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: BTreeMap<String, OfferRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferRow {
    /// Megabytes.
    mb: u64,
    /// Millions.
    parameters: u64,
    active: Option<u64>,
    /// Thousands of tokens.
    context: u32,
}

/// By the catalogue's ids.
pub fn facts() -> Result<&'static BTreeMap<String, FitFacts>> {
    static FACTS: OnceLock<Result<BTreeMap<String, FitFacts>>> = OnceLock::new();
    FACTS.get_or_init(parse).as_ref().map_err(Clone::clone)
}

fn parse() -> Result<BTreeMap<String, FitFacts>> {
    let wrong = |error: toml::de::Error| Error::bug(format!("models/sizes.toml: {error}"));
    let File { model } = toml::from_str(SOURCE).map_err(wrong)?;
    let facts = |row: OfferRow| FitFacts {
        bytes: row.mb * 1_000_000,
        parameters: Some(row.parameters * 1_000_000),
        active_parameters: row.active.map(|n| n * 1_000_000),
        context_length: Some(row.context * 1024),
        dtype: None,
    };
    Ok(model.into_iter().map(|(id, row)| (id, facts(row))).collect())
}

/// Returns the model with most parameters among those that run well, write fast enough, are a short download and leave
/// memory for other programs. If there is none, returns the fastest that fits. None: nothing fits.
pub fn best<'a>(
    offers: impl IntoIterator<Item = (&'a str, &'a FitFacts, ModelFit)>,
) -> Option<(&'a str, ModelFit)> {
    let rank = |facts: &FitFacts, fit: &ModelFit| {
        let is_first =
            facts.bytes <= MAX_FIRST_BYTES && fit.tok_s.is_none_or(|speed| speed >= MIN_FIRST_TOK_S);
        match fit.verdict {
            FitVerdict::RunsWell if is_comfortable(fit) && is_first => {
                Some((true, facts.parameters.unwrap_or(0) as f64))
            }
            FitVerdict::RunsWell | FitVerdict::Slow => Some((false, fit.tok_s.unwrap_or(0.0))),
            FitVerdict::WontFit => None,
        }
    };
    let ranked = offers.into_iter().filter_map(|(id, facts, fit)| Some((rank(facts, &fit)?, id, fit)));
    let best = ranked.max_by(|(a, ..), (b, ..)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    best.map(|(_, id, fit)| (id, fit))
}

fn is_comfortable(fit: &ModelFit) -> bool {
    fit.free_bytes.is_none_or(|free| fit.needs.total <= free / COMFORT.1 * COMFORT.0)
}

/// Indices of the models that are offered first: beside the one that suits best, a smaller one that is fast, and a larger
/// one that knows more. A kind that no other model suits is left out.
pub fn choices(offers: &[OfferFit]) -> Vec<(ChoiceKind, usize)> {
    let all = offers.iter().map(|it| (it.id.as_str(), &it.facts, it.fit.clone()));
    let best_id = best(all).map(|(id, _)| id);
    let Some(balanced) = offers.iter().position(|it| Some(it.id.as_str()) == best_id) else {
        return Vec::new();
    };
    let parameters = |n: usize| offers[n].facts.parameters.unwrap_or(0);
    let largest = |is_meant: &dyn Fn(&OfferFit) -> bool| {
        let runs_well = |it: &OfferFit| it.fit.verdict == FitVerdict::RunsWell && is_comfortable(&it.fit);
        let meant = (0..offers.len()).filter(|&n| runs_well(&offers[n]) && is_meant(&offers[n]));
        meant.max_by_key(|&n| (parameters(n), offers.len() - n))
    };
    let (bytes, n_parameters) = (offers[balanced].facts.bytes, parameters(balanced));
    let fast =
        largest(&|it| it.facts.bytes < bytes && it.fit.tok_s.is_some_and(|speed| speed >= MIN_FAST_TOK_S));
    let more = largest(&|it| {
        let of_it = it.facts.parameters.unwrap_or(0);
        it.facts.bytes > bytes && of_it > n_parameters && it.facts.bytes <= MAX_BEST_BYTES
    });
    let kinds = [(ChoiceKind::Fast, fast), (ChoiceKind::Balanced, Some(balanced)), (ChoiceKind::Best, more)];
    kinds.into_iter().filter_map(|(kind, n)| Some((kind, n?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{EstimateBasis, LoadDefaults, estimate, published};

    #[test]
    fn a_machine_gets_the_most_that_it_runs_well() {
        // billions of parameters
        for (free_gb, gb_s, least, most) in
            [(0.6, 10.0, 0.1, 0.6), (3.0, 15.0, 1.0, 4.0), (12.0, 20.0, 3.0, 9.0), (28.0, 60.0, 4.0, 9.0)]
        {
            let here = MachineFacts {
                free_bytes: Some((free_gb * 1e9) as u64),
                total_bytes: None,
                speeds: MeasuredSpeeds {
                    formats: [("Q4_K".to_owned(), gb_s * 1e9)].into(),
                    ..MeasuredSpeeds::default()
                },
                gpu: None,
            };
            let of = |facts| {
                let asked = LoadDefaults { context: 4096, ..LoadDefaults::default() };
                estimate(&published(facts), EstimateBasis::About, &here, &asked, None)
            };
            let all = facts().unwrap().iter().map(|(id, facts)| (id.as_str(), facts, of(facts)));
            let (id, fit) = best(all).unwrap();
            let billions = facts().unwrap()[id].parameters.unwrap() as f64 / 1e9;
            assert!((least..=most).contains(&billions), "{free_gb} GB, {gb_s} GB/s: {id}: {}", fit.reason);
            assert_eq!(fit.verdict, FitVerdict::RunsWell, "{}", fit.reason);
            assert!(facts().unwrap()[id].bytes <= MAX_FIRST_BYTES, "{id}");
            assert!(fit.tok_s.is_some_and(|speed| speed >= MIN_FIRST_TOK_S), "{id}: {}", fit.reason);
        }
        assert!(best([]).is_none());
    }

    /// A computer with 24 GB whose speed with the usual format was just measured.
    fn measured(free_gb: f64, gb_s: f64) -> MachineFacts {
        let formats = [(PUBLISHED_FORMAT.to_owned(), gb_s * 1e9)].into();
        MachineFacts {
            free_bytes: Some((free_gb * 1e9) as u64),
            total_bytes: Some(24_000_000_000),
            speeds: MeasuredSpeeds { formats, ..MeasuredSpeeds::default() },
            gpu: None,
        }
    }

    /// What a start suggests. `kept`: what was measured while no other program computed.
    fn suggested(here: MachineFacts, kept: &MeasuredSpeeds, n_cores: usize) -> Vec<(ChoiceKind, String)> {
        let here = steady(here, kept, n_cores);
        let asked = LoadDefaults { context: 4096, ..LoadDefaults::default() };
        let fit = |facts: &FitFacts| estimate(&published(facts), EstimateBasis::About, &here, &asked, None);
        let offer = |(id, facts): (&String, &FitFacts)| OfferFit {
            id: id.clone(),
            facts: facts.clone(),
            fit: fit(facts),
        };
        let offers: Vec<OfferFit> = facts().unwrap().iter().map(offer).collect();
        choices(&offers).into_iter().map(|(kind, n)| (kind, offers[n].id.clone())).collect()
    }

    #[test]
    fn twenty_starts_suggest_the_same() {
        // The first ten beside two computing programs: little memory, slow measurements, and none of them is kept.
        let mut kept = MeasuredSpeeds::default();
        let mut all = Vec::new();
        for start in 0..20_u32 {
            let is_busy = start < 10;
            let noise = f64::from(start * 7 % 10) / 10.0;
            let here = match is_busy {
                true => measured(2.0 + noise, 3.0 + 9.0 * noise),
                false => measured(20.0 + noise, 16.0 + 4.0 * noise),
            };
            if !is_busy {
                kept = here.speeds.clone();
            }
            all.push(suggested(here, &kept, 2));
        }
        let kinds: Vec<ChoiceKind> = all[0].iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [ChoiceKind::Fast, ChoiceKind::Balanced, ChoiceKind::Best], "{:?}", all[0]);
        assert!(all.iter().all(|it| *it == all[0]), "{all:?}");
    }

    #[test]
    fn a_slower_measurement_counts_and_a_faster_one_does_not() {
        let balanced = |gb_s: f64, n_cores| {
            let here = measured(20.0, gb_s);
            let kept = here.speeds.clone();
            let all = suggested(here, &kept, n_cores);
            let id = all.into_iter().find(|(kind, _)| *kind == ChoiceKind::Balanced).expect("one").1;
            facts().unwrap()[&id].bytes
        };
        assert!(balanced(4.0, 4) < balanced(24.0, 4));
        assert_eq!(balanced(60.0, 4), balanced(24.0, 4));
        assert!(balanced(60.0, 1) < balanced(60.0, 4));
    }
}

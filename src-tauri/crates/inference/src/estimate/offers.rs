//! Published figures of the catalogue's offers, and which offer suits this computer best.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use contract::types::{FitFacts, FitVerdict, ModelFit};
use contract::{Error, Result};

const SOURCE: &str = include_str!("../../../../../models/sizes.toml");

/// Share of free memory that a recommended model leaves to other programs.
const COMFORT: (u64, u64) = (7, 10);

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

/// Of those that run well and leave room to others the one with most parameters, since more know more; else of those
/// that fit the fastest. None: nothing fits.
pub fn best<'a>(
    offers: impl IntoIterator<Item = (&'a str, &'a FitFacts, ModelFit)>,
) -> Option<(&'a str, ModelFit)> {
    let rank = |facts: &FitFacts, fit: &ModelFit| {
        let is_comfortable =
            fit.free_bytes.is_none_or(|free| fit.needs.total <= free / COMFORT.1 * COMFORT.0);
        match fit.verdict {
            FitVerdict::RunsWell if is_comfortable => Some((true, facts.parameters.unwrap_or(0) as f64)),
            FitVerdict::RunsWell | FitVerdict::Slow => Some((false, fit.tok_s.unwrap_or(0.0))),
            FitVerdict::WontFit => None,
        }
    };
    let ranked = offers.into_iter().filter_map(|(id, facts, fit)| Some((rank(facts, &fit)?, id, fit)));
    let best = ranked.max_by(|(a, ..), (b, ..)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    best.map(|(_, id, fit)| (id, fit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{EstimateBasis, LoadDefaults, MachineFacts, MeasuredSpeeds, estimate, published};

    #[test]
    fn a_machine_gets_the_most_that_it_runs_well() {
        // billions of parameters
        for (free_gb, gb_s, least, most) in
            [(0.6, 10.0, 0.1, 0.6), (3.0, 15.0, 1.0, 4.0), (12.0, 20.0, 3.0, 9.0), (28.0, 60.0, 18.0, 36.0)]
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
                estimate(&published(facts), EstimateBasis::About, &here, asked, None)
            };
            let all = facts().unwrap().iter().map(|(id, facts)| (id.as_str(), facts, of(facts)));
            let (id, fit) = best(all).unwrap();
            let billions = facts().unwrap()[id].parameters.unwrap() as f64 / 1e9;
            assert!((least..=most).contains(&billions), "{free_gb} GB, {gb_s} GB/s: {id}: {}", fit.reason);
            assert_eq!(fit.verdict, FitVerdict::RunsWell, "{}", fit.reason);
        }
        assert!(best([]).is_none());
    }
}

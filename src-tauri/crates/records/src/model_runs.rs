//! Runs of models: the best one of each is kept beside its estimate, so that later estimates learn from it.

use contract::protocol::RunFacts;
use contract::types::FitMeasured;
use session::ModelRunRow;

/// Runs of fewer tokens say little about speed.
const MIN_TOKENS: u32 = 16;

/// What was estimated for a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunEstimate {
    /// None: this computer's speed is unmeasured.
    pub tok_s: Option<f64>,
    /// Memory of the model with that conversation.
    pub bytes: u64,
}

/// Whether a run is long enough to say something about speed.
pub fn is_telling(ran: &RunFacts) -> bool {
    ran.generated >= MIN_TOKENS && ran.tok_s > 0.0
}

/// The row to keep after a run. `before`: the one that is kept now; `kv`: the precision's name. None: the run says
/// nothing new.
pub fn better_run(
    before: Option<ModelRunRow>,
    ran: &RunFacts,
    (kv, at_ms): (String, i64),
    estimate: impl FnOnce() -> RunEstimate,
) -> Option<ModelRunRow> {
    let is_better = before.as_ref().is_none_or(|before| ran.tok_s > before.tok_s);
    let is_first_memory =
        ran.memory_bytes.is_some() && before.as_ref().is_none_or(|it| it.memory_bytes.is_none());
    if !is_better && !is_first_memory {
        return None;
    }
    let estimate = estimate();
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let mut row =
        before.unwrap_or_else(|| ModelRunRow { model: ran.model.clone(), kv, ..ModelRunRow::default() });
    row.at_ms = at_ms;
    if is_better {
        row.tok_s = ran.tok_s;
        row.foretold_tok_s = estimate.tok_s;
    }
    if is_first_memory || row.memory_bytes.is_none() {
        row.memory_bytes = ran.memory_bytes.map(signed);
        row.foretold_bytes = signed(estimate.bytes);
        row.tokens = ran.tokens;
    }
    Some(row)
}

/// A kept run as it crosses an edge.
pub fn measured(row: ModelRunRow) -> FitMeasured {
    FitMeasured {
        tok_s: row.tok_s,
        estimated_tok_s: row.foretold_tok_s,
        memory_bytes: row.memory_bytes.and_then(|n| u64::try_from(n).ok()),
        estimated_memory_bytes: u64::try_from(row.foretold_bytes).unwrap_or(0),
        tokens: row.tokens,
        at_ms: row.at_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::protocol::Kv;

    #[test]
    fn the_fastest_run_and_the_first_memory_are_kept() {
        let ran = |tok_s: f64, memory_bytes: Option<u64>| RunFacts {
            model: "m".into(),
            kv: Kv::default(),
            generated: 20,
            tokens: 100,
            tok_s,
            memory_bytes,
        };
        let estimate = || RunEstimate { tok_s: Some(9.0), bytes: 50 };
        let after = |before: Option<&ModelRunRow>, ran: &RunFacts| {
            better_run(before.cloned(), ran, ("f16".into(), 7), estimate)
        };
        let first = after(None, &ran(5.0, None)).unwrap();
        assert_eq!((first.model.as_str(), first.tok_s, first.memory_bytes), ("m", 5.0, None));
        assert_eq!(after(Some(&first), &ran(4.0, None)), None, "slower, and no memory");
        let second = after(Some(&first), &ran(4.0, Some(60))).unwrap();
        assert_eq!((second.tok_s, second.memory_bytes, second.foretold_bytes), (5.0, Some(60), 50));
        assert_eq!(after(Some(&second), &ran(4.0, Some(70))), None, "the first memory stays");
        let third = after(Some(&second), &ran(6.0, Some(70))).unwrap();
        assert_eq!((third.tok_s, third.memory_bytes, third.at_ms), (6.0, Some(60), 7));
        let told = measured(third);
        assert_eq!((told.tok_s, told.memory_bytes, told.estimated_memory_bytes), (6.0, Some(60), 50));
        assert!(is_telling(&ran(1.0, None)) && !is_telling(&ran(0.0, None)));
        assert!(!is_telling(&RunFacts { generated: 15, ..ran(1.0, None) }));
    }
}

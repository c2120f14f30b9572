//! Time that no step took, and traces that end.

use io::ManualClock;
use serde_json::Value;

use super::*;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_run_without_steps_is_time_of_nobody() {
    let (clock, mut profile) = (ManualClock::new(0), Profile::default());
    assert!(profile.operations(Phase::Reading).is_empty(), "nothing ran");
    for (phase, n) in [(Phase::Reading, 3), (Phase::Writing, 2), (Phase::Writing, 2)] {
        profile.begin(&clock);
        clock.advance(n * MS);
        profile.end(&clock, "run", phase);
        // between runs
        clock.advance(MS);
    }
    for (phase, n) in [(Phase::Reading, 3), (Phase::Writing, 4)] {
        assert_eq!(profile.total(phase), n * MS);
        let all = profile.operations(phase);
        assert_eq!((all.len(), all[0].op, all[0].sums.time), (1, REST, n * MS));
        assert_eq!(all[0].sums.gb_s(), None);
    }
}

#[test]
fn a_trace_has_an_end_and_says_what_it_left_out() {
    let mut trace = Trace::of(3).since(100 * MS);
    (0..2).for_each(|n| trace.run("reading", (100 + n) * MS, (101 + n) * MS));
    trace = trace.next();
    (0..3).for_each(|_| trace.run("writing", MS, 4 * MS));
    assert_eq!(trace.n_left_out(), 2);
    let json: Value = serde_json::from_str(&trace.to_json()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let runs: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    let told: Vec<_> =
        runs.iter().map(|run| (run["name"].as_str().unwrap(), run["ts"].as_f64().unwrap())).collect();
    // the second clock goes on where the first ended
    assert_eq!(told, [("reading", 0.0), ("reading", 1000.0), ("writing", 3000.0)]);
    assert_eq!(runs[2]["dur"], 3000.0);
    assert_eq!(events.len() - runs.len(), 3, "each line has a name");
}

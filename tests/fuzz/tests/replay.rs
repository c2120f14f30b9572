//! Kept inputs through their targets: the corpus, and every input that once broke an invariant.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fuzz::{FuzzTarget, TARGETS, run};

/// For one input, in a debug build on a slow machine.
const MAX_INPUT_TIME: Duration = Duration::from_secs(5);

fn inputs(folder: &str, target: &FuzzTarget) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target.name);
    let Ok(entries) = fs::read_dir(&path) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn kept_inputs_break_no_invariant() {
    for target in TARGETS {
        let corpus = inputs("corpus", target);
        assert!(!corpus.is_empty(), "{} has no corpus", target.name);
        for path in corpus.into_iter().chain(inputs("regressions", target)) {
            // A process that is ended for its memory says no more than this.
            println!("{}", path.display());
            let began = Instant::now();
            run(target, &fs::read(&path).unwrap());
            assert!(began.elapsed() < MAX_INPUT_TIME, "{}: {:?}", path.display(), began.elapsed());
        }
    }
}

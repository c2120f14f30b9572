//! The machine: less of it than hoped for, and what the system refuses.

use serde_json::{Value, json};
use test_support::{Missing, skip};

use crate::cli::Home;

const RUN: [&str; 8] =
    ["run", "--model", "starter", "--prompt", "How do I add a model?", "--temperature", "0", "--json"];

/// `nook run` with these variables, after what a shell does before it.
fn answer(home: &Home, before: &str, variables: &[(&str, &str)]) -> Value {
    let direct = home.command(&RUN);
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(direct.get_program())
        .args(direct.get_args());
    command.env("INGLENOOK_DATA_DIR", &home.0).envs(variables.iter().copied());
    let output = command.output().expect("a shell runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn f52_a_processor_without_the_usual_instructions_answers_too_and_says_its_level() {
    let home = Home::new();
    let best = answer(&home, "", &[]);
    let plain = answer(&home, "", &[("INGLENOOK_ISA", "portable")]);
    assert_eq!(plain["text"], best["text"]);
    let mut command = home.command(&["devices", "--json"]);
    let output = command.env("INGLENOOK_ISA", "portable").output().expect("nook runs");
    let devices: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(devices.to_string().contains("portable"), "{devices}");
    // One that names what is not there is an error, never an illegal instruction.
    let absent = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
    let mut command = home.command(&RUN);
    let output = command.env("INGLENOOK_ISA", absent).output().expect("nook runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(2..=5)) && said.contains("INGLENOOK_ISA"), "{said}");
}

#[test]
fn f53_memory_that_the_system_does_not_lock_or_enlarge_costs_nothing() {
    if !cfg!(unix) {
        skip!(Missing::Platform, "limits are set by a shell");
    }
    let home = Home::new();
    let expected = answer(&home, "", &[]);
    for (key, value) in [("large_pages", "true"), ("affinity", "true")] {
        home.json(&["settings", "set", key, value]);
    }
    let refused = answer(&home, "ulimit -l 0;", &[]);
    assert_eq!(refused["text"], expected["text"]);
    assert_eq!(refused["finish"], json!("stop"));
}

//! Limits by way of the terminal: exit code 4, and what to do about it.

use std::path::PathBuf;
use std::process::Command;

use inglenook_tests::nook;
use serde_json::Value;

/// A temporary data folder, removed when dropped.
struct LimitsHome(PathBuf);

impl Drop for LimitsHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `nook run` on the starter: its exit code, what it printed, and its error.
fn run(home: &LimitsHome, args: &[&str]) -> (Option<i32>, Value, Value) {
    let mut command = Command::new(nook());
    command.arg("--data-dir").arg(&home.0).args(["run", "--model", "starter", "--json"]);
    let ran = command.args(args).output().unwrap();
    let value = |bytes: &[u8]| {
        // on stderr the log comes before
        let last = bytes.split(|&byte| byte == b'\n').rfind(|line| !line.is_empty());
        serde_json::from_slice(last.unwrap_or_default()).unwrap_or(Value::Null)
    };
    (ran.status.code(), value(&ran.stdout), value(&ran.stderr)["error"].clone())
}

#[test]
fn memory_and_presets_hold_in_the_terminal() {
    let home = LimitsHome(std::env::temp_dir().join(format!("inglenook-limits-{}", std::process::id())));
    let long = "many words ".repeat(1000);
    for (args, code) in [
        (&["--memory", "2M", "--prompt", "Hello"][..], "model.memory"),
        (&["--memory", "1", "--ctx", "64", "--prompt", "Hello"], "model.memory"),
        (&["--preset", "bounded", "--prompt", &long], "limit.characters"),
    ] {
        let (exit, _, error) = run(&home, args);
        assert_eq!((exit, error["code"].as_str()), (Some(4), Some(code)), "{args:?}: {error}");
        assert!(
            error["remedy"]
                .as_str()
                .is_some_and(|remedy| remedy.contains("MiB") || remedy.contains("settings"))
        );
    }
    let (exit, answer, error) = run(&home, &["--memory", "12M", "--ctx", "512", "--prompt", "Hello"]);
    assert_eq!(exit, Some(0), "{error}");
    assert_eq!(answer["usage"]["context_limit"], 512);
    // A draft model takes its part of it.
    let drafting = |most| {
        run(&home, &["--memory", most, "--ctx", "512", "--draft-model", "starter", "--prompt", "Hello"])
    };
    let (exit, _, error) = drafting("12M");
    assert_eq!((exit, error["code"].as_str()), (Some(4), Some("model.memory")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("The draft model takes another"), "{error}");
    let (exit, answer, error) = drafting("30M");
    assert_eq!(exit, Some(0), "{error}");
    assert_eq!(answer["usage"]["context_limit"], 512);
    let (exit, answer, error) =
        run(&home, &["--preset", "bounded", "--prompt", "Hello", "--ignore-eos", "--max-tokens", "9999"]);
    assert_eq!(exit, Some(0), "{error}");
    assert_eq!(answer["usage"]["completion_tokens"], 512);
}

//! The library by way of the terminal: other programs' folders, import, undo, fit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use inglenook_tests::nook;
use serde_json::Value;

/// A temporary home folder, removed when dropped.
struct LibraryHome(PathBuf);

impl Drop for LibraryHome {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `nook models …`: its exit code, what it printed, and its error.
fn models(home: &Path, args: &[&str]) -> (Option<i32>, Value, Value) {
    let mut command = Command::new(nook());
    command.env_clear().env("HOME", home).env("HF_HOME", home.join("hf"));
    let ran = command.arg("--data-dir").arg(home.join("data")).args(["--json", "models"]).args(args);
    let ran = ran.output().unwrap();
    let value = |bytes: &[u8]| {
        // on stderr the log comes before
        let last = bytes.split(|&byte| byte == b'\n').rfind(|line| !line.is_empty());
        serde_json::from_slice(last.unwrap_or_default()).unwrap_or(Value::Null)
    };
    (ran.status.code(), value(&ran.stdout), value(&ran.stderr)["error"].clone())
}

#[test]
fn other_programs_models_are_listed_imported_and_had_back() {
    let home = LibraryHome(std::env::temp_dir().join(format!("inglenook-models-{}", std::process::id())));
    let put = |path: &str| {
        let path = home.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, inference::starter::bytes()).unwrap();
        path
    };
    put("hf/hub/models--org--name/snapshots/abc/theirs.gguf");
    let (exit, list, error) = models(&home.0, &["list"]);
    assert_eq!(exit, Some(0), "{error}");
    let ids = |list: &Value| -> Vec<String> {
        list["models"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&list), ["starter", "theirs"]);
    assert_eq!(list["models"][1]["source"], "hub_cache");
    assert_eq!(list["models"][1]["fit"]["verdict"], "runs_well", "{list}");

    let file = put("elsewhere/mine.gguf");
    let (exit, entry, error) = models(&home.0, &["import", file.to_str().unwrap(), "--move"]);
    assert_eq!((exit, entry["source"].as_str()), (Some(0), Some("owned")), "{error}");
    let path = PathBuf::from(entry["path"].as_str().unwrap());
    assert!(path.exists() && !file.exists());
    let (_, removed, _) = models(&home.0, &["rm", "mine"]);
    assert!(removed["disk_bytes"].as_u64().is_some_and(|n| n > 0) && !path.exists(), "{removed}");
    assert_eq!(models(&home.0, &["undo", "mine"]).0, Some(0));
    assert!(path.exists());

    let (exit, fit, error) = models(&home.0, &["fit", "mine"]);
    assert_eq!((exit, fit["exact"].as_bool()), (Some(0), Some(true)), "{error}");
    assert_eq!(models(&home.0, &["fit", "llama-3.1-70b"]).1["exact"], false);
    let (exit, _, error) = models(&home.0, &["fit", "nothing"]);
    assert_eq!((exit, error["code"].as_str()), (Some(3), Some("model.unknown")));
    assert_eq!(models(&home.0, &["rm", "starter"]).2["code"], "model.built_in");
}

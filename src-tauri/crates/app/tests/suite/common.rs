//! A test's temporary data folder.
#![allow(clippy::unwrap_used, dead_code)] // shared by tests that each use a part of it

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use app::App;
use app::AppConfig;
use contract::types::RegenerateArgs;
use serde_json::{Value, json};

/// Folders made so far: tests of different modules may choose the same name.
static FOLDERS: AtomicUsize = AtomicUsize::new(0);

/// A folder that is removed at the end.
pub struct Home(pub PathBuf);

impl Home {
    pub fn new(name: &str) -> Self {
        let n = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("inglenook-api-{name}-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    /// Short answers that are the same each time.
    pub fn open(&self) -> App {
        self.open_as(&[("max_tokens", json!(24))])
    }

    /// The same, with these settings.
    pub fn open_as(&self, settings: &[(&str, Value)]) -> App {
        let app = App::open(AppConfig { data_dir: Some(self.0.clone()), ..AppConfig::default() }).unwrap();
        // The built-in model itself is what answers here.
        let always = [("temperature", json!(0)), ("threads", json!(1)), ("guide_answers", json!(false))];
        for (key, value) in always.iter().chain(settings) {
            app.settings_set(key, value).unwrap();
        }
        app
    }
}

/// Another version of an answer, and nothing else.
pub fn again(message: &str) -> RegenerateArgs {
    RegenerateArgs { message: message.into(), ..RegenerateArgs::default() }
}

/// Files below `folder` that have `needle` in them. One that goes meanwhile, as a database's log does, has nothing.
pub fn found_in(folder: &Path, needle: &[u8]) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        entries => entries.unwrap(),
    };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(found_in(&path, needle));
            continue;
        }
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            bytes => bytes.unwrap(),
        };
        if bytes.windows(needle.len()).any(|at| at == needle) {
            found.push(path);
        }
    }
    found
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

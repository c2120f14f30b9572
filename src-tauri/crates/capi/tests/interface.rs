//! The interface as C programs see it: the committed header is current, and two programs compiled against it run under
//! the address sanitizer.
#![allow(clippy::unwrap_used)] // a test

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use test_support::{Missing, skip};

fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_current() {
    let config = cbindgen::Config::from_file(manifest_dir().join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::generate_with_config(manifest_dir(), config).unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    let path = manifest_dir().join("include/inglenook.h");
    if std::env::var_os("INGLENOOK_UPDATE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read(&path).unwrap_or_default();
    assert!(made == committed, "run INGLENOOK_UPDATE_HEADER=1 cargo test -p capi --test interface header");
}

/// Removed at the end.
struct CHome(PathBuf);

impl CHome {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inglenook-capi-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Compiles a program against the library that cargo built for this test.
    fn compile(&self, source: &str) -> PathBuf {
        let test = std::env::current_exe().unwrap();
        let libraries = test.parent().unwrap();
        let program = self.0.join("program");
        let compiled = Command::new("gcc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined", "-I"])
            .arg(manifest_dir().join("include"))
            .arg(manifest_dir().join(source))
            .arg("-L")
            .arg(libraries)
            .arg(format!("-Wl,-rpath,{}", libraries.display()))
            .args(["-linglenook", "-lm", "-o"])
            .arg(&program)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        program
    }
}

impl Drop for CHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn has_gcc() -> bool {
    cfg!(target_os = "linux") && Command::new("gcc").arg("--version").output().is_ok()
}

fn assert_clean(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_clean =
        output.status.success() && !errors.contains("Sanitizer") && !errors.contains("runtime error");
    assert!(is_clean, "{}: {errors}", output.status);
}

#[test]
fn every_call_is_right_from_c() {
    if !has_gcc() {
        skip!(Missing::Program, "no gcc");
    }
    let home = CHome::new("calls");
    let program = home.compile("tests/c/every_call.c");
    let embeddings = manifest_dir().join("../../../tests/reference/embeddings/bert.gguf");
    let output = Command::new(program)
        .arg(home.0.join("data"))
        .arg(home.0.join("session.json"))
        .arg(embeddings)
        .output()
        .unwrap();
    assert_clean(&output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "every call is right\n");
}

#[test]
fn the_example_chats() {
    if !has_gcc() {
        skip!(Missing::Program, "no gcc");
    }
    let home = CHome::new("example");
    let program = home.compile("examples/chat.c");
    let mut child = Command::new(program)
        .arg(home.0.join("data"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"What is a token?\nAnd a sampler?\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_clean(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().filter(|line| !line.trim().is_empty()).count() >= 2, "{text}");
}

//! Shared by the integration tests: paths of the project, of the reference data and of the built programs.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use test_support::Missing;

/// The folder that holds the workspace's `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("tests/ lies in the workspace").to_path_buf()
}

/// The conformance data: `INGLENOOK_REFERENCE`, else `../shared/reference` beside the checkout, else the
/// project's own small set in `tests/reference`, which counts as skipped in part.
pub fn reference_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(find_reference).clone()
}

/// True if only the project's own small set is there.
pub fn reference_is_small() -> bool {
    reference_dir() == small_reference()
}

fn small_reference() -> PathBuf {
    workspace_root().join("tests/reference")
}

fn find_reference() -> PathBuf {
    if let Some(named) = std::env::var_os("INGLENOOK_REFERENCE") {
        let dir = PathBuf::from(named);
        assert!(dir.is_dir(), "INGLENOOK_REFERENCE={} is not a folder", dir.display());
        return dir;
    }
    let beside = workspace_root().join("../shared/reference");
    if let Ok(dir) = beside.canonicalize() {
        return dir;
    }
    let reason = format_args!("no conformance data at {}: the small set is checked", beside.display());
    test_support::report_part("all that needs INGLENOOK_REFERENCE", Missing::Reference, reason);
    small_reference()
}

/// The `nook` program: `INGLENOOK_NOOK`, else built now in the test profile.
pub fn nook() -> PathBuf {
    static BIN: OnceLock<PathBuf> = OnceLock::new();
    BIN.get_or_init(find_nook).clone()
}

fn find_nook() -> PathBuf {
    if let Some(named) = std::env::var_os("INGLENOOK_NOOK") {
        let bin = workspace_root().join(named);
        assert!(bin.is_file(), "INGLENOOK_NOOK={} is not a program", bin.display());
        return bin;
    }
    // Of the whole workspace: cargo picks the features of dependencies for what is built together, and another choice
    // would build them all once more.
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--workspace", "--bin", "nook"])
        .current_dir(workspace_root())
        .status()
        .expect("cargo runs: it built this test");
    assert!(status.success(), "nook does not build");
    // target/debug/deps/all-… → target/debug/nook
    let test = std::env::current_exe().expect("the test knows its own path");
    let dir = test.parent().and_then(Path::parent).expect("the test lies in target/PROFILE/deps");
    dir.join(format!("nook{}", std::env::consts::EXE_SUFFIX))
}

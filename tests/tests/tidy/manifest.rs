//! Which way imports point, and who may name which dependency.

use super::source::SourceFile;
use super::{Offence, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        name: "imports point down",
        check: imports,
        offends: &[
            ("src-tauri/crates/kernels/Cargo.toml", "[dependencies]\nengine.workspace = true\n"),
            ("src-tauri/crates/engine/Cargo.toml", "[dependencies]\nsession = { workspace = true }\n"),
            ("src-tauri/crates/io/Cargo.toml", "[dev-dependencies]\nweights.workspace = true\n"),
            ("src-tauri/Cargo.toml", "[dependencies]\nengine.workspace = true\n"),
            ("src-tauri/crates/attic/Cargo.toml", "[dependencies]\nio.workspace = true\n"),
        ],
        passes: &[
            (
                "src-tauri/crates/engine/Cargo.toml",
                "[dependencies]\nkernels.workspace = true\nserde.workspace = true\n",
            ),
            ("src-tauri/Cargo.toml", "[dependencies]\napp.workspace = true\n"),
            ("tests/Cargo.toml", "[dependencies]\nengine.workspace = true\n"),
        ],
    },
    Rule {
        name: "a dependency lives in its room",
        check: rooms,
        offends: &[
            ("src-tauri/crates/engine/Cargo.toml", "[dependencies]\ntokio.workspace = true\n"),
            ("src-tauri/crates/app/Cargo.toml", "[dependencies]\nrusqlite.workspace = true\n"),
            ("src-tauri/crates/server/Cargo.toml", "[dependencies]\ntauri.workspace = true\n"),
            ("src-tauri/crates/engine/Cargo.toml", "[dependencies]\nwgpu = { workspace = true }\n"),
            (
                "src-tauri/crates/session/Cargo.toml",
                "[target.'cfg(unix)'.dependencies]\nreqwest.workspace = true\n",
            ),
        ],
        passes: &[
            ("src-tauri/crates/session/Cargo.toml", "[dependencies]\nrusqlite.workspace = true\n"),
            ("src-tauri/crates/server/Cargo.toml", "[dependencies]\ntokio.workspace = true\n"),
        ],
    },
    Rule {
        name: "every version stands once, in the workspace",
        check: versions,
        offends: &[
            ("src-tauri/crates/io/Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
            ("src-tauri/crates/io/Cargo.toml", "[dependencies]\nserde = { version = \"1\" }\n"),
            ("src-tauri/crates/io/Cargo.toml", "[package]\nname = \"io\"\n[dependencies]\n"),
        ],
        passes: &[
            (
                "src-tauri/crates/io/Cargo.toml",
                "[package]\nname = \"io\"\n[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n",
            ),
            ("tests/peers/Cargo.toml", "[workspace]\n[package]\nname = \"p\"\n[dependencies]\nx = \"1\"\n"),
        ],
    },
];

/// Crate → our crates that it may name.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("io", &[]),
    ("tls", &[]),
    ("weights", &["io"]),
    ("kernels", &["io", "weights"]),
    ("vision", &[]),
    ("jinja", &[]),
    ("constraint", &[]),
    ("engine", &["io", "weights", "kernels", "vision", "jinja", "constraint"]),
    ("session", &["io"]),
    ("hub", &["io", "weights", "tls"]),
    ("contract", &["io"]),
    ("platform", &["io", "contract"]),
    ("desktop", &["io", "hub", "contract", "platform"]),
    ("model-dirs", &["io", "contract", "weights"]),
    ("net", &["contract"]),
    ("secrets", &["io", "contract"]),
    ("audit", &["io", "contract"]),
    ("documents", &["contract"]),
    ("pdf-pages", &["vision", "documents"]),
    ("api-keys", &["io", "contract", "documents"]),
    ("api-store", &["io", "contract", "documents"]),
    ("compaction", &["contract"]),
    ("prompt", &["io", "vision", "engine", "contract", "documents", "compaction", "weights"]),
    (
        "inference",
        &[
            "io",
            "weights",
            "kernels",
            "vision",
            "engine",
            "contract",
            "platform",
            "documents",
            "pdf-pages",
            "compaction",
            "prompt",
        ],
    ),
    (
        "remote",
        &["io", "tls", "hub", "contract", "documents", "platform", "net", "secrets", "compaction", "prompt"],
    ),
    ("updates", &["io", "contract", "platform", "net"]),
    ("mcp", &["io", "tls", "contract", "documents", "platform", "net", "secrets"]),
    ("interchange", &["io", "session", "contract", "platform", "documents", "prompt", "file-search"]),
    ("file-search", &["vision", "contract", "documents", "prompt", "session"]),
    ("records", &["contract", "engine", "file-search", "hub", "mcp", "prompt", "secrets", "session"]),
    ("guide", &["contract"]),
    (
        "app",
        &[
            "io",
            "weights",
            "kernels",
            "vision",
            "engine",
            "session",
            "audit",
            "api-keys",
            "api-store",
            "hub",
            "contract",
            "platform",
            "net",
            "secrets",
            "documents",
            "compaction",
            "prompt",
            "inference",
            "remote",
            "mcp",
            "model-dirs",
            "interchange",
            "updates",
            "file-search",
            "records",
            "guide",
        ],
    ),
    ("server", &["io", "contract", "platform", "prompt", "documents", "api-store", "app"]),
    ("capi", &["weights", "engine", "contract", "inference", "app"]),
    ("mcp-server", &["io", "contract", "platform", "app", "server"]),
    (
        "cli",
        &[
            "io",
            "weights",
            "kernels",
            "engine",
            "contract",
            "platform",
            "documents",
            "pdf-pages",
            "compaction",
            "prompt",
            "inference",
            "guide",
            "api-store",
            "app",
            "server",
            "mcp-server",
            "vision",
        ],
    ),
    ("shell", &["io", "tls", "contract", "desktop", "platform", "inference", "app", "server"]),
];

/// Dependency → crates that may name it.
const ROOMS: &[(&str, &[&str])] = &[
    ("tokio", &["hub", "remote", "mcp", "app", "server", "mcp-server", "cli", "shell"]),
    ("axum", &["server", "mcp-server"]),
    ("reqwest", &["hub", "remote", "mcp", "shell"]),
    ("rmcp", &["mcp-server"]),
    ("tauri", &["shell"]),
    ("tauri-build", &["shell"]),
    ("tauri-plugin-updater", &["shell"]),
    ("rfd", &["shell"]),
    ("wgpu", &["kernels"]),
    ("rusqlite", &["session"]),
    ("clap", &["cli"]),
    ("memmap2", &["weights"]),
    ("tokenizers", &["engine"]),
    ("directories", &["platform"]),
    ("keyring-core", &["secrets"]),
];

/// Crates that the lists above name.
pub fn listed() -> Vec<(&'static str, &'static str)> {
    let importers = MAY_IMPORT.iter().map(|(name, _)| ("MAY_IMPORT", *name));
    let imported = MAY_IMPORT.iter().flat_map(|(_, may)| may.iter().map(|name| ("MAY_IMPORT", *name)));
    let users = ROOMS.iter().flat_map(|(_, crates)| crates.iter().map(|name| ("ROOMS", *name)));
    importers.chain(imported).chain(users).collect()
}

struct Dependency {
    line: usize,
    name: String,
    /// What follows the name.
    rest: String,
}

fn imports(source: &SourceFile) -> Vec<Offence> {
    let Some(own) = crate_manifest(source) else { return Vec::new() };
    if own == "tests" {
        return Vec::new();
    }
    let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == own) else {
        return vec![Offence::new(1, format!("crate {own} has no row in MAY_IMPORT"))];
    };
    let ours = |name: &str| MAY_IMPORT.iter().any(|(n, _)| *n == name);
    dependencies(&source.text)
        .into_iter()
        .filter(|d| ours(&d.name) && !allowed.contains(&d.name.as_str()))
        .map(|d| Offence::new(d.line, format!("{own} must not know {}", d.name)))
        .collect()
}

fn rooms(source: &SourceFile) -> Vec<Offence> {
    let Some(own) = crate_manifest(source) else { return Vec::new() };
    let stray = |d: &Dependency| {
        ROOMS.iter().any(|(name, rooms)| *name == d.name && own != "tests" && !rooms.contains(&own))
    };
    let found = dependencies(&source.text).into_iter().filter(stray);
    found.map(|d| Offence::new(d.line, format!("{} has no business in {own}", d.name))).collect()
}

fn versions(source: &SourceFile) -> Vec<Offence> {
    if crate_manifest(source).is_none() {
        return Vec::new();
    }
    let taken = |rest: &str| rest.replace(' ', "").contains("workspace=true");
    let mut found: Vec<Offence> = dependencies(&source.text)
        .into_iter()
        .filter(|d| !taken(&d.rest))
        .map(|d| Offence::new(d.line, format!("{}: take it from the workspace", d.name)))
        .collect();
    if source.text.contains("[package]") && !source.text.contains("[lints]\nworkspace = true") {
        found.push(Offence::new(1, "without the workspace's lints"));
    }
    found
}

/// The crate whose manifest this is. A workspace's own manifest is where versions stand.
fn crate_manifest(source: &SourceFile) -> Option<&str> {
    let of_a_crate = source.path.ends_with("Cargo.toml") && !source.text.contains("[workspace]\n");
    if of_a_crate { source.crate_name() } else { None }
}

/// Every dependency of every kind that a manifest names.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut inside = false;
    let mut found = Vec::new();
    for (i, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.trim_matches(['[', ']']).ends_with("dependencies");
            continue;
        }
        let end = line.find(['.', '=', ' ']).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        if inside && !name.is_empty() && !name.starts_with('#') {
            found.push(Dependency { line: i + 1, name: name.to_string(), rest: rest.to_string() });
        }
    }
    found
}

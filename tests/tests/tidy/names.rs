//! Names that must not be spoken in a room.

use super::lexer::Kind;
use super::source::SourceFile;
use super::{Offence, Rule};

/// No async, no network, no window, no globals, no clock or path that wasn't handed in.
const PURE: &[&str] = &["weights", "kernels", "jinja", "vision", "engine", "session"];

/// Reads an environment variable that forces an instruction-set level; detected once.
const ISA: &[&str] = &["src-tauri/crates/kernels/src/cpu/isa.rs"];
const IO: &str = "src-tauri/crates/io/";

pub const RULES: &[Rule] = &[
    Rule {
        name: "no async and no network in the pure crates",
        check: |s| if s.in_crates(PURE) || s.within(&[IO]) { speaks(s, NETWORK) } else { Vec::new() },
        offends: &[
            ("src-tauri/crates/engine/src/a.rs", "async fn f() {}"),
            ("src-tauri/crates/session/src/a.rs", "use std::net::TcpStream;"),
            ("src-tauri/crates/kernels/src/a.rs", "fn f() { tokio::spawn(g()); }"),
        ],
        passes: &[
            ("src-tauri/crates/server/src/a.rs", "async fn f() {}"),
            ("src-tauri/crates/engine/src/a.rs", "//! not async\nfn f() { \"tokio::\"; }"),
        ],
    },
    Rule {
        name: "a library is named in its room only",
        check: libraries,
        offends: &[
            ("src-tauri/crates/kernels/src/plan.rs", "use wgpu::Device;"),
            ("src-tauri/crates/app/src/a.rs", "fn f(e: rusqlite::Error) {}"),
            ("src-tauri/crates/server/src/a.rs", "use tauri::State;"),
        ],
        passes: &[
            ("src-tauri/crates/kernels/src/gpu/device.rs", "use wgpu::Device;"),
            ("src-tauri/crates/session/src/a.rs", "use rusqlite::Row;"),
            ("src-tauri/src/commands.rs", "use tauri::State;"),
        ],
    },
    Rule {
        name: "clocks come through io",
        check: |s| if s.within(&[IO]) { Vec::new() } else { speaks(s, CLOCKS) },
        offends: &[
            ("src-tauri/crates/engine/src/a.rs", "fn f() { std::time::Instant::now(); }"),
            ("src-tauri/crates/app/src/a.rs", "use std::time::{Duration, SystemTime};"),
        ],
        passes: &[
            ("src-tauri/crates/io/src/clock.rs", "use std::time::Instant;"),
            ("src-tauri/crates/app/src/a.rs", "use std::time::Duration;"),
            ("src-tauri/crates/app/src/a.rs", "#[cfg(test)] mod tests { use std::time::Instant; }"),
        ],
    },
    Rule {
        name: "files are written through io",
        check: |s| if s.within(&[IO]) { Vec::new() } else { speaks(s, WRITES) },
        offends: &[
            ("src-tauri/crates/app/src/a.rs", "fn f() { std::fs::write(p, b); }"),
            ("src-tauri/crates/session/src/a.rs", "fn f() { File::create(p); }"),
            ("src-tauri/crates/session/src/a.rs", "fn f() { fs::rename(a, b); }"),
        ],
        passes: &[
            ("src-tauri/crates/io/src/real.rs", "fn f() { std::fs::write(p, b); }"),
            ("src-tauri/crates/weights/src/mmap.rs", "fn f() { File::open(p); }"),
        ],
    },
    Rule {
        name: "the environment is read at the edges",
        check: |s| if s.in_crates(ENV_FREE) && !s.within(ISA) { speaks(s, ENV) } else { Vec::new() },
        offends: &[
            ("src-tauri/crates/engine/src/a.rs", "fn f() { std::env::var(\"X\"); }"),
            ("src-tauri/crates/app/src/a.rs", "use std::env;"),
        ],
        passes: &[
            ("src-tauri/crates/cli/src/main.rs", "fn f() { std::env::var(\"X\"); }"),
            ("src-tauri/crates/kernels/src/cpu/isa.rs", "fn f() { std::env::var(\"INGLENOOK_ISA\"); }"),
            ("src-tauri/crates/app/src/a.rs", "const V: &str = env!(\"CARGO_PKG_VERSION\");"),
        ],
    },
    Rule {
        name: "no globals in the pure crates",
        check: globals,
        offends: &[
            ("src-tauri/crates/engine/src/a.rs", "static CACHE: Mutex<Vec<u8>> = Mutex::new(Vec::new());"),
            ("src-tauri/crates/kernels/src/a.rs", "static N: std::sync::atomic::AtomicUsize = x();"),
            ("src-tauri/crates/kernels/src/a.rs", "static mut N: usize = 0;"),
            ("src-tauri/crates/session/src/a.rs", "thread_local! { static X: Cell<u8> = Cell::new(0); }"),
        ],
        passes: &[
            ("src-tauri/crates/engine/src/a.rs", "pub static TABLE: &[Row] = &[Row { n: 1 }];"),
            ("src-tauri/crates/engine/src/a.rs", "struct S { lock: Mutex<u8> } fn f(x: &'static str) {}"),
            ("src-tauri/crates/kernels/src/cpu/isa.rs", "static LEVEL: OnceLock<Level> = OnceLock::new();"),
        ],
    },
    Rule {
        name: "architectures are compared in engine/src/arch only",
        check: architectures,
        offends: &[
            ("src-tauri/crates/engine/src/decoder.rs", "fn f() { if arch == \"llama\" {} }"),
            (
                "src-tauri/crates/app/src/a.rs",
                "fn f() { match arch { \"gemma3\" | \"qwen2\" => 1, _ => 0 } }",
            ),
            ("src-tauri/crates/cli/src/a.rs", "fn f() { matches!(arch, \"smollm3\") }"),
        ],
        passes: &[
            ("src-tauri/crates/engine/src/arch/llama.rs", "fn f() { arch == \"llama\" }"),
            (
                "src-tauri/crates/engine/src/tokenizer/gguf.rs",
                "fn f() { match m { \"llama\" => 1, _ => 0 } }",
            ),
            ("src-tauri/crates/cli/src/bench.rs", "const NAME: &str = \"llama\";"),
        ],
    },
    Rule {
        name: "a weight dtype is matched in its table, its codecs and the matmuls only",
        check: |s| if s.within(DTYPE_ROOMS) { Vec::new() } else { matched(s, "DType") },
        offends: &[
            (
                "src-tauri/crates/engine/src/a.rs",
                "fn f() { match d { DType::F32 => 1, DType::Q8_0 | DType::F16 => 2 } }",
            ),
            ("src-tauri/crates/kernels/src/ops/a.rs", "fn f() { if t.dtype() == DType::F32 {} }"),
            ("src-tauri/crates/app/src/a.rs", "fn f() { matches!(d, weights::DType::Q4_K) }"),
            ("src-tauri/crates/app/src/a.rs", "use weights::DType::*;"),
        ],
        passes: &[
            ("src-tauri/crates/weights/src/dtype.rs", "fn f() { match d { DType::F32 => 1 } }"),
            ("src-tauri/crates/kernels/src/matmul.rs", "fn f() { d == DType::F32 }"),
            ("src-tauri/crates/engine/src/a.rs", "fn f() -> Tensor { Tensor::new(DType::F32, &[1]) }"),
        ],
    },
    Rule {
        name: "a KV dtype is matched by its own ops and the cache only",
        check: |s| if s.within(KV_ROOMS) { Vec::new() } else { matched(s, "KvDType") },
        offends: &[(
            "src-tauri/crates/app/src/a.rs",
            "fn f() { match d { KvDType::F32 => 1, KvDType::F16 => 2 } }",
        )],
        passes: &[
            ("src-tauri/crates/kernels/src/ops/kv_write.rs", "fn f() { match d { KvDType::F32 => 1 } }"),
            ("src-tauri/crates/cli/src/a.rs", "const KV: KvDType = KvDType::F32;"),
        ],
    },
    Rule {
        name: "no Manager, Service, Helper, Util",
        check: vague,
        offends: &[
            ("src-tauri/crates/app/src/a.rs", "pub struct SessionManager;"),
            ("src-tauri/crates/app/src/utils.rs", ""),
        ],
        passes: &[("src-tauri/crates/app/src/a.rs", "pub struct Library { n: usize } // was a Manager")],
    },
];

const NETWORK: &[&[&str]] = &[
    &["async"],
    &["await"],
    &["tokio", "::"],
    &["reqwest", "::"],
    &["std", "::", "net"],
    &["TcpStream"],
    &["TcpListener"],
];
const CLOCKS: &[&[&str]] = &[&["SystemTime"], &["Instant"]];
const WRITES: &[&[&str]] = &[
    &["fs", "::", "write"],
    &["File", "::", "create"],
    &["File", "::", "create_new"],
    &["OpenOptions"],
    &["fs", "::", "rename"],
    &["fs", "::", "copy"],
    &["fs", "::", "remove_file"],
    &["fs", "::", "remove_dir"],
    &["fs", "::", "remove_dir_all"],
    &["fs", "::", "create_dir"],
    &["fs", "::", "create_dir_all"],
];
const ENV: &[&[&str]] = &[
    &["use", "std", "::", "env"],
    &["env", "::", "var"],
    &["env", "::", "var_os"],
    &["env", "::", "current_dir"],
];
const ENV_FREE: &[&str] = &[
    "io",
    "weights",
    "kernels",
    "engine",
    "session",
    "hub",
    "contract",
    "platform",
    "desktop",
    "model-dirs",
    "net",
    "secrets",
    "documents",
    "compaction",
    "prompt",
    "inference",
    "remote",
    "mcp",
    "interchange",
    "app",
    "server",
];
const DTYPE_ROOMS: &[&str] = &[
    "src-tauri/crates/weights/src/dtype.rs",
    "src-tauri/crates/weights/src/quant/",
    "src-tauri/crates/kernels/src/matmul/",
    "src-tauri/crates/kernels/src/matmul.rs",
];
/// The second is where the enum stands: its names and sizes are its own.
const KV_ROOMS: &[&str] = &[
    "src-tauri/crates/kernels/src/ops/",
    "src-tauri/crates/kernels/src/graph/kv_layout.rs",
    "src-tauri/crates/engine/src/kv/",
];
const FAMILIES: &[&str] = &[
    "llama",
    "smollm3",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma4",
    "qwen2",
    "qwen3",
    "qwen3moe",
    "qwen3_moe",
    "gpt-oss",
    "gpt_oss",
    "mistral",
    "ministral3",
    "phi3",
    "lfm2",
    "LlamaForCausalLM",
    "SmolLM3ForCausalLM",
];
/// A tokenizer's kind and pre-tokenizer bear family names too.
const FAMILY_ROOMS: &[&str] =
    &["src-tauri/crates/engine/src/arch/", "src-tauri/crates/engine/src/tokenizer/"];

fn speaks(source: &SourceFile, phrases: &[&[&str]]) -> Vec<Offence> {
    let mut found = Vec::new();
    for (at, token) in source.shipped().filter(|(_, t)| t.kind == Kind::Word) {
        for phrase in phrases.iter().filter(|p| source.reads(at, p)) {
            found.push(Offence::new(token.line, format!("`{}`", phrase.concat())));
        }
    }
    if source.crate_name() == Some("tests") { Vec::new() } else { found }
}

/// Library → where it may be named.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("wgpu", &["src-tauri/crates/kernels/src/gpu.rs", "src-tauri/crates/kernels/src/gpu/"]),
    ("rusqlite", &["src-tauri/crates/session/"]),
    ("tauri", &["src-tauri/src/"]),
    ("tauri_build", &["src-tauri/build.rs"]),
    ("axum", &["src-tauri/crates/server/", "src-tauri/crates/mcp-server/"]),
    ("memmap2", &["src-tauri/crates/weights/"]),
];

/// Crates, files and folders that the lists above name.
pub fn listed() -> Vec<(&'static str, &'static str)> {
    let lists: &[(&str, &[&str])] = &[
        ("PURE", PURE),
        ("ISA", ISA),
        ("ENV_FREE", ENV_FREE),
        ("DTYPE_ROOMS", DTYPE_ROOMS),
        ("KV_ROOMS", KV_ROOMS),
        ("FAMILY_ROOMS", FAMILY_ROOMS),
    ];
    let all = lists.iter().chain(LIBRARIES);
    all.flat_map(|(list, entries)| entries.iter().map(|entry| (*list, *entry))).collect()
}

fn libraries(source: &SourceFile) -> Vec<Offence> {
    let named = |name: &str| speaks(source, &[&[name, "::"], &["use", name, ";"]]);
    LIBRARIES.iter().filter(|(_, places)| !source.within(places)).flat_map(|(name, _)| named(name)).collect()
}

fn globals(source: &SourceFile) -> Vec<Offence> {
    if !source.in_crates(PURE) || source.within(ISA) {
        return Vec::new();
    }
    let mut found = speaks(source, &[&["static", "mut"], &["thread_local"], &["lazy_static"]]);
    for (at, token) in source.shipped().filter(|(_, t)| t.kind == Kind::Word && t.text == "static") {
        let kind = source.tokens[at..].iter().take_while(|t| t.text != "=" && t.text != ";");
        let inner = |t: &str| {
            t.starts_with("Atomic")
                || t.ends_with("Cell")
                || ["Mutex", "RwLock", "OnceLock", "LazyLock"].contains(&t)
        };
        if source.text_at(at + 2) == ":" && kind.into_iter().any(|t| inner(&t.text)) {
            found.push(Offence::new(token.line, "a global that changes"));
        }
    }
    found
}

fn architectures(source: &SourceFile) -> Vec<Offence> {
    if source.within(FAMILY_ROOMS) || !source.path.starts_with("src-tauri/") {
        return Vec::new();
    }
    let text =
        |t: &(usize, &super::lexer::Token)| t.1.kind == Kind::Text && FAMILIES.contains(&t.1.text.as_str());
    source
        .shipped()
        .filter(text)
        .filter(|(at, _)| compared(source, *at, *at))
        .map(|(_, t)| Offence::new(t.line, format!("compares with \"{}\"", t.text)))
        .collect()
}

/// `Type::Variant` in a pattern or a comparison, or the variants imported bare.
fn matched(source: &SourceFile, name: &str) -> Vec<Offence> {
    let mut found = Vec::new();
    for (at, token) in source.shipped().filter(|(_, t)| t.kind == Kind::Word && t.text == name) {
        if source.crate_name() == Some("tests") || !source.reads(at + 1, &["::"]) {
            continue;
        }
        let path_start = if at >= 2 && source.reads(at - 1, &["::"]) { at - 2 } else { at };
        if source.reads(at + 2, &["*"]) || compared(source, path_start, at + 2) {
            found.push(Offence::new(token.line, format!("matches {name}::{}", source.text_at(at + 2))));
        }
    }
    found
}

/// The expression from `from` to `to` stands in a pattern (`… =>`, `… |`, `matches!(x, …)`) or beside `==`.
fn compared(source: &SourceFile, from: usize, to: usize) -> bool {
    let after = source.text_at(to + 1);
    let before = if from == 0 { "" } else { source.text_at(from - 1) };
    if ["=>", "==", "!=", "|"].contains(&after) || ["==", "!=", "|"].contains(&before) {
        return true;
    }
    // Back over what may stand inside `matches!(…`, to its opening bracket.
    let back = source.tokens[..from]
        .iter()
        .rposition(|t| t.kind == Kind::Sign && ["{", ";"].contains(&t.text.as_str()));
    let start = back.map_or(0, |b| b + 1);
    (start..from)
        .any(|i| source.reads(i, &["matches", "!", "("]) && super::lexer::closing(&source.tokens, i + 2) > to)
}

fn vague(source: &SourceFile) -> Vec<Offence> {
    let bad = |name: &str| {
        let name = name.to_lowercase();
        ["manager", "service", "helper", "helpers", "util", "utils"].iter().any(|w| name.ends_with(w))
    };
    let stem = source.path.rsplit('/').next().and_then(|f| f.split('.').next()).unwrap_or_default();
    let mut found = Vec::new();
    if bad(stem) {
        found.push(Offence::new(1, format!("{stem} says nothing")));
    }
    for (at, token) in source.shipped() {
        let names = ["struct", "enum", "trait", "mod", "type"].contains(&token.text.as_str());
        if token.kind == Kind::Word && names && bad(source.text_at(at + 1)) {
            found.push(Offence::new(token.line, format!("{} says nothing", source.text_at(at + 1))));
        }
    }
    found
}

//! `nook stats`: what the servers of this data folder are doing, and what is in the folder.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use app::App;
use clap::Args;
use contract::Result;
use contract::types::ServerState;
use serde_json::{Value, json};

use crate::args::Global;
use crate::server_key::{self, ServerKeyFlags};
use crate::{interrupt, local_http, out, text};

#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Show the figures again every two seconds, until Ctrl+C; with --json, one line each time
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub key: ServerKeyFlags,
}

/// Time between two looks.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// How long a wait lasts before it looks for Ctrl+C.
const WATCH_STEP: Duration = Duration::from_millis(100);

/// Clears the terminal and returns to its beginning.
const CLEAR_SCREEN: &str = "\x1b[2J\x1b[H";

pub fn stats(global: &Global, args: &StatsArgs) -> Result<()> {
    let given = server_key::api_key(&args.key, &|name| std::env::var(name).ok())?;
    let app = App::open(global.app_config()?)?;
    let key = match given {
        Some(key) => Some(key),
        None => server::stored_key(&app.dirs().data)?,
    };
    if !args.watch {
        show(global, &look(&app, key.as_deref())?);
        return Ok(());
    }
    let stop = interrupt::flag();
    let is_screen = !global.json && std::io::stdout().is_terminal();
    while !stop.load(Ordering::Relaxed) {
        let seen = look(&app, key.as_deref())?;
        if is_screen {
            out::bytes(CLEAR_SCREEN.as_bytes());
        }
        show(global, &seen);
        let mut left = WATCH_INTERVAL;
        while !left.is_zero() && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(WATCH_STEP);
            left = left.saturating_sub(WATCH_STEP);
        }
    }
    Ok(())
}

/// Asks every server, and counts what is in the data folder.
fn look(app: &App, key: Option<&str>) -> Result<Value> {
    let ports = match app.server_state()? {
        ServerState::Running { ports } => ports,
        ServerState::Failed { .. } | ServerState::Off => Vec::new(),
    };
    let servers: Vec<Value> = ports.into_iter().map(|port| server(port, key)).collect();
    let models = app.models_list()?.into_iter().filter(|model| model.remote.is_none());
    let (n_models, model_bytes) =
        models.fold((0_usize, 0_u64), |(n, bytes), model| (n + 1, bytes.saturating_add(model.disk_bytes)));
    let data = &app.dirs().data;
    Ok(json!({
        "servers": servers,
        "chats": app.conversations_list()?.len(),
        "models": n_models,
        "model_bytes": model_bytes,
        "database_bytes": database_bytes(data),
        "free_memory_bytes": app.machine_memory().free_bytes,
        "data_dir": data,
    }))
}

/// The figures of one server; or why there are none.
fn server(port: u16, key: Option<&str>) -> Value {
    match local_http::get_json(port, "/api/v1/stats", key) {
        Ok(mut figures) => {
            figures["port"] = port.into();
            figures
        }
        Err(error) => json!({ "port": port, "error": out::error_json(&error) }),
    }
}

/// Bytes of the database with its journal.
fn database_bytes(data: &Path) -> u64 {
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    let is_database = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains(".db");
    entries.filter(is_database).filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

fn show(global: &Global, seen: &Value) {
    if global.json {
        return out::json(seen);
    }
    for server in seen["servers"].as_array().into_iter().flatten() {
        server_lines(server).iter().for_each(|line| out::line(line));
    }
    if seen["servers"].as_array().is_some_and(Vec::is_empty) {
        out::line("no server is running");
    }
    let bytes = |name: &str| text::bytes(seen[name].as_u64().unwrap_or(0));
    out::line(&format!("{} chats, {} of database", seen["chats"], bytes("database_bytes")));
    out::line(&format!("{} models, {}", seen["models"], bytes("model_bytes")));
    out::line(&format!("{} of memory free", bytes("free_memory_bytes")));
}

fn server_lines(server: &Value) -> Vec<String> {
    let port = &server["port"];
    if let Some(message) = server["error"]["message"].as_str() {
        return vec![format!("server on port {port}: {message}")];
    }
    let number = |name: &str| server[name].as_f64().unwrap_or(0.0);
    let rate = |tokens: f64, seconds: f64| if seconds > 0.0 { tokens / seconds } else { 0.0 };
    let ended: u64 =
        server["answers"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
    let models: Vec<&str> =
        server["loaded_models"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let ms = |name: &str| match server["ttft_ms"][name].as_f64() {
        Some(ms) => format!("{ms:.0} ms"),
        None => "–".to_owned(),
    };
    let n_read = number("prompt_tokens") - number("cached_tokens");
    vec![
        format!(
            "server on port {port}: up {}, {} requests, {} of memory",
            text::duration(number("uptime_s")),
            server["requests"],
            text::bytes(server["memory_bytes"].as_u64().unwrap_or(0)),
        ),
        format!("  answers: {} running, {} queued, {ended} ended", server["running"], server["queued"]),
        format!(
            "  prompts: {} tokens, {} of them cached, {:.1} tokens/s",
            server["prompt_tokens"],
            server["cached_tokens"],
            rate(n_read, number("prefill_s")),
        ),
        format!(
            "  generated: {} tokens, {:.1} tokens/s",
            server["generated_tokens"],
            rate(number("generated_tokens"), number("decode_s")),
        ),
        format!("  first token: p50 {}, p95 {}, p99 {}", ms("p50"), ms("p95"), ms("p99")),
        format!("  loaded: {}", if models.is_empty() { "none".to_owned() } else { models.join(", ") }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_described() {
        let lines = server_lines(&json!({
            "port": 8642, "uptime_s": 61.0, "requests": 5, "memory_bytes": 1 << 20, "running": 1, "queued": 2,
            "answers": { "stop": 3, "failed": 1 }, "prompt_tokens": 30, "cached_tokens": 10, "prefill_s": 2.0,
            "generated_tokens": 8, "decode_s": 4.0, "ttft_ms": { "p50": 12.4, "p95": null },
            "loaded_models": ["starter"],
        }));
        let text = lines.join("\n");
        for part in [
            "5 requests, 1.0 MiB",
            "1 running, 2 queued, 4 ended",
            "30 tokens, 10 of them cached, 10.0 tokens/s",
            "8 tokens, 2.0 tokens/s",
            "p50 12 ms, p95 –",
            "loaded: starter",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let failed = server_lines(&json!({ "port": 1, "error": { "message": "It refuses the key." } }));
        assert_eq!(failed, ["server on port 1: It refuses the key."]);
    }
}

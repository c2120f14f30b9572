//! `nook`: Inglenook in the terminal. Each command is a few calls into `app`, or into the engine for model files.
//!
//! Exit codes: 0 success, 1 bug, 2 usage, 3 input, 4 limit, 5 device.
//! With `--json`, prints one JSON value on stdout and an error as one JSON line on stderr. Never prints a backtrace.
#![forbid(unsafe_code)]

mod args;
mod batch;
mod bench;
mod chat;
mod checkpoints;
mod convert;
mod devices;
mod embed;
mod endpoints;
mod guide;
mod input;
mod inspect;
mod interrupt;
mod keys;
mod launch;
mod library;
mod local_http;
mod logits;
mod markdown_style;
mod mcp;
mod models;
mod open_model;
mod out;
mod perplexity;
mod progress;
mod prompt_images;
mod pull;
mod render;
mod rerank;
mod run;
mod schema;
mod serve;
mod server_key;
mod sessions;
mod settings;
mod shell_files;
mod source_flags;
mod stats;
mod text;
mod token;
mod tokenize;
mod tool_approval;
mod tools;
mod tune;
mod turn;
mod vision;

use std::panic;
use std::process::ExitCode;

use args::{Cli, Command};
use clap::error::ErrorKind as ClapKind;
use clap::{CommandFactory, Parser};
use contract::Error;
use contract::ErrorKind;
use contract::Result;

fn main() -> ExitCode {
    if let Some(ended) = inference::supervisor::serve_if_asked() {
        return ended;
    }
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    quiet_panics();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error, wants_json),
    };
    let json = cli.global.json || wants_json;
    match panic::catch_unwind(move || perform(cli)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => out::fail(&error, json),
        Err(panicked) => out::fail(&Error::bug(panic_message(&*panicked)), json),
    }
}

fn perform(cli: Cli) -> Result<()> {
    let Cli { global, command } = cli;
    global.check()?;
    if let Some(window) = global.kv_window.filter(|_| !global.json) {
        out::log(&format!(
            "--kv-window {window} changes the model: it wasn't trained with such a short window."
        ));
    }
    match command {
        Command::Chat(args) => chat::chat(&global, &args),
        Command::Run(args) => run::run(&global, *args),
        Command::Tokenize(args) => tokenize::tokenize(&global, &args),
        Command::Detokenize(args) => tokenize::detokenize(&global, &args),
        Command::Render(args) => render::render(&global, &args),
        Command::Schema(args) => schema::schema(&global, &args),
        Command::Embed(args) => embed::embed(&global, &args),
        Command::Rerank(args) => rerank::rerank(&global, &args),
        Command::Logits(args) => logits::logits(&global, &args),
        Command::Vision(args) => vision::vision(&global, &args),
        Command::Inspect(args) => inspect::inspect(&global, &args),
        Command::Devices(args) => devices::devices(&global, &args),
        Command::Convert(args) => convert::convert(&global, args),
        Command::Perplexity(args) => perplexity::perplexity(&global, &args),
        Command::Bench(args) => bench::bench(&global, &args),
        Command::Models(args) => models::models(&global, &args),
        Command::Endpoints(args) => endpoints::endpoints(&global, &args),
        Command::Tools(args) => tools::tools(&global, args),
        Command::Plugins(args) => tools::plugins(&global, &args),
        Command::Guide(args) => guide::guide(&global, &args),
        Command::Connections(args) => endpoints::connections(&global, &args),
        Command::Sessions(args) => sessions::sessions(&global, &args),
        Command::Backup(args) => sessions::backup(&global, &args),
        Command::Restore(args) => sessions::restore(&global, &args),
        Command::Settings(args) => settings::settings(&global, &args),
        Command::Serve(args) => serve::serve(&global, args),
        Command::Tune(args) => tune::tune(&global, &args),
        Command::Mcp(args) => mcp::mcp(&global, &args),
        Command::Stats(args) => stats::stats(&global, &args),
        Command::Batch(args) => batch::batch(&global, &args),
        Command::Launch(args) => launch::launch(&global, &args),
        Command::Completions(args) => {
            shell_files::completions(&global, &args, Cli::command());
            Ok(())
        }
        Command::Man(args) => shell_files::man(&global, &args, Cli::command()),
        Command::Keys(args) => keys::keys(&global, args),
        Command::Audit(args) => keys::audit(&global, &args),
    }
}

/// Prints help and version to stdout; every other clap error is a usage error.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if matches!(error.kind(), ClapKind::DisplayHelp | ClapKind::DisplayVersion) {
        out::text(&error.to_string());
        return ExitCode::SUCCESS;
    }
    if !json {
        eprint!("{error}");
        return ExitCode::from(ErrorKind::Usage.exit_code());
    }
    let text = error.to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let error = Error::new(ErrorKind::Usage, "usage", message, "See `nook --help` or `nook COMMAND --help`.");
    out::fail(&error, true)
}

/// Logs a panic in one line, without a backtrace; `main` reports it as an error.
fn quiet_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), |at| format!(" ({}:{})", at.file(), at.line()));
        out::log(&format!("bug: {}{place}", panic_message(info.payload())));
    }));
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

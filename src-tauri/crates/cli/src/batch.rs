//! `nook batch`: answers the requests of a JSONL file and writes their results beside it.
//!
//! Guarantees that a line which can't be answered leaves the others alone, and that a batch which was ended, however
//! it ended, goes on where it stopped.

mod results_file;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use api_store::BatchLine;
use app::{App, Caller, Interface};
use clap::Args;
use contract::{Error, ErrorKind, Result};
use serde_json::{Value, json};
use server::LocalRoutes;

use crate::args::Global;
use crate::{interrupt, open_model, out};
use results_file::{BatchResult, ResultsFile};

#[derive(Debug, Args)]
pub struct BatchArgs {
    /// File with one request per line: OpenAI's batch form, {"prompt":…} or {"messages":…}; - reads standard input
    #[arg(long, value_name = "F")]
    pub jsonl: PathBuf,
    /// File for the results; one that exists is continued [default: beside F, as NAME.out.jsonl]
    #[arg(long, value_name = "F")]
    pub out: Option<PathBuf>,
    /// Library id or path of the model for every line, whatever it names. A path is added to the library
    #[arg(long)]
    pub model: Option<String>,
}

/// Exit code after Ctrl+C.
const EXIT_INTERRUPTED: i32 = 130;

/// How many lines ended how.
#[derive(Debug, Default, Clone, Copy)]
struct BatchCounts {
    n_answered: usize,
    n_failed: usize,
    /// Answered by an earlier run.
    n_kept: usize,
}

pub fn batch(global: &Global, args: &BatchArgs) -> Result<()> {
    let results_path = results_path(args)?;
    let lines = BatchLine::split(&open_model::read_bytes(&args.jsonl)?);
    let mut results = ResultsFile::open(&results_path, &lines)?;
    let app = App::open(global.app_config_apart()?)?;
    let app = app.as_caller(Caller { interface: Interface::Terminal, ..Caller::default() });
    let model = args.model.as_deref().map(|model| library_id(&app, model)).transpose()?;
    let open: Vec<BatchLine> = lines.into_iter().filter(|line| !results.has(line.number)).collect();
    let mut counts = BatchCounts { n_kept: results.n_kept(), ..BatchCounts::default() };
    let n_lines = open.len();
    let stop = interrupt::flag();
    let n_at_once = app.answers_at_once()?.max(1).min(n_lines.max(1));
    let routes = LocalRoutes::new(app)?;
    let queue = LineQueue { lines: Mutex::new(open.into_iter()), stop: Arc::clone(&stop) };
    let (sender, answered) = sync_channel(n_at_once);
    let written = std::thread::scope(|scope| {
        for _ in 0..n_at_once {
            let (sender, queue, routes, model) = (sender.clone(), &queue, &routes, model.as_deref());
            scope.spawn(move || answer_lines(queue, routes, model, &sender));
        }
        drop(sender);
        let written = write_results(&answered, &mut results, &mut counts, n_lines);
        // Where the results can't be written, no further line is begun.
        if written.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        drop(answered);
        written
    });
    written?;
    report(global, counts, &results_path);
    if stop.load(Ordering::Relaxed) {
        out::log("stopped; the same command goes on with the remaining lines");
        drop(routes);
        std::process::exit(EXIT_INTERRUPTED);
    }
    Ok(())
}

fn results_path(args: &BatchArgs) -> Result<PathBuf> {
    let path = match &args.out {
        Some(path) => path.clone(),
        None if args.jsonl == Path::new("-") => {
            let message = "The requests come from standard input, and no file for the results is named.";
            return Err(Error::new(ErrorKind::Usage, "batch.no_out", message, "Name one with --out."));
        }
        None => args.jsonl.with_extension("out.jsonl"),
    };
    if path == args.jsonl {
        let message = format!("The results can't be written to the requests themselves, {}.", path.display());
        return Err(Error::new(
            ErrorKind::Usage,
            "batch.same_file",
            message,
            "Name another file with --out.",
        ));
    }
    Ok(path)
}

/// Requests name models of the library alone: a path is added to it.
fn library_id(app: &App, model: &str) -> Result<String> {
    match app.model_named(model) {
        Ok(served) => Ok(served.id),
        Err(_) if Path::new(model).exists() => Ok(app.model_add(model)?.id),
        Err(error) => Err(error),
    }
}

/// Lines that are not being answered yet.
struct LineQueue {
    lines: Mutex<std::vec::IntoIter<BatchLine>>,
    stop: Arc<AtomicBool>,
}

impl LineQueue {
    fn next(&self) -> Option<BatchLine> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

fn answer_lines(
    queue: &LineQueue,
    routes: &LocalRoutes,
    model: Option<&str>,
    sender: &SyncSender<BatchResult>,
) {
    while let Some(line) = queue.next() {
        if sender.send(answer_line(line, routes, model)).is_err() {
            return;
        }
    }
}

fn answer_line(line: BatchLine, routes: &LocalRoutes, model: Option<&str>) -> BatchResult {
    let request = match line.request() {
        Ok(request) => request,
        Err(refusal) => return BatchResult::refused(&line, &refusal),
    };
    let mut body = request.body.clone();
    if let Some(model) = model {
        body["model"] = model.into();
    }
    let (status, answer) = routes.post(&request.path, &body);
    BatchResult::answered(&line, &request, status, &answer)
}

fn write_results(
    answered: &Receiver<BatchResult>,
    results: &mut ResultsFile,
    counts: &mut BatchCounts,
    n_lines: usize,
) -> Result<()> {
    for result in answered {
        results.append(&result)?;
        match result.is_success {
            true => counts.n_answered += 1,
            false => counts.n_failed += 1,
        }
        let n_done = counts.n_answered + counts.n_failed;
        out::log(&format!("{n_done} of {n_lines}{}", result.failure()));
    }
    Ok(())
}

fn report(global: &Global, counts: BatchCounts, path: &Path) {
    let BatchCounts { n_answered, n_failed, n_kept } = counts;
    if global.json {
        out::json(&json!({ "answered": n_answered, "failed": n_failed, "kept": n_kept, "out": path }));
        return;
    }
    let kept = if n_kept > 0 { format!(", {n_kept} kept from before") } else { String::new() };
    out::line(&format!("{n_answered} answered, {n_failed} failed{kept}: {}", path.display()));
}

/// A text of an object's field; empty where there is none.
fn text_at<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

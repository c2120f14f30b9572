//! Ollama's `/api/pull`: downloads a model through the queue, with progress line by line.

use std::sync::Arc;
use std::time::Duration;

use app::{App, download_args};
use axum::body::Body;
use contract::types::{Download, DownloadState};
use contract::{Error, Result};
use platform::{EventLog, Watch};
use serde_json::{Value, json};

use super::line;
use super::request::model;
use crate::RouteState;
use crate::fault::full_text;
use crate::request_fields::{RequestFields, object};
use crate::running_turn::blocking;
use crate::stream::Sse;

/// Time between two looks at the download.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Progress lines kept for a slow client; more end its stream.
const MAX_LINES: usize = 4096;

/// Prefixes of Ollama's names for models of Hugging Face.
const HUB_PREFIXES: [&str; 3] = ["hf.co/", "huggingface.co/", "https://hf.co/"];

/// A request for a download.
pub struct PullRequest {
    name: String,
    pub stream: bool,
}

impl PullRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = RequestFields(&object);
        let name = model(fields)?;
        let name =
            HUB_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(&name).to_owned();
        Ok(Self { name, stream: fields.boolean("stream")?.unwrap_or(true) })
    }
}

/// Starts a download and follows it to its end. A client that leaves stops watching; the download goes on.
pub async fn streamed(shared: &RouteState, pull: PullRequest) -> Result<Body> {
    let app = shared.app.clone();
    let progress = EventLog::new(MAX_LINES);
    let watch = Watch::new(&progress, 0);
    let started = blocking(move || begin(&app, &pull.name)).await?;
    let (app, log) = (shared.app.clone(), Arc::clone(&progress));
    tokio::task::spawn_blocking(move || {
        // A watcher and this thread hold the log: it alone is left where the client has gone.
        let is_watched = |log: &Arc<EventLog<Value>>| Arc::strong_count(log) > 1;
        let outcome = follow(&app, started, &mut |value| {
            log.push(|_| value);
            is_watched(&log)
        });
        if let Err(error) = outcome {
            log.push(|_| json!({ "error": full_text(&error) }));
        }
        log.close();
    });
    drop(progress);
    let write = |lines: Option<Vec<Value>>| lines.unwrap_or_default().iter().map(line).collect::<String>();
    Ok(Body::from_stream(Sse::new(watch, write, &shared.stopping, true)))
}

/// As `streamed`, with the end alone.
pub async fn whole(shared: &RouteState, pull: PullRequest) -> Result<Value> {
    let app = shared.app.clone();
    blocking(move || {
        let started = begin(&app, &pull.name)?;
        follow(&app, started, &mut |_| true)?;
        Ok(json!({ "status": "success" }))
    })
    .await
}

/// None: the model is there already.
fn begin(app: &App, name: &str) -> Result<Option<Download>> {
    match app.model_named(name) {
        Ok(_) => Ok(None),
        Err(_) => app.download_start(&download_args(name)).map(Some),
    }
}

/// Tells the progress of a download until it ends, or until `tell` returns false.
fn follow(app: &App, started: Option<Download>, tell: &mut dyn FnMut(Value) -> bool) -> Result<()> {
    let Some(mut download) = started else {
        tell(json!({ "status": "success" }));
        return Ok(());
    };
    tell(json!({ "status": "pulling manifest" }));
    loop {
        match &download.state {
            DownloadState::Done { .. } => {
                tell(json!({ "status": "success" }));
                return Ok(());
            }
            DownloadState::Failed { error } | DownloadState::Paused { reason: Some(error) } => {
                return Err(error.clone().into());
            }
            DownloadState::Paused { reason: None } => return Err(stopped(&download.repository)),
            DownloadState::Verifying { .. } => {
                if !tell(json!({ "status": "verifying sha256 digest" })) {
                    return Ok(());
                }
            }
            DownloadState::Queued | DownloadState::Downloading | DownloadState::WaitingForNetwork { .. } => {
                let status = format!("pulling {}", download.path);
                let progress = json!({
                    "status": status, "digest": download.path, "total": download.total,
                    "completed": download.bytes,
                });
                if !tell(progress) {
                    return Ok(());
                }
            }
        }
        std::thread::sleep(LOOK_EVERY);
        let found = app.download_list()?.into_iter().find(|other| other.id == download.id);
        download = found.ok_or_else(|| stopped(&download.repository))?;
    }
}

fn stopped(repository: &str) -> Error {
    Error::input(
        "download.stopped",
        format!("The download of {repository} was paused or cancelled elsewhere."),
        "Resume it in the window, or pull it again.",
    )
}

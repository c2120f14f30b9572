//! `nook models search`, `pull` and `verify`: finding, downloading and verifying models.

use std::io::{IsTerminal, stderr};

use app::App;
use clap::ValueEnum;
use contract::CatalogOffer;
use contract::Error;
use contract::ErrorKind;
use contract::Result;
use contract::types::{
    AppEvent, Download, DownloadState, HubFilesArgs, HubModel, HubSearchArgs, HubSort, ModelVerified, Trust,
};
use serde_json::json;

use crate::{out, text};

/// Number of progress lines of a download if stderr is not a terminal.
const N_PROGRESS_STEPS: u64 = 20;

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum SortBy {
    #[default]
    Trending,
    Downloads,
    Likes,
    Updated,
}

impl From<SortBy> for HubSort {
    fn from(sort: SortBy) -> Self {
        match sort {
            SortBy::Trending => Self::Trending,
            SortBy::Downloads => Self::Downloads,
            SortBy::Likes => Self::Likes,
            SortBy::Updated => Self::Updated,
        }
    }
}

/// Prints offers of the built-in catalog.
pub fn offers(offers: &[&CatalogOffer], as_json: bool) {
    if as_json {
        return out::json(&json!({ "models": offers }));
    }
    let row = |offer: &&CatalogOffer| {
        [&offer.id, &offer.name, &offer.repository, &offer.good_at].map(String::clone).to_vec()
    };
    out::text(&text::table(&offers.iter().map(row).collect::<Vec<_>>()));
}

/// Prints the models found; for an exact OWNER/NAME, its files.
pub fn search(app: &App, query: &str, sort: SortBy, as_json: bool) -> Result<()> {
    let args = HubSearchArgs { query: query.into(), sort: Some(sort.into()), after: None };
    let page = app.hub_search(&args)?;
    if let Some(error) = &page.offline
        && !as_json
    {
        out::log(&format!("{} Only the built-in catalog was searched.", error.message));
    }
    if as_json {
        out::json(&page);
        return Ok(());
    }
    match page.models.as_slice() {
        [only] if query.contains('/') && page.offline.is_none() => files(app, only),
        models => {
            out::text(&text::table(&models.iter().map(model_row).collect::<Vec<_>>()));
            Ok(())
        }
    }
}

fn model_row(model: &HubModel) -> Vec<String> {
    let name = model.offer.as_ref().map_or(&model.repository, |offer| &offer.id);
    let words = model.offer.as_ref().map_or_else(|| model.url.clone(), |offer| offer.good_at.clone());
    vec![
        name.clone(),
        model.architecture.clone().unwrap_or_default(),
        model.parameters.map(text::count).unwrap_or_default(),
        model.licence.clone().unwrap_or_default(),
        model.downloads.map(|n| format!("{} downloads", text::count(n))).unwrap_or_default(),
        words,
    ]
}

fn files(app: &App, model: &HubModel) -> Result<()> {
    let listing = app.hub_files(&HubFilesArgs { repository: model.repository.clone(), revision: None })?;
    let rows = listing.files.iter().map(|file| {
        vec![
            format!("{}:{}", model.repository, file.path),
            file.quantisation.clone().unwrap_or_default(),
            text::bytes(file.bytes),
            if file.parts > 1 { format!("{} parts", file.parts) } else { String::new() },
            trust(&file.trust),
            if file.recommended { "recommended".into() } else { String::new() },
        ]
    });
    out::text(&text::table(&rows.collect::<Vec<_>>()));
    Ok(())
}

fn trust(trust: &Trust) -> String {
    match trust {
        Trust::Signed { key } => format!("signed by {key}"),
        Trust::Published => "unsigned".into(),
        Trust::Unknown => "unsigned, no hash".into(),
    }
}

/// Downloads a model into the library. Broken connections are resumed automatically.
pub fn pull(app: &App, what: &str, as_json: bool) -> Result<()> {
    let mut events = app.watch_app();
    let begun = app.download_start(&app::download_args(what))?;
    let mut line = ProgressLine::new(as_json);
    let mut now = begun;
    loop {
        line.show(&now);
        match &now.state {
            DownloadState::Done { model } => {
                line.end();
                return done(app, &now, model, as_json);
            }
            DownloadState::Failed { error } => {
                line.end();
                return Err(Error::from(error.clone()));
            }
            DownloadState::Paused { reason: None } => {
                line.end();
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "download.paused",
                    "The download was paused.",
                    format!("Continue it with `nook models pull {what}`."),
                ));
            }
            DownloadState::Paused { reason: Some(_) }
            | DownloadState::Queued
            | DownloadState::Downloading
            | DownloadState::WaitingForNetwork { .. }
            | DownloadState::Verifying { .. } => {}
        }
        let Some(news) = events.next() else { return Err(Error::bug("the program ended during a download")) };
        for event in news {
            match event {
                AppEvent::DownloadChanged { download } if download.id == now.id => now = download,
                AppEvent::DownloadRemoved { id } if id == now.id => {
                    line.end();
                    return Err(Error::new(
                        ErrorKind::Conflict,
                        "download.cancelled",
                        "The download was canceled.",
                        "",
                    ));
                }
                _ => {}
            }
        }
    }
}

fn done(app: &App, download: &Download, model: &str, as_json: bool) -> Result<()> {
    let entry = app.model_get(model)?;
    if as_json {
        out::json(&json!({
            "id": entry.id, "path": entry.path, "bytes": download.total, "fetched": download.fetched,
            "trust": download.trust, "notice": download.notice,
        }));
    } else {
        out::line(&format!("{} is ready: nook chat --model {}", entry.name, entry.id));
    }
    Ok(())
}

/// Download progress on stderr.
struct ProgressLine {
    is_terminal: bool,
    quiet: bool,
    /// The last step that was shown.
    step: Option<u64>,
    state: String,
}

impl ProgressLine {
    fn new(quiet: bool) -> Self {
        Self { is_terminal: stderr().is_terminal(), quiet, step: None, state: String::new() }
    }

    fn show(&mut self, download: &Download) {
        if self.quiet {
            return;
        }
        let state = match &download.state {
            DownloadState::Queued => "queued".to_owned(),
            DownloadState::Downloading => "downloading".into(),
            DownloadState::Paused { reason } => {
                reason.as_ref().map_or_else(|| "paused".into(), |reason| reason.message.clone())
            }
            DownloadState::WaitingForNetwork { error } => error.message.clone(),
            DownloadState::Verifying { .. } => "verifying".into(),
            DownloadState::Failed { .. } | DownloadState::Done { .. } => return,
        };
        let step = download.bytes * N_PROGRESS_STEPS / download.total.max(1);
        if !self.is_terminal && self.step == Some(step) && self.state == state {
            return;
        }
        let eta = download.eta_s.map(|eta| format!(", {} left", text::duration(eta))).unwrap_or_default();
        let line = format!(
            "{} of {}, {}/s{eta}: {state}",
            text::bytes(download.bytes),
            text::bytes(download.total),
            text::bytes(download.speed as u64)
        );
        if self.is_terminal {
            out::hint(&format!("\r\x1b[K{line}"));
        } else {
            out::log(&line);
        }
        (self.step, self.state) = (Some(step), state);
    }

    fn end(&self) {
        if self.is_terminal && self.step.is_some() {
            out::hint("\r\x1b[K");
        }
    }
}

/// Verifies the files of a model. Errors: a file has changed.
pub fn verify(app: &App, id: &str, as_json: bool) -> Result<()> {
    let verified = app.model_verify(id)?;
    if as_json {
        out::json(&verified);
    } else {
        for file in &verified.files {
            let word = match &file.recorded {
                Some(recorded) if *recorded == file.sha256 => "as recorded",
                Some(_) => "CHANGED",
                None => "recorded now for the first time",
            };
            out::line(&format!("{}  {}  {word}", file.sha256, file.path));
        }
        out::line(&trust(&verified.trust));
    }
    if verified.intact { Ok(()) } else { Err(changed(&verified)) }
}

fn changed(verified: &ModelVerified) -> Error {
    let is_other = |recorded: &Option<String>, now: &String| recorded.as_ref().is_some_and(|r| r != now);
    let files = verified.files.iter().filter(|file| is_other(&file.recorded, &file.sha256));
    let names: Vec<&str> = files.map(|file| file.path.as_str()).collect();
    Error::input(
        "model.changed",
        format!("{} has changed since its hashes were recorded: {}.", verified.id, names.join(", ")),
        "Download it again, unless you changed it yourself.",
    )
}

//! What other processes do with the queue, observed and reported here: `nook models pull` beside an
//! open window.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use session::{DownloadRow, DownloadStage};

use crate::App;
use contract::Result;
use contract::types::AppEvent;

/// How often the database is asked whether others have written to it: as often as they write their progress.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What was known of each row, and the database's version then.
#[derive(Default)]
struct KnownRows {
    rows: HashMap<String, RowSnapshot>,
    version: Option<i64>,
}

#[derive(PartialEq)]
struct RowSnapshot {
    stage: DownloadStage,
    detail: Option<String>,
    bytes: u64,
    total: u64,
}

impl RowSnapshot {
    fn of(row: &DownloadRow) -> Self {
        Self { stage: row.stage, detail: row.detail.clone(), bytes: row.bytes, total: row.total }
    }
}

impl App {
    /// Until the program ends.
    pub(super) fn follow_others(&self) -> Result<()> {
        let app = Arc::downgrade(&self.running);
        let mut known = self.look_at_others(KnownRows::default(), true)?;
        self.hub_runtime()?.spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let Some(running) = app.upgrade() else { return };
                // The disk is asked; and the last owner of the application ends here at worst.
                let looked =
                    tokio::task::spawn_blocking(move || App::of(running).look_at_others(known, false));
                known = match looked.await {
                    Ok(Ok(seen)) => seen,
                    Ok(Err(error)) => {
                        tracing::info!(code = error.code(), "the queue can't be read now: {error}");
                        KnownRows::default()
                    }
                    Err(panic) => {
                        return tracing::error!(
                            "downloads of other processes are no longer followed: {panic}"
                        );
                    }
                };
            }
        });
        Ok(())
    }

    /// Tells what differs from what was known, and begins what was put into the queue.
    fn look_at_others(&self, known: KnownRows, is_first: bool) -> Result<KnownRows> {
        // Read before the rows: what is written in between is looked at again.
        let version = Some(self.store().version_for_others()?);
        if version == known.version {
            return Ok(known);
        }
        let rows = self.store().downloads()?;
        let seen: HashMap<_, _> = rows.iter().map(|row| (row.id.clone(), RowSnapshot::of(row))).collect();
        if is_first {
            return Ok(KnownRows { rows: seen, version });
        }
        for row in rows {
            let is_news = known.rows.get(&row.id) != seen.get(&row.id);
            if !is_news || self.services().downloads.lock().live.contains_key(&row.id) {
                continue;
            }
            if row.stage == DownloadStage::Done
                && let Some(Ok(model)) = row.detail.as_deref().map(|id| self.model_get(id))
            {
                self.ctx().events.publish(AppEvent::ModelChanged { model });
            }
            self.services().told(row)?;
        }
        for id in known.rows.into_keys().filter(|id| !seen.contains_key(id)) {
            self.ctx().events.publish(AppEvent::DownloadRemoved { id });
        }
        self.start_next()?;
        Ok(KnownRows { rows: seen, version })
    }
}

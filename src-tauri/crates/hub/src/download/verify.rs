//! Fetches a file until its hash is the published one, and finds the cause if it is not.
//!
//! Chunks that changed on disk are found by the hashes recorded on arrival, without the network. Chunks that arrived wrong
//! are found by fetching again run by run. Chunks of a signed manifest are already compared on arrival.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::download::blocking;
use crate::download::fetch::{ChunkSet, FileFetch, damaged};
use crate::download::fetch_end::FetchEnd;
use crate::error::HubError;
use crate::sha::Hash;

/// Bytes fetched again before the whole file is rehashed, if something differed.
const RUN_BYTES: u64 = 16 << 20;

/// How many times chunks that changed on disk are fetched again.
const MAX_ROUNDS: usize = 5;

/// Fetches all chunks and returns the file's hash, which equals `published` if that is known.
pub(crate) async fn fetch_and_verify(
    task: &Arc<FileFetch>,
    published: Option<Hash>,
) -> Result<Hash, FetchEnd> {
    for _ in 0..MAX_ROUNDS {
        fetch(task).await?;
        let hash = hash(task).await?;
        if published.is_none_or(|published| published == hash) {
            return Ok(hash);
        }
        let rotten = {
            let task = Arc::clone(task);
            blocking(move || task.part.forget_corrupted()).await?
        };
        tracing::warn!(path = task.path, rotten, "the hash is not the published one");
        if rotten == 0 {
            return refetch_suspect(task, published.unwrap_or(hash)).await;
        }
    }
    Err(FetchEnd::Failed(HubError::new(
        "download.disk",
        format!("The disk does not keep the data written for {}.", task.path),
        "Check the disk. Nothing of it was taken into the library.",
    )))
}

/// Fetches all missing chunks over several connections.
async fn fetch(task: &Arc<FileFetch>) -> Result<(), FetchEnd> {
    if task.part.is_complete() {
        return Ok(());
    }
    task.progress.fetching(task.tuning.connections);
    let mut connections = JoinSet::new();
    for _ in 0..task.tuning.connections {
        connections.spawn(Arc::clone(task).connection());
    }
    let mut over = None;
    while let Some(ended) = connections.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                // The first error counts; the other connections end and return their runs.
                if over.is_none() {
                    over = Some(error);
                    connections.abort_all();
                }
            }
            Err(cancelled) if cancelled.is_cancelled() => {}
            Err(panic) => {
                let message = format!("Something went wrong inside Inglenook: {panic}");
                over.get_or_insert(FetchEnd::Failed(HubError::new("bug", message, "Try again.")));
                connections.abort_all();
            }
        }
    }
    let synced = {
        let task = Arc::clone(task);
        blocking(move || task.part.sync()).await
    };
    match over {
        None => synced,
        Some(FetchEnd::NoRanges) => {
            task.part.give_back(0..task.part.header().n_chunks());
            task.progress.fetching(1);
            task.run_without_ranges().await?;
            let task = Arc::clone(task);
            blocking(move || task.part.sync()).await
        }
        Some(over) => Err(over),
    }
}

async fn hash(task: &Arc<FileFetch>) -> Result<Hash, FetchEnd> {
    let hashed = {
        let task = Arc::clone(task);
        let of = task.part.header().bytes;
        blocking(move || {
            task.part.hash(&mut |done| {
                task.progress.verifying(done, of);
                !task.is_stopped()
            })
        })
    };
    hashed.await?.ok_or(FetchEnd::Stopped)
}

/// Fetches every chunk again until the hash is right. Errors if it never is.
async fn refetch_suspect(task: &Arc<FileFetch>, published: Hash) -> Result<Hash, FetchEnd> {
    let header = task.part.header();
    let step = (RUN_BYTES / header.chunk_bytes).max(1);
    let n_chunks = header.n_chunks();
    for start in (0..n_chunks).step_by(usize::try_from(step).unwrap_or(1)) {
        task.progress.fetching(1);
        let n_changed = task.run(start..(start + step).min(n_chunks), ChunkSet::Suspect).await?;
        if n_changed > 0 && hash(task).await? == published {
            return Ok(published);
        }
    }
    Err(FetchEnd::Failed(damaged(&task.path)))
}

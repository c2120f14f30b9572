//! Repair of a damaged file by the hashes of its chunks: what is still right is not fetched again.
//!
//! The journal of a complete download is kept as its list of chunk hashes, named after the file's SHA-256. Nothing here
//! is relied on: the whole file is verified afterwards, and without a list all of it is fetched.

use std::path::{Path, PathBuf};

use io::{Io, IoError};

use crate::cache_layout::FilePaths;
use crate::download::journal::{self, Journal, JournalHeader};
use crate::sha::Hash;

fn list_path(lists: &Path, key: &str) -> PathBuf {
    lists.join(format!("{key}.chunks"))
}

/// Keeps the journal of a complete file as its list. Best effort: without it a repair fetches everything.
pub(crate) fn keep_list(io: &dyn Io, paths: &FilePaths, lists: &Path, sha256: Hash) {
    let kept = io
        .create_dir_all(lists)
        .and_then(|()| io.read(&paths.journal))
        .and_then(|journal| io.write_atomic(&list_path(lists, &sha256.to_string()), &journal));
    if let Err(error) = kept {
        tracing::debug!("the chunk hashes of {} are not kept: {error}", paths.data.display());
    }
}

/// Removes the list of a file that is gone.
pub fn remove_chunk_list(io: &dyn Io, lists: &Path, sha256: &str) {
    if Hash::parse(sha256).is_some() {
        // Best effort: a list that stays costs a few kilobytes.
        let _ = io.remove_file(&list_path(lists, sha256));
    }
}

/// Copies the chunks that are still right from a damaged file into its part, so that only the others are fetched.
pub(crate) fn salvage(io: &dyn Io, paths: &FilePaths, lists: &Path, header: &JournalHeader) {
    match try_salvage(io, paths, lists, header) {
        Ok(0) => {}
        Ok(n_chunks) => tracing::info!("{n_chunks} chunks of {} are still right", paths.data.display()),
        // The download fetches all of it.
        Err(error) => tracing::debug!("nothing of {} is reused: {error}", paths.data.display()),
    }
}

fn try_salvage(
    io: &dyn Io,
    paths: &FilePaths,
    lists: &Path,
    header: &JournalHeader,
) -> Result<usize, IoError> {
    let list = list_path(lists, &header.key);
    if io.exists(&paths.part)? || !io.exists(&paths.data)? || !io.exists(&list)? {
        return Ok(0);
    }
    let hashes = journal::recorded_hashes(io, &list, header)?;
    crate::download::part::remove(io, &[&paths.journal])?;
    let (journal, _) = Journal::open(io, &paths.journal, header)?;
    let damaged = io.open_to_read(&paths.data)?;
    let part = io.open_random(&paths.part)?;
    part.reserve(header.bytes)?;
    let mut n_right = 0;
    let mut block = Vec::new();
    for (index, hash) in (0_u64..).zip(hashes) {
        block.resize(usize::try_from(header.len_of(index)).unwrap_or(usize::MAX), 0);
        let n = damaged.read_at(index * header.chunk_bytes, &mut block)?;
        if let Some(hash) = hash.filter(|hash| *hash == Hash::of(&block[..n])) {
            part.write_at(index * header.chunk_bytes, &block)?;
            journal.record_arrived(index, hash)?;
            n_right += 1;
        }
    }
    let until = journal.end();
    part.sync()?;
    journal.record_synced(until)?;
    Ok(n_right)
}

//! Moves a model that this program put into the hub's cache to a trash beside it, back again, or
//! deletes it. Content that another snapshot names stays. After an interruption the bytes are in
//! their old place, in the trash, or in both. The trash mirrors the cache's layout, so that links
//! hold.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use io::Io;

use crate::roots;
use contract::Result;

/// Lies beside `blobs` and `snapshots`: the hub's own tools ignore folders that they don't know.
const TRASH: &str = ".removed";
const BLOBS: &str = "blobs";
const SNAPSHOTS: &str = "snapshots";

/// A place in the cache.
#[derive(Debug, PartialEq, Eq)]
struct CacheLocation {
    /// `…/models--OWNER--NAME`, or a folder of its trash.
    repository: PathBuf,
    /// `snapshots/COMMIT/…`
    inside: PathBuf,
}

impl CacheLocation {
    fn of(path: &Path) -> Option<Self> {
        let snapshots = path.ancestors().find(|at| at.file_name().is_some_and(|name| name == SNAPSHOTS))?;
        let repository = snapshots.parent()?;
        let is_cache = repository.ancestors().any(|at| roots::name_of(at).starts_with("models--"));
        let inside = path.strip_prefix(repository).ok()?;
        let is_deep = inside.components().count() > 1;
        (is_cache && is_deep).then(|| Self { repository: repository.into(), inside: inside.into() })
    }
}

/// Whether a path is laid out as the hub's cache is.
pub fn is_cached(path: &Path) -> bool {
    CacheLocation::of(path).is_some()
}

/// Takes a model out; where it is now. `name`: of its folder in the trash.
pub fn take_out(io: &dyn Io, path: &Path, name: &str) -> Result<PathBuf> {
    let Some(CacheLocation { repository, inside }) = CacheLocation::of(path) else {
        return Ok(path.to_owned());
    };
    let trash = repository.join(TRASH).join(name);
    shift(io, path, &repository, &trash)?;
    Ok(trash.join(inside))
}

/// Puts a model back from the trash to where it was.
pub fn put_back(io: &dyn Io, path: &Path, was_at: &Path) -> Result<()> {
    let (Some(from), Some(to)) = (CacheLocation::of(path), CacheLocation::of(was_at)) else { return Ok(()) };
    shift(io, path, &from.repository, &to.repository)?;
    sweep(io, &from);
    Ok(())
}

/// Removes what lies in the trash.
pub fn delete(io: &dyn Io, path: &Path) -> Result<()> {
    let Some(place) = CacheLocation::of(path).filter(|it| it.repository.ancestors().any(is_trash)) else {
        return Ok(());
    };
    for file in files_of(path) {
        let blob = blob_of(&file).map(|key| place.repository.join(BLOBS).join(key));
        if let Some(blob) = blob.filter(|blob| blob.exists()) {
            io.remove_file(&blob)?;
        }
        io.remove_file(&file)?;
    }
    sweep(io, &place);
    Ok(())
}

/// All files of a model from one such layout into another on the same disk.
fn shift(io: &dyn Io, path: &Path, from: &Path, to: &Path) -> Result<()> {
    for file in &files_of(path) {
        let target = to.join(file.strip_prefix(from).unwrap_or(file));
        if let Some(folder) = target.parent() {
            io.create_dir_all(folder)?;
        }
        let Some(key) = blob_of(file) else {
            io.rename(file, &target)?;
            continue;
        };
        let (blob, moved) = (from.join(BLOBS).join(&key), to.join(BLOBS).join(&key));
        io.create_dir_all(&to.join(BLOBS))?;
        let is_shared = n_links(&from.join(SNAPSHOTS), &key, MAX_DEPTH) > 1;
        // Twice for a moment, never not at all. Where a file can't have two names it is moved.
        let is_double = moved.exists() || io.link(&blob, &moved).is_ok();
        if !is_double && !is_shared {
            io.rename(&blob, &moved)?;
        }
        io.rename(file, &target)?;
        if is_double && !is_shared && blob.exists() {
            io.remove_file(&blob)?;
        }
    }
    Ok(())
}

/// Those that are there, links to what is elsewhere among them.
fn files_of(path: &Path) -> Vec<PathBuf> {
    roots::files_of(path).into_iter().filter(|file| file.exists() || file.is_symlink()).collect()
}

/// No known snapshot lies deeper.
const MAX_DEPTH: usize = 8;

/// The content's name, of a link to one.
fn blob_of(file: &Path) -> Option<OsString> {
    let target = std::fs::read_link(file).ok()?;
    let is_blob = target.parent().and_then(Path::file_name).is_some_and(|name| name == BLOBS);
    is_blob.then(|| target.file_name().map(OsString::from))?
}

/// Links to a content below a folder.
fn n_links(folder: &Path, key: &OsStr, depth: usize) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .map(|path| match path.is_symlink() {
            true => usize::from(blob_of(&path).as_deref() == Some(key)),
            false if depth > 0 && path.is_dir() => n_links(&path, key, depth - 1),
            false => 0,
        })
        .sum()
}

fn is_trash(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == TRASH)
}

/// Folders of the trash that have become empty.
fn sweep(io: &dyn Io, place: &CacheLocation) {
    let inside = place.inside.ancestors().filter(|at| !at.as_os_str().is_empty());
    let folders = inside.map(|at| place.repository.join(at)).chain([place.repository.join(BLOBS)]);
    let above = place.repository.ancestors().take(2).map(Path::to_path_buf);
    for folder in folders.chain(above).filter(|folder| folder.ancestors().any(is_trash)) {
        // one that still holds something stays
        let _ = io.remove_folder(&folder);
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;

    use io::RealIo;

    use super::*;
    use test_support::TempDir;

    /// A repository with one content that `n` snapshots name.
    fn cache(folder: &TempDir, commits: &[&str]) -> PathBuf {
        let repository = folder.path().join("models--o--n");
        fs::create_dir_all(repository.join("blobs")).unwrap();
        fs::write(repository.join("blobs/abc"), b"weights").unwrap();
        for commit in commits {
            let snapshot = repository.join("snapshots").join(commit);
            fs::create_dir_all(&snapshot).unwrap();
            std::os::unix::fs::symlink("../../blobs/abc", snapshot.join("m.gguf")).unwrap();
        }
        repository
    }

    #[test]
    fn out_back_and_gone() {
        let folder = TempDir::new();
        let repository = cache(&folder, &["c1"]);
        let path = repository.join("snapshots/c1/m.gguf");
        let out = take_out(&RealIo, &path, "m-1").unwrap();
        assert!(!path.is_symlink() && !repository.join("blobs/abc").exists());
        assert_eq!(fs::read(&out).unwrap(), b"weights", "its link holds in the trash");
        put_back(&RealIo, &out, &path).unwrap();
        assert!(path.is_symlink() && fs::read(&path).unwrap() == b"weights");
        assert!(!repository.join(TRASH).exists(), "an empty trash goes");
        delete(&RealIo, &path).unwrap();
        assert!(path.exists(), "what is not in the trash is never deleted");
        let out = take_out(&RealIo, &path, "m-2").unwrap();
        delete(&RealIo, &out).unwrap();
        assert!(!repository.join(TRASH).exists() && !repository.join("blobs/abc").exists());
    }

    #[test]
    fn what_another_snapshot_names_stays() {
        let folder = TempDir::new();
        let repository = cache(&folder, &["c1", "c2"]);
        let (path, other) = (repository.join("snapshots/c1/m.gguf"), repository.join("snapshots/c2/m.gguf"));
        let out = take_out(&RealIo, &path, "m").unwrap();
        assert_eq!(
            (fs::read(&out).unwrap(), fs::read(&other).unwrap()),
            (b"weights".into(), b"weights".into())
        );
        delete(&RealIo, &out).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"weights");
    }

    #[test]
    fn only_a_cache_is_one() {
        let check = |path: &str, expected: bool| assert_eq!(is_cached(Path::new(path)), expected, "{path}");
        check("/c/models--o--n/snapshots/c1/m.gguf", true);
        check("/c/models--o--n/snapshots/c1", true);
        check("/c/models--o--n/snapshots", false);
        check("/c/models--o--n/blobs/abc", false);
        check("/c/o/n/snapshots/c1/m.gguf", false);
        check("/c/models--o--n/.removed/m-1/snapshots/c1/m.gguf", true);
    }
}

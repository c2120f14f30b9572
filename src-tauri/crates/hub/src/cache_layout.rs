//! File layout of downloaded models: the cache shared with the hub's own tools, or the application's folder.

use std::path::{Path, PathBuf};

use io::Io;

use crate::address::{Repository, is_commit};
use crate::error::{HubError, Result};
use crate::files::file_name;

/// Length limit of a path component that leaves space for our suffixes on every file system.
const MAX_NAME_BYTES: usize = 200;

/// Layout of a model folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `models--OWNER--NAME/{blobs,refs,snapshots}`: the Hugging Face cache, shared with other programs.
    HubCache,
    /// `OWNER/NAME/FILE`
    Folder,
}

/// A folder that holds models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDir {
    /// The folder.
    pub root: PathBuf,
    /// Its layout.
    pub layout: Layout,
}

/// Paths of one file, during the download and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePaths {
    pub part: PathBuf,
    pub journal: PathBuf,
    pub lock: PathBuf,
    /// The complete file.
    pub data: PathBuf,
    /// Symbolic link under the file's own name, and its target.
    pub link: Option<(PathBuf, PathBuf)>,
}

impl FilePaths {
    /// Path under which the file is used.
    pub fn used(&self) -> &Path {
        self.link.as_ref().map_or(&self.data, |(link, _)| link)
    }

    /// Files that an interrupted download leaves behind.
    pub fn leftovers(&self) -> [&Path; 3] {
        [&self.part, &self.journal, &self.lock]
    }
}

impl ModelDir {
    fn repository(&self, repository: &Repository) -> PathBuf {
        let Repository { owner, name } = repository;
        match self.layout {
            Layout::HubCache => self.root.join(format!("models--{owner}--{name}")),
            Layout::Folder => self.root.join(owner).join(name),
        }
    }

    /// Paths of a file. `key` identifies the content, such as its hash. Errors for a path that leaves the folder or that
    /// some operating system does not allow.
    pub(crate) fn paths(
        &self,
        repository: &Repository,
        revision: &str,
        path: &str,
        key: &str,
    ) -> Result<FilePaths> {
        check(path)?;
        let folder = self.repository(repository);
        let beside = |data: &Path, ending: &str| {
            let name = data.file_name().unwrap_or_default().to_string_lossy();
            data.with_file_name(format!(".{name}.{ending}"))
        };
        let (data, link) = match self.layout {
            Layout::Folder => (folder.join(path), None),
            Layout::HubCache => {
                check(key)?;
                check(revision)?;
                let ups = path.matches('/').count() + 2;
                let target = PathBuf::from("../".repeat(ups)).join("blobs").join(key);
                let link = folder.join("snapshots").join(revision).join(path);
                (folder.join("blobs").join(key), Some((link, target)))
            }
        };
        // A part belongs to one content: another revision of the file must not resume it.
        let short: String = key.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
        Ok(FilePaths {
            part: beside(&data, &format!("{short}.part")),
            journal: beside(&data, &format!("{short}.journal")),
            lock: beside(&data, &format!("{short}.lock")),
            data,
            link,
        })
    }

    /// Moves the verified part into place. Readers see either nothing or the whole file.
    pub(crate) fn place(&self, io: &dyn Io, paths: &FilePaths) -> Result<()> {
        io.rename(&paths.part, &paths.data)?;
        self.link(io, paths)
    }

    /// Makes the link under the file's own name, if the layout has links.
    pub(crate) fn link(&self, io: &dyn Io, paths: &FilePaths) -> Result<()> {
        let Some((link, target)) = &paths.link else { return Ok(()) };
        if let Some(folder) = link.parent() {
            io.create_dir_all(folder)?;
        }
        if io.symlink(target, link).is_err() {
            // Without symbolic links the hub's own tools put the file itself there.
            io.rename(&paths.data, link)?;
        }
        Ok(())
    }

    /// Records a branch's newest commit as the hub's own tools do.
    pub(crate) fn record_branch(&self, io: &dyn Io, repository: &Repository, branch: &str, commit: &str) {
        if self.layout != Layout::HubCache
            || !is_commit(commit)
            || is_commit(branch)
            || check(branch).is_err()
        {
            return;
        }
        let path = self.repository(repository).join("refs").join(branch);
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        // Best effort: the file is usable without it.
        let _ = io.create_dir_all(&folder).and_then(|()| io.write_atomic(&path, commit.as_bytes()));
    }
}

/// Device names reserved by Windows.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// Refuses paths that could leave the folder or that some operating system does not allow.
fn check(path: &str) -> Result<()> {
    let is_device = |name: &str| {
        let stem = name.split('.').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
        DEVICES.contains(&stem.to_ascii_lowercase().as_str())
    };
    let is_fine = |name: &str| {
        !name.is_empty()
            && name.len() <= MAX_NAME_BYTES
            && !name.chars().any(|c| c.is_control() || r#"\:*?"<>|"#.contains(c))
            && !name.ends_with(['.', ' '])
            && !name.starts_with(' ')
            && !is_device(name)
    };
    if !path.is_empty() && path.split('/').all(is_fine) && !file_name(path).starts_with('.') {
        return Ok(());
    }
    Err(HubError::new(
        "hub.file_name",
        format!("The file name {path:?} can't be used on this system."),
        "Choose another model, and report this to its publisher.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> Repository {
        Repository::parse("a/b").unwrap()
    }

    #[test]
    fn f29_names_that_lead_elsewhere_are_refused() {
        let place = ModelDir { root: "/m".into(), layout: Layout::Folder };
        for path in ["x.gguf", "sub/x.gguf", "Größe.gguf"] {
            assert!(place.paths(&repository(), "main", path, "k").is_ok(), "{path}");
        }
        let long = "x".repeat(201);
        for path in [
            "",
            "../x",
            "a/../x",
            "/x",
            "C:x",
            "a\\x",
            "nul",
            "NUL.gguf",
            "com1.gguf",
            "x.",
            "x ",
            " x",
            "a//x",
            "a\nx",
            ".hidden",
            &long,
        ] {
            let error = place.paths(&repository(), "main", path, "k").unwrap_err();
            assert_eq!(error.code(), "hub.file_name", "{path:?}");
        }
        let cache = ModelDir { root: "/m".into(), layout: Layout::HubCache };
        assert!(cache.paths(&repository(), "main", "x", "../k").is_err());
        assert!(cache.paths(&repository(), "../main", "x", "k").is_err());
    }

    #[test]
    fn the_cache_is_laid_out_as_the_hubs_own_tools_do() {
        let cache = ModelDir { root: "/m".into(), layout: Layout::HubCache };
        let paths = cache.paths(&repository(), "c0", "sub/x.gguf", "abc").unwrap();
        assert_eq!(paths.data, Path::new("/m/models--a--b/blobs/abc"));
        let (link, target) = paths.link.unwrap();
        assert_eq!(link, Path::new("/m/models--a--b/snapshots/c0/sub/x.gguf"));
        assert_eq!(target, Path::new("../../../blobs/abc"));
        assert_eq!(paths.part, Path::new("/m/models--a--b/blobs/.abc.abc.part"));
    }
}

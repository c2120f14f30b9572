//! Where other programs keep models, and which files of a folder are models: paths and names,
//! nothing is opened.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use contract::types::ModelSource;

/// Models don't lie deeper than this, and links may form cycles.
const MAX_DEPTH: usize = 8;
/// Entries of one root: a home folder that was added by mistake must not keep the program busy for hours.
const MAX_ENTRIES: usize = 50_000;

/// Of a file that names a snapshot by its hash.
const MAX_REF_BYTES: u64 = 4 << 10;

/// A folder to look through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRoot {
    pub path: PathBuf,
    pub source: ModelSource,
}

/// Folders of other programs, there or not. `variable` reads the environment.
pub fn known(home: Option<&Path>, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<ModelRoot> {
    let given = |name: &str| variable(name).filter(|path| !path.as_os_str().is_empty());
    let cache = given("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")));
    let hub = given("HF_HUB_CACHE")
        .or_else(|| Some(given("HF_HOME")?.join("hub")))
        .or_else(|| Some(cache?.join("huggingface").join("hub")));
    let studio = [&[".lmstudio", "models"][..], &[".cache", "lm-studio", "models"]];
    let studio =
        studio.iter().filter_map(|parts| Some(parts.iter().fold(home?.to_owned(), |at, part| at.join(part))));
    let hub = hub.map(|path| ModelRoot { path, source: ModelSource::HubCache });
    hub.into_iter().chain(studio.map(|path| ModelRoot { path, source: ModelSource::LmStudio })).collect()
}

/// Models below a root: files, and folders of safetensors. What can't be read below it is passed over; the root itself
/// that can't be read is an error.
pub fn candidates(root: &ModelRoot) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(&root.path)?;
    let mut walk = Walk { n_left: MAX_ENTRIES, found: Vec::new(), seen: HashSet::new() };
    match root.source {
        ModelSource::HubCache => {
            for repository in entries(&root.path) {
                if name_of(&repository).starts_with("models--") {
                    walk.repository(&repository);
                }
            }
        }
        ModelSource::BuiltIn
        | ModelSource::File
        | ModelSource::Owned
        | ModelSource::LmStudio
        | ModelSource::Folder
        | ModelSource::Remote => walk.folder(&root.path, MAX_DEPTH),
    }
    walk.found.sort();
    Ok(walk.found)
}

struct Walk {
    n_left: usize,
    found: Vec<PathBuf>,
    /// Real places of folders: links must not lead round in circles.
    seen: HashSet<PathBuf>,
}

impl Walk {
    /// Of several snapshots the one that is in use, else all: a file of the newest comes first by its real place.
    fn repository(&mut self, repository: &Path) {
        let snapshots = repository.join("snapshots");
        let main = io::read_regular_file(&repository.join("refs").join("main"), MAX_REF_BYTES);
        let main = String::from_utf8(main.unwrap_or_default()).unwrap_or_default();
        let main = Some(main.trim()).filter(|name| is_plain(name)).map(|name| snapshots.join(name));
        match main.filter(|path| path.is_dir()) {
            Some(path) => self.folder(&path, MAX_DEPTH),
            None => entries(&snapshots).iter().for_each(|path| self.folder(path, MAX_DEPTH)),
        }
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        if depth == 0 || !self.seen.insert(real) {
            return;
        }
        if weights::is_model_folder(folder) {
            self.found.push(folder.to_owned());
        }
        for path in entries(folder) {
            let Some(n_left) = self.n_left.checked_sub(1) else { return };
            self.n_left = n_left;
            if name_of(&path).starts_with('.') {
                continue;
            }
            if path.is_dir() {
                self.folder(&path, depth - 1);
            } else if is_gguf_model(&name_of(&path)) {
                self.found.push(path);
            }
        }
    }
}

/// Sorted; none where it can't be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// A standalone model: not a projector of another one, not a later part of a split one.
fn is_gguf_model(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_first = part_of(&lower).is_none_or(|(part, _)| part == 1);
    lower.ends_with(".gguf") && !lower.contains("mmproj") && is_first
}

/// `x-00002-of-00003.gguf` is part 2 of 3.
pub fn part_of(name: &str) -> Option<(u32, u32)> {
    let (front, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (_, number) = front.rsplit_once('-')?;
    let five = |text: &str| (text.len() == 5).then(|| text.parse().ok()).flatten();
    Some((five(number)?, five(count)?))
}

/// Makes the path absolute without following a link. In the hub's cache the link has the model's
/// name and lies beside its other parts; its target is named by its hash.
pub fn under_its_name(path: &Path) -> std::io::Result<PathBuf> {
    let file = std::fs::canonicalize(path)?;
    match (path.file_name(), std::path::absolute(path)?.parent()) {
        (Some(name), Some(folder)) if path.is_symlink() => Ok(std::fs::canonicalize(folder)?.join(name)),
        _ => Ok(file),
    }
}

/// All files of a model: one, the parts of a split one, or what a folder of safetensors holds. Those that are missing are
/// named all the same.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        return entries(path).into_iter().filter(|path| path.is_file()).collect();
    }
    let name = name_of(path);
    match part_of(&name.to_ascii_lowercase()) {
        Some((_, count)) if count <= MAX_PARTS => {
            let stem = &name[..name.len() - "-00001-of-00001.gguf".len()];
            (1..=count)
                .map(|part| path.with_file_name(format!("{stem}-{part:05}-of-{count:05}.gguf")))
                .collect()
        }
        Some(_) | None => vec![path.to_owned()],
    }
}

/// As for those who open them.
const MAX_PARTS: u32 = 4096;

/// What the file system knows of a model without opening it: lengths and times of its files. Empty: it isn't there.
pub fn stamp(path: &Path) -> String {
    let mut text = String::new();
    for file in files_of(path) {
        let Ok(metadata) = std::fs::metadata(&file) else { return String::new() };
        let since = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let ms = since.map_or(0, |since| since.as_millis());
        text.push_str(&format!("{}:{ms};", metadata.len()));
    }
    text
}

/// Bytes of all files that are there.
pub fn disk_bytes(path: &Path) -> u64 {
    files_of(path).iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::TempDir;

    #[test]
    fn folders_of_others_follow_their_variables() {
        let home = Path::new("/home/me");
        let paths = |set: &[(&str, &str)]| -> Vec<String> {
            let variable =
                |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| PathBuf::from(value));
            known(Some(home), &variable).into_iter().map(|root| root.path.display().to_string()).collect()
        };
        let studio = ["/home/me/.lmstudio/models", "/home/me/.cache/lm-studio/models"];
        for (set, hub) in [
            (&[][..], "/home/me/.cache/huggingface/hub"),
            (&[("HF_HOME", "/big/hf")], "/big/hf/hub"),
            (&[("HF_HOME", "/big/hf"), ("HF_HUB_CACHE", "/hub")], "/hub"),
            (&[("HF_HUB_CACHE", "")], "/home/me/.cache/huggingface/hub"),
            (&[("XDG_CACHE_HOME", "/c")], "/c/huggingface/hub"),
        ] {
            assert_eq!(paths(set), [hub, studio[0], studio[1]]);
        }
        assert!(known(None, &|_| None).is_empty());
    }

    #[test]
    fn only_whole_models_are_found_and_parts_once() {
        let folder = TempDir::new();
        let root = folder.path();
        for name in [
            "a.gguf",
            "b-00001-of-00002.gguf",
            "b-00002-of-00002.gguf",
            "mmproj-a.gguf",
            "notes.txt",
            ".hidden.gguf",
            "one/two/c.GGUF",
            "tensors/config.json",
            "tensors/model.safetensors",
            "nothing/config.json",
        ] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let of = |path: &Path| ModelRoot { path: path.to_owned(), source: ModelSource::Folder };
        let found: Vec<String> = candidates(&of(root)).unwrap().iter().map(|path| name_of(path)).collect();
        assert_eq!(found, ["a.gguf", "b-00001-of-00002.gguf", "c.GGUF", "tensors"]);
        assert_eq!(files_of(&root.join("b-00001-of-00002.gguf")).len(), 2);
        assert_eq!(disk_bytes(&root.join("tensors")), 2);
        let before = stamp(&root.join("a.gguf"));
        std::fs::write(root.join("a.gguf"), b"longer").unwrap();
        assert!(before != stamp(&root.join("a.gguf")) && stamp(&root.join("gone.gguf")).is_empty());
        assert!(candidates(&of(&root.join("no such folder"))).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_hub_cache_is_read_by_its_snapshots_and_links_end() {
        let folder = TempDir::new();
        let root = folder.path();
        let repository = root.join("models--o--n");
        let put = |at: &str| {
            let path = repository.join(at);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, b"abc").unwrap();
        };
        put("blobs/deadbeef");
        put("snapshots/old/m.gguf");
        std::fs::create_dir_all(repository.join("snapshots/abc123")).unwrap();
        std::os::unix::fs::symlink("../../blobs/deadbeef", repository.join("snapshots/abc123/m.gguf"))
            .unwrap();
        std::os::unix::fs::symlink("..", repository.join("snapshots/abc123/up")).unwrap();
        let hub = ModelRoot { path: root.to_owned(), source: ModelSource::HubCache };
        assert_eq!(candidates(&hub).unwrap().len(), 2, "without refs all snapshots count");
        put("refs/main");
        std::fs::write(repository.join("refs/main"), "abc123\n").unwrap();
        let found = candidates(&hub).unwrap();
        assert!(found.iter().any(|path| path.ends_with("abc123/m.gguf")), "{found:?}");
        std::fs::write(repository.join("refs/main"), "../../../..").unwrap();
        assert_eq!(candidates(&hub).unwrap().len(), 2);
    }
}

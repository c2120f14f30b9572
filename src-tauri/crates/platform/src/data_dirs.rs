//! Where the program stores its data: the system's folders, or everything under one.

use std::path::{Path, PathBuf};

use contract::{Error, ErrorKind, Result};
use io::OperatingSystem;

/// The environment variable that frontends read.
pub const DATA_DIR_VARIABLE: &str = "INGLENOOK_DATA_DIR";

/// Name of our folder among those of other programs.
const NAME: &str = "inglenook";

/// Names, and beginnings of names, of what the program keeps in its data folder. Others in a folder that the user chose are
/// not ours.
const OWN_NAMES: &[&str] = &[
    "inglenook",
    ".inglenook",
    "restoring-",
    "backups",
    "running",
    "keys",
    "audit",
    "logs",
    "cache",
    "models",
    "contexts",
    "images",
    "tunes",
    "quantized",
    "plugins",
    "serving",
    "window",
    "catalog.toml",
    "chunks",
    "processors.json",
    "speeds.json",
    "cards.json",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDirs {
    /// Conversations, settings, keys.
    pub data: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
    pub logs: PathBuf,
}

impl DataDirs {
    /// `chosen`: a flag's or `INGLENOOK_DATA_DIR`'s value; without it the system says where.
    pub fn resolve(chosen: Option<PathBuf>) -> Result<Self> {
        if let Some(folder) = chosen.filter(|folder| !folder.as_os_str().is_empty()) {
            let absolute = std::path::absolute(&folder).unwrap_or(folder);
            return Ok(Self::under(&absolute));
        }
        let system = directories::BaseDirs::new().ok_or_else(|| {
            Error::new(
                ErrorKind::Input,
                "dirs.no_home",
                "Your home folder is unknown.",
                format!("Choose a folder with --data-dir or {DATA_DIR_VARIABLE}."),
            )
        })?;
        Ok(Self::of_system(OperatingSystem::HERE, system.data_dir(), system.cache_dir()))
    }

    /// Below the folders that a system has for data and caches of all programs. Windows has one folder for both on many
    /// computers, so there they are separate below ours.
    fn of_system(system: OperatingSystem, data: &Path, cache: &Path) -> Self {
        let (data, cache) = match system {
            OperatingSystem::Linux | OperatingSystem::MacOs => (data.join(NAME), cache.join(NAME)),
            OperatingSystem::Windows => (data.join(NAME).join("data"), cache.join(NAME).join("cache")),
        };
        Self { logs: data.join("logs"), cache, data }
    }

    /// Everything under one folder.
    pub fn under(folder: &Path) -> Self {
        Self { data: folder.to_owned(), cache: folder.join("cache"), logs: folder.join("logs") }
    }

    /// Makes the folders if they are missing, and keeps other users out of them, whatever the umask says.
    pub fn make_private(&self) -> Result<()> {
        let is_ours = |name: &str| OWN_NAMES.iter().any(|own| name.starts_with(own));
        io::make_private(&self.data, &is_ours)?;
        for folder in [&self.cache, &self.logs] {
            // What is in them can be made again, or done without.
            let _ = io::make_private(folder, &|_| true);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_folders() {
        use OperatingSystem::{Linux, MacOs, Windows};
        let check = |system, data: &str, cache: &str, expected: [&str; 3]| {
            let dirs = DataDirs::of_system(system, Path::new(data), Path::new(cache));
            let [data, cache, logs] = expected.map(PathBuf::from);
            assert_eq!(dirs, DataDirs { data, cache, logs }, "{system:?}");
        };
        check(
            Linux,
            "/home/a/.local/share",
            "/home/a/.cache",
            [
                "/home/a/.local/share/inglenook",
                "/home/a/.cache/inglenook",
                "/home/a/.local/share/inglenook/logs",
            ],
        );
        let support = "/Users/a/Library/Application Support";
        check(
            MacOs,
            support,
            "/Users/a/Library/Caches",
            [
                "/Users/a/Library/Application Support/inglenook",
                "/Users/a/Library/Caches/inglenook",
                "/Users/a/Library/Application Support/inglenook/logs",
            ],
        );
        check(Windows, "R", "L", ["R/inglenook/data", "L/inglenook/cache", "R/inglenook/data/logs"]);
    }

    /// Data of earlier versions lies where this function found it.
    #[test]
    fn the_folders_are_those_of_the_directories_crate() {
        let expected = directories::ProjectDirs::from("", "", NAME).unwrap();
        let dirs = DataDirs::resolve(None).unwrap();
        assert_eq!((dirs.data.as_path(), dirs.cache.as_path()), (expected.data_dir(), expected.cache_dir()));
    }
}

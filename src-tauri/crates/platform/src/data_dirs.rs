//! Where the program stores its data: the system's folders, or everything under one.

use std::path::{Path, PathBuf};

use contract::{Error, ErrorKind, Result};

/// The environment variable that frontends read.
pub const DATA_DIR_VARIABLE: &str = "INGLENOOK_DATA_DIR";

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
        let system = directories::ProjectDirs::from("", "", "inglenook").ok_or_else(|| {
            Error::new(
                ErrorKind::Input,
                "dirs.no_home",
                "Your home folder is unknown.",
                format!("Choose a folder with --data-dir or {DATA_DIR_VARIABLE}."),
            )
        })?;
        let data = system.data_dir().to_owned();
        Ok(Self { logs: data.join("logs"), cache: system.cache_dir().to_owned(), data })
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

//! Folders that only the user may enter, and the files in them.
//!
//! Guarantees, whatever the umask: a folder made in a private folder is 0700, and a file is 0600. Elsewhere the umask
//! decides. On Windows the access list of the user's profile does this, and nothing here changes it.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::IoError;

/// Deepest folder below the data folder that is looked into: models lie in `models/OWNER/NAME/…`.
const MAX_DEPTH: usize = 8;

/// Entries that one start looks at. Only the user enters a folder that holds more.
const MAX_ENTRIES: usize = 100_000;

/// Creates or opens a file as `options` say. In a private folder a new file is for the user alone.
pub(crate) fn open_private(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    let is_private = is_private_folder(folder_of(path));
    if is_private {
        unix::set_creation_mode(options);
    }
    let file = options.open(path)?;
    if is_private {
        // Fails on file systems without modes, which have no others to keep out either.
        let _ = unix::restrict_file(&file);
    }
    Ok(file)
}

/// Folder of a file; the working directory where the path names none.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a folder and its parents. Those made in a private folder are private.
pub(crate) fn create_folders(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    let first_made = missing.last().filter(|path| !path.as_os_str().is_empty());
    let is_private = first_made.is_some_and(|first| is_private_folder(folder_of(first)));
    if !is_private {
        return std::fs::create_dir_all(path);
    }
    for folder in missing.into_iter().rev().filter(|path| !path.as_os_str().is_empty()) {
        match std::fs::create_dir(folder) {
            // As for files.
            Ok(()) => _ = unix::restrict_folder(folder),
            // Another process may have made it meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Whether a folder is the user's and no one else may enter it. Always false on Windows.
fn is_private_folder(folder: &Path) -> bool {
    unix::is_private(folder)
}

/// Makes the folder if it is missing, and makes it private with the entries in it that `is_ours` accepts by name, and all
/// below those. Links are not followed, and files with several names keep their mode: another program may own them.
/// Folders with the sticky bit, such as `/tmp`, stay as they are.
///
/// Entries whose mode cannot be changed are left; the folder above still protects them.
pub fn make_private(folder: &Path, is_ours: &dyn Fn(&str) -> bool) -> Result<(), IoError> {
    let failed = |e| IoError::new("create the folder", folder, e);
    if !folder.is_dir() {
        create_folders(folder).map_err(failed)?;
    }
    if !unix::can_be_private(folder) {
        return Ok(());
    }
    let mut n_left = MAX_ENTRIES;
    for path in entries(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_ours(&name) {
            restrict_tree(&path, MAX_DEPTH, &mut n_left);
        }
    }
    // Fails for a folder of another user or on a file system without modes: the program works there all the same.
    let _ = unix::restrict_folder(folder);
    Ok(())
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// Restricts a file, or a folder after everything in it. A private folder is taken as done: what it holds was restricted
/// when it was, or made there.
fn restrict_tree(path: &Path, depth: usize, n_left: &mut usize) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
    if *n_left == 0 {
        return;
    }
    *n_left -= 1;
    if metadata.is_dir() {
        if depth > 0 && !is_private_folder(path) {
            entries(path).for_each(|entry| restrict_tree(&entry, depth - 1, n_left));
            let _ = unix::restrict_folder(path);
        }
    } else if !metadata.is_symlink() {
        unix::restrict_entry(path, &metadata);
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::{File, Metadata, OpenOptions, Permissions};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    /// What group and others may do.
    const OTHERS: u32 = 0o077;
    const STICKY: u32 = 0o1000;
    const FILE_MODE: u32 = 0o600;
    const FOLDER_MODE: u32 = 0o700;

    pub fn is_private(folder: &Path) -> bool {
        std::fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & OTHERS == 0)
    }

    pub fn can_be_private(folder: &Path) -> bool {
        std::fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & STICKY == 0)
    }

    pub fn set_creation_mode(options: &mut OpenOptions) {
        options.mode(FILE_MODE);
    }

    /// Also gives the user what a strict umask took.
    pub fn restrict_file(file: &File) -> std::io::Result<()> {
        let mode = file.metadata()?.mode();
        if mode & OTHERS == 0 && mode & FILE_MODE == FILE_MODE {
            return Ok(());
        }
        file.set_permissions(Permissions::from_mode(mode & FOLDER_MODE | FILE_MODE))
    }

    pub fn restrict_folder(folder: &Path) -> std::io::Result<()> {
        match std::fs::metadata(folder)?.mode() & 0o7777 {
            FOLDER_MODE => Ok(()),
            _ => std::fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)),
        }
    }

    /// A program stays one that its owner can start.
    pub fn restrict_entry(path: &Path, metadata: &Metadata) {
        if metadata.mode() & OTHERS != 0 && metadata.nlink() == 1 {
            let _ = std::fs::set_permissions(path, Permissions::from_mode(metadata.mode() & FOLDER_MODE));
        }
    }
}

#[cfg(not(unix))]
mod unix {
    use std::fs::{File, Metadata, OpenOptions};
    use std::path::Path;

    pub fn is_private(_: &Path) -> bool {
        false
    }

    pub fn can_be_private(_: &Path) -> bool {
        false
    }

    pub fn set_creation_mode(_: &mut OpenOptions) {}

    pub fn restrict_file(_: &File) -> std::io::Result<()> {
        Ok(())
    }

    pub fn restrict_folder(_: &Path) -> std::io::Result<()> {
        Ok(())
    }

    pub fn restrict_entry(_: &Path, _: &Metadata) {}
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{FileLock, Io, RealIo};

    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str, mode: u32) -> Self {
            let path = std::env::temp_dir().join(format!("inglenook-private-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder");
            chmod(&path, mode);
            Self(path)
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).expect("an entry").permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_made_in_a_private_folder_is_private() {
        let folder = TestFolder::new("new", 0o700);
        let at = |name: &str| folder.0.join(name);
        RealIo.write_atomic(&at("a"), b"x").unwrap();
        RealIo.append(&at("b"), b"x").unwrap();
        drop(RealIo.open_random(&at("c")).unwrap());
        let _lock = FileLock::create(&at("d.lock")).unwrap();
        let _other = FileLock::try_acquire(&at("e.lock")).unwrap();
        RealIo.create_dir_all(&at("f/g")).unwrap();
        RealIo.write_atomic(&at("f/g/h"), b"x").unwrap();
        for file in ["a", "b", "c", "d.lock", "e.lock", "f/g/h"] {
            assert_eq!(mode(&at(file)), 0o600, "{file}");
        }
        assert_eq!((mode(&at("f")), mode(&at("f/g"))), (0o700, 0o700));
    }

    #[test]
    fn elsewhere_the_umask_decides() {
        let folder = TestFolder::new("open", 0o755);
        let at = |name: &str| folder.0.join(name);
        std::fs::write(at("plain"), b"x").unwrap();
        std::fs::create_dir(at("plain-folder")).unwrap();
        RealIo.write_atomic(&at("a"), b"x").unwrap();
        RealIo.create_dir_all(&at("b/c")).unwrap();
        assert_eq!(mode(&at("a")), mode(&at("plain")));
        assert_eq!(mode(&at("b/c")), mode(&at("plain-folder")));
    }

    #[test]
    fn an_older_folder_is_tightened_and_nothing_else() {
        let folder = TestFolder::new("older", 0o755);
        let at = |name: &str| folder.0.join(name);
        for sub in ["ours", "ours/deep", "theirs"] {
            std::fs::create_dir_all(at(sub)).unwrap();
            chmod(&at(sub), 0o755);
        }
        let files = [("ours/a", 0o666), ("ours/deep/tool", 0o755), ("theirs/b", 0o644), ("ours/twin", 0o644)];
        for (file, mode) in files {
            std::fs::write(at(file), b"x").unwrap();
            chmod(&at(file), mode);
        }
        std::fs::hard_link(at("ours/twin"), at("theirs/twin")).unwrap();
        std::os::unix::fs::symlink(at("theirs/b"), at("ours/link")).unwrap();
        make_private(&folder.0, &|name| name == "ours").unwrap();
        let expected = [
            ("", 0o700),
            ("ours", 0o700),
            ("ours/a", 0o600),
            ("ours/deep", 0o700),
            ("ours/deep/tool", 0o700),
            ("ours/twin", 0o644),
            ("theirs", 0o755),
            ("theirs/b", 0o644),
        ];
        for (path, expected) in expected {
            assert_eq!(mode(&at(path)), expected, "{path:?}");
        }
    }

    #[test]
    fn a_shared_folder_with_the_sticky_bit_stays_as_it_is() {
        let folder = TestFolder::new("sticky", 0o1777);
        make_private(&folder.0, &|_| true).unwrap();
        assert_eq!(mode(&folder.0), 0o1777);
    }

    #[test]
    fn a_missing_folder_is_made_private() {
        let folder = TestFolder::new("missing", 0o755);
        let data = folder.0.join("a/data");
        make_private(&data, &|_| true).unwrap();
        assert_eq!(mode(&data), 0o700);
    }
}

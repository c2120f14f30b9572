//! Whether a data folder lies where other programs copy or delay its files: in a folder that is synchronized with a cloud
//! or another computer, or on a network drive. A database there can be damaged, or exist twice.

use std::path::{Path, PathBuf};

use io::OperatingSystem;

/// Names of folders whose contents a program synchronizes, in small letters.
const SYNCED_NAMES: &[(&str, &str)] = &[
    ("onedrive", "OneDrive"),
    ("dropbox", "Dropbox"),
    ("google drive", "Google Drive"),
    ("googledrive", "Google Drive"),
    ("my drive", "Google Drive"),
    ("mobile documents", "iCloud Drive"),
    ("icloud drive", "iCloud Drive"),
    ("iclouddrive", "iCloud Drive"),
    ("nextcloud", "Nextcloud"),
    ("owncloud", "ownCloud"),
    ("pclouddrive", "pCloud"),
    ("syncthing", "Syncthing"),
];

/// File systems of network drives, as Linux names them.
const NETWORK_SYSTEMS: &[&str] = &[
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "ceph",
    "lustre",
    "davfs",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.glusterfs",
    "fuse.davfs2",
];

/// Where Linux lists what is mounted: one line each, device, place, file system.
const MOUNTS: &str = "/proc/self/mounts";

/// What keeps a database in `folder` at risk: the name of the service, or of the network file system. None: nothing that
/// is known.
pub fn sync_risk(folder: &Path) -> Option<String> {
    let mounts = || std::fs::read_to_string(MOUNTS).unwrap_or_default();
    sync_risk_on(OperatingSystem::HERE, &folder.to_string_lossy(), &mounts)
}

fn sync_risk_on(system: OperatingSystem, folder: &str, mounts: &dyn Fn() -> String) -> Option<String> {
    let on_network = || match system {
        OperatingSystem::Linux => network_system(Path::new(folder), &mounts()),
        OperatingSystem::Windows => is_share(folder).then(|| "a network drive".to_owned()),
        // Volumes of other computers have no mark in their paths.
        OperatingSystem::MacOs => None,
    };
    synced_by(system, folder).map(str::to_owned).or_else(on_network)
}

/// Whether a path of Windows begins with the name of another computer: `\\server\share`, also as `\\?\UNC\server`.
fn is_share(folder: &str) -> bool {
    let folder = folder.replace('/', "\\");
    let Some(rest) = folder.strip_prefix(r"\\") else { return false };
    match rest.strip_prefix(r"?\") {
        Some(verbatim) => verbatim.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(r"UNC\")),
        None => !rest.starts_with(['.', '\\']),
    }
}

fn synced_by(system: OperatingSystem, folder: &str) -> Option<&'static str> {
    let names = system.path_parts(folder).map(str::to_lowercase);
    // A company's OneDrive is called "OneDrive - Company".
    let of_name = |name: String| {
        let is_it = |known: &str| name == known || name.starts_with(&format!("{known} - "));
        SYNCED_NAMES.iter().find(|(known, _)| is_it(known)).map(|(_, service)| *service)
    };
    names.filter_map(of_name).next()
}

fn network_system(folder: &Path, mounts: &str) -> Option<String> {
    let lines = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?.replace("\\040", " ");
        folder.starts_with(&place).then_some((place.len(), words.next()?))
    });
    // The innermost place counts, and of several there the last one.
    let (_, system) = lines.max_by_key(|(length, _)| *length)?;
    NETWORK_SYSTEMS.contains(&system).then(|| format!("a network drive ({system})"))
}

/// Databases that a synchronizing program put beside ours when two computers had changed it.
pub fn conflict_copies(folder: &Path, database: &str) -> Vec<PathBuf> {
    let stem = database.strip_suffix(".db").unwrap_or(database);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_copy = |name: &String| name.starts_with(stem) && name.ends_with(".db") && name != database;
    let mut copies: Vec<PathBuf> = names.filter(is_copy).map(|name| folder.join(name)).collect();
    copies.sort();
    copies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f42_folders_that_others_synchronize_are_known() {
        let mounts = "/dev/sda1 / ext4 rw 0 0\nhost:/home /home/anna nfs4 rw 0 0\n//nas/x /mnt/my\\040nas cifs rw 0 0\n\
                      tmpfs /home/anna/fast tmpfs rw 0 0\n";
        let risk = |folder: &str| sync_risk_on(OperatingSystem::Linux, folder, &|| mounts.to_owned());
        for (folder, expected) in [
            ("/home/tom/.local/share/inglenook", None),
            ("/home/tom/OneDrive - Example Ltd/inglenook", Some("OneDrive")),
            ("/Users/tom/Library/Mobile Documents/x", Some("iCloud Drive")),
            ("/home/tom/Dropbox/x", Some("Dropbox")),
            ("/home/tom/dropbox-notes/x", None),
            ("/home/anna/.local/share/inglenook", Some("a network drive (nfs4)")),
            ("/home/anna/fast/x", None),
            ("/mnt/my nas/x", Some("a network drive (cifs)")),
        ] {
            assert_eq!(risk(folder).as_deref(), expected, "{folder}");
        }
    }

    #[test]
    fn macos_and_windows_have_rules_of_their_own() {
        use OperatingSystem::{MacOs, Windows};
        for (system, folder, expected) in [
            (MacOs, "/Users/a/Library/Mobile Documents/x", Some("iCloud Drive")),
            (MacOs, "/Users/a/Library/Application Support/inglenook", None),
            (Windows, r"C:\Users\a\OneDrive - Example Ltd\x", Some("OneDrive")),
            (Windows, r"C:\Users\a\AppData\Roaming\inglenook\data", None),
            (Windows, r"\\nas\home\x", Some("a network drive")),
            (Windows, "//nas/home/x", Some("a network drive")),
            (Windows, r"\\?\UNC\nas\home", Some("a network drive")),
            (Windows, r"\\?\C:\Users\a", None),
            (Windows, r"\\.\pipe\x", None),
        ] {
            let found = sync_risk_on(system, folder, &|| panic!("only Linux has mounts"));
            assert_eq!(found.as_deref(), expected, "{system:?} {folder}");
        }
    }

    #[test]
    fn conflict_copies_are_told_from_our_own_files() {
        let folder = std::env::temp_dir().join(format!("inglenook-conflicts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let copies = [
            "inglenook (Anna's conflicted copy 2026-01-02).db",
            "inglenook-DESKTOP-7.db",
            "inglenook.sync-conflict-20260102-1.db",
        ];
        let ours = ["inglenook.db", "inglenook.db-wal", "inglenook.db.damaged-17", "other.db"];
        for name in copies.iter().chain(&ours) {
            std::fs::write(folder.join(name), b"").unwrap();
        }
        let found = conflict_copies(&folder, "inglenook.db");
        assert_eq!(found, copies.map(|name| folder.join(name)));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

//! Keys of other servers and of the hub: in the system's keychain where one runs, else encrypted in
//! the data folder. Storing a key returns which of the two holds it.
#![forbid(unsafe_code)]

mod encrypted_file;
mod keychain;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use io::{Io, OperatingSystem};
use zeroize::Zeroizing;

use contract::types::KeyPlace;
use contract::{Error, Result};
use encrypted_file::EncryptedKeyFile;
use keychain::Keychain;

/// Whether this session may have a keychain: one that has no bus to reach it by has none. `variable` looks into the
/// environment.
pub fn has_keychain(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    has_keychain_on(OperatingSystem::HERE, variable, &|path| path.exists())
}

/// macOS and Windows always have one. Elsewhere it is behind the session's bus.
fn has_keychain_on(
    system: OperatingSystem,
    variable: &dyn Fn(&str) -> Option<String>,
    exists: &dyn Fn(&Path) -> bool,
) -> bool {
    let set = |name: &str| variable(name).filter(|text| !text.is_empty());
    match system {
        OperatingSystem::MacOs | OperatingSystem::Windows => true,
        OperatingSystem::Linux => {
            let socket = set("XDG_RUNTIME_DIR").is_some_and(|folder| exists(&Path::new(&folder).join("bus")));
            socket || set("DBUS_SESSION_BUS_ADDRESS").is_some()
        }
    }
}

/// The longest key that is taken.
const MAX_KEY_BYTES: usize = 8192;

/// A key. It is never printed by accident, and is wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The kept keys.
pub struct Keys {
    file: EncryptedKeyFile,
    keychain: Keychain,
}

impl Keys {
    /// `has_keychain`: whether one may be looked for at all.
    pub fn new(data: &Path, io: Arc<dyn Io>, has_keychain: bool) -> Self {
        Self { file: EncryptedKeyFile::new(data, io), keychain: Keychain::new(has_keychain) }
    }

    /// Where a new key goes. `wants_file`: whether or not a keychain runs.
    pub fn place(&self, wants_file: bool) -> KeyPlace {
        if !wants_file && self.keychain.runs() { KeyPlace::Keychain } else { KeyPlace::File }
    }

    /// Reads from the encrypted file, with or without a keychain: values too long for some
    /// keychains are always there. None: there is no such name.
    pub fn get(&self, name: &str) -> Result<Option<Secret>> {
        self.file.get(name)
    }

    /// None: there is none of that name there.
    pub fn get_at(&self, name: &str, place: KeyPlace) -> Result<Option<Secret>> {
        match place {
            KeyPlace::Keychain => self.keychain.get(name),
            KeyPlace::File => self.get(name),
        }
    }

    /// Where it is kept now.
    pub fn put(&self, name: &str, key: &str, wants_file: bool) -> Result<KeyPlace> {
        let key = key.trim();
        if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::input(
                "keys.key",
                "This is not a valid key: keys consist of printable ASCII characters without spaces.",
                "Copy the key again from the provider's page.",
            ));
        }
        let place = self.place(wants_file);
        match place {
            KeyPlace::Keychain => self.keychain.put(name, key)?,
            KeyPlace::File => self.file.put(name, key)?,
        }
        Ok(place)
    }

    /// Writes to the encrypted file, whatever the text's length.
    pub fn put_text(&self, name: &str, text: &str) -> Result<()> {
        self.file.put(name, text)
    }

    /// From the file. One that isn't there is no error.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.file.remove(name)
    }

    /// One that isn't there is no error.
    pub fn remove_at(&self, name: &str, place: KeyPlace) -> Result<()> {
        match place {
            KeyPlace::Keychain => self.keychain.remove(name),
            KeyPlace::File => self.remove(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use io::RealIo;

    use super::*;
    use crate::encrypted_file::tests::Folder;

    #[test]
    fn macos_and_windows_have_a_keychain_and_linux_where_its_session_has_a_bus() {
        use OperatingSystem::{Linux, MacOs, Windows};
        let check = |system, variables: &[(&str, &str)], expected| {
            let variable = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            let exists = |path: &Path| path == Path::new("/run/user/1/bus");
            assert_eq!(has_keychain_on(system, &variable, &exists), expected, "{system:?} {variables:?}");
        };
        check(MacOs, &[], true);
        check(Windows, &[], true);
        check(Linux, &[], false);
        check(Linux, &[("XDG_RUNTIME_DIR", "/run/user/1")], true);
        check(Linux, &[("XDG_RUNTIME_DIR", "/run/user/2")], false);
        check(Linux, &[("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x")], true);
        check(Linux, &[("DBUS_SESSION_BUS_ADDRESS", "")], false);
    }

    #[test]
    fn the_keychain_comes_first_and_the_file_where_it_is_wanted_or_nothing_else_runs() {
        let folder = Folder::new("order");
        let with = |keychain| Keys { file: EncryptedKeyFile::new(folder.path(), Arc::new(RealIo)), keychain };
        let text = |key: Option<Secret>| key.map(|key| key.reveal().to_owned());
        let keys = with(Keychain::of_memory());
        assert_eq!(keys.put("a", " sk-1 \n", false).unwrap(), KeyPlace::Keychain);
        assert_eq!(keys.put("b", "sk-2", true).unwrap(), KeyPlace::File);
        assert_eq!(text(keys.get_at("a", KeyPlace::Keychain).unwrap()).as_deref(), Some("sk-1"));
        assert_eq!(text(keys.get_at("a", KeyPlace::File).unwrap()), None);
        assert_eq!(text(keys.get_at("b", KeyPlace::File).unwrap()).as_deref(), Some("sk-2"));
        keys.remove_at("a", KeyPlace::Keychain).unwrap();
        keys.remove_at("a", KeyPlace::Keychain).unwrap();
        assert_eq!(text(keys.get_at("a", KeyPlace::Keychain).unwrap()), None);
        for wrong in ["", "with space", "\u{fc}", &"x".repeat(9000)] {
            assert_eq!(keys.put("c", wrong, false).unwrap_err().code(), "keys.key");
        }

        let none = with(Keychain::new(false));
        assert_eq!((none.place(false), none.place(true)), (KeyPlace::File, KeyPlace::File));
        assert_eq!(none.put("c", "sk-3", false).unwrap(), KeyPlace::File);
        let error = none.get_at("a", KeyPlace::Keychain).unwrap_err();
        assert_eq!(
            error.code(),
            "keys.no_keychain",
            "a key that is there and can't be had is no missing key"
        );
    }
}

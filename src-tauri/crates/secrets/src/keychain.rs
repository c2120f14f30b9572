//! The system's keychain: the Secret Service of a desktop (GNOME Keyring, KWallet, KeePassXC),
//! macOS's Keychain, Windows' Credential Manager. It is looked up once, when a key is first
//! requested.

use std::sync::{Arc, OnceLock};

use keyring_core::{CredentialStore, Entry};
use zeroize::Zeroizing;

use super::Secret;
use contract::{Error, ErrorKind, Result};

/// Under which its owner finds our keys.
const SERVICE: &str = "Inglenook";

type KeychainEntry = std::result::Result<Arc<CredentialStore>, String>;

pub struct Keychain {
    is_looked_for: bool,
    /// Or why there is none.
    store: OnceLock<KeychainEntry>,
}

impl Keychain {
    pub fn new(is_looked_for: bool) -> Self {
        Self { is_looked_for, store: OnceLock::new() }
    }

    pub fn runs(&self) -> bool {
        self.store().is_ok()
    }

    /// None: there is none of that name.
    pub fn get(&self, name: &str) -> Result<Option<Secret>> {
        let kept = self.entry(name)?.get_password();
        match kept {
            Ok(key) => Ok(Some(Secret(Zeroizing::new(key)))),
            Err(keyring_core::Error::NoEntry) => Ok(None),
            Err(error) => Err(refused(&error)),
        }
    }

    pub fn put(&self, name: &str, key: &str) -> Result<()> {
        self.entry(name)?.set_password(key).map_err(|error| refused(&error))
    }

    pub fn remove(&self, name: &str) -> Result<()> {
        match self.entry(name)?.delete_credential() {
            Ok(()) | Err(keyring_core::Error::NoEntry) => Ok(()),
            Err(error) => Err(refused(&error)),
        }
    }

    fn entry(&self, name: &str) -> Result<Entry> {
        let store = self.store().as_ref().map_err(|why| {
            Error::new(
                ErrorKind::Device,
                "keys.no_keychain",
                format!("The key is in the system keychain, which can't be reached: {why}."),
                "Start Inglenook from your desktop session, or enter the key again.",
            )
        })?;
        store.build(SERVICE, name, None).map_err(|error| refused(&error))
    }

    fn store(&self) -> &KeychainEntry {
        self.store.get_or_init(|| {
            if !self.is_looked_for {
                return Err("this session has none".into());
            }
            let found = found();
            if let Err(why) = &found {
                tracing::info!("no keychain: {why}");
            }
            found
        })
    }

    /// One that forgets.
    #[cfg(test)]
    pub fn of_memory() -> Self {
        let store: Arc<CredentialStore> = keyring_core::mock::Store::new().expect("memory");
        Self { is_looked_for: true, store: OnceLock::from(Ok(store)) }
    }
}

#[cfg(all(unix, not(target_os = "macos")))]
fn found() -> KeychainEntry {
    let store = dbus_secret_service_keyring_store::Store::new().map_err(|error| cause(&error))?;
    Ok(store)
}

#[cfg(target_os = "macos")]
fn found() -> KeychainEntry {
    let store = apple_native_keyring_store::keychain::Store::new().map_err(|error| cause(&error))?;
    Ok(store)
}

#[cfg(windows)]
fn found() -> KeychainEntry {
    let store = windows_native_keyring_store::Store::new().map_err(|error| cause(&error))?;
    Ok(store)
}

/// The innermost reason.
fn cause(error: &keyring_core::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string().trim_end_matches('.').to_owned()
}

fn refused(error: &keyring_core::Error) -> Error {
    Error::new(
        ErrorKind::Conflict,
        "keys.keychain",
        format!("The system keychain reported an error: {}.", cause(error)),
        "Unlock it and try again, or store keys in a file (nook settings set key_place file).",
    )
}

//! Imports a file: every conversation that can be used, and the originals of their images. What can't be used is named.

use std::collections::BTreeSet;

use contract::types::ErrorInfo;
use contract::{Error, ErrorKind, Result};
use session::ConversationArchive;
use session::images::ImageStore;

use crate::{ImportFault, ImportSource, ImportedConversation, complete, images, read};

/// Failures that are reported individually.
const MAX_LISTED_FAILURES: usize = 20;

/// Where what is found goes.
pub struct ImportTarget<'a> {
    /// Model of conversations that name none.
    pub model: &'a str,
    /// When they are imported.
    pub now_ms: i64,
    /// Where originals of images go.
    pub images: ImageStore<'a>,
    /// Stores a conversation.
    pub adopt: &'a mut dyn FnMut(ConversationArchive) -> Result<()>,
}

/// What of a file could not be imported.
#[derive(Debug, Default)]
pub struct ImportFailures {
    /// Conversations and images that are left out.
    pub n_failed: u32,
    /// The first failures, and what is missing in conversations that were imported.
    pub listed: Vec<ErrorInfo>,
}

/// Imports a file: our JSON, an export of ChatGPT or Claude, or the ZIP file that holds one. Of what is found, one
/// conversation or image is in memory at a time. Error: nothing could be imported.
pub fn import(source: &mut dyn ImportSource, target: ImportTarget<'_>) -> Result<ImportFailures> {
    let ImportTarget { model, now_ms, images: store, adopt } = target;
    let (mut n_imported, mut failures) = (0_usize, ImportFailures::default());
    let (mut faults, mut refused) = (Vec::new(), Vec::new());
    // Filled by the conversations, and looked at when the images come, which is later.
    let wanted = std::cell::RefCell::new(Vec::<(String, BTreeSet<String>)>::new());
    let mut found = |found: std::result::Result<ImportedConversation, ImportFault>| match found {
        Ok(ImportedConversation { mut archive, omissions }) => {
            complete(&mut archive, model, now_ms);
            let (title, hashes) = (archive.conversation.title.clone(), images::hashes(&archive));
            match adopt(archive) {
                Ok(()) => {
                    n_imported += 1;
                    failures.note("import.conversation", &title, omissions);
                    wanted.borrow_mut().push((title, hashes));
                }
                Err(error) => failures.refused("import.conversation", &title, error),
            }
        }
        Err(ImportFault { code, name, reason }) => failures.add(code, &name, &reason),
    };
    let mut image = |found: std::result::Result<(String, Vec<u8>), ImportFault>| match found {
        Ok((sha256, bytes)) if wanted.borrow().iter().any(|(_, hashes)| hashes.contains(&sha256)) => {
            if let Err(error) = store.put(&sha256, &bytes) {
                refused.push((format!("Image {sha256}"), Error::from(error)));
            }
        }
        Ok(_) => {}
        Err(fault) => faults.push(fault),
    };
    let outcome = read(source, &mut found, &mut image);
    for ImportFault { code, name, reason } in faults {
        failures.add(code, &name, &reason);
    }
    for (name, error) in refused {
        failures.refused("import.image", &name, error);
    }
    for (title, hashes) in wanted.into_inner() {
        failures.note_missing(&title, &hashes, &store)?;
    }
    match outcome {
        Err(error) if n_imported == 0 => Err(error),
        Ok(()) if n_imported == 0 => Err(failures.into_error()),
        // What came before the fault is imported.
        Err(error) => {
            failures.push(error.info);
            Ok(failures)
        }
        Ok(()) => Ok(failures),
    }
}

impl ImportFailures {
    fn add(&mut self, code: &str, name: &str, reason: &str) {
        self.push(ErrorInfo {
            code: code.into(),
            message: format!("{name}: {reason}"),
            remedy: "The other chats in the file are imported.".into(),
            action: None,
        });
    }

    /// The store did not take it. A full disk or a broken one is no fault of the part: it keeps its code and remedy.
    fn refused(&mut self, code: &str, name: &str, error: Error) {
        match error.kind {
            ErrorKind::Input | ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Usage => {
                self.add(code, name, &error.to_string());
            }
            ErrorKind::Limit | ErrorKind::Device | ErrorKind::Bug => {
                let message = format!("{name}: {}", error.info.message);
                self.push(ErrorInfo { message, ..error.info });
            }
        }
    }

    fn push(&mut self, failure: ErrorInfo) {
        self.n_failed = self.n_failed.saturating_add(1);
        self.list(failure);
    }

    /// What is missing in a conversation that was imported.
    fn note(&mut self, code: &str, title: &str, omissions: Vec<String>) {
        for omission in omissions {
            self.list(ErrorInfo {
                code: code.into(),
                message: format!("{title}: {omission}"),
                remedy: "The other messages of the chat are imported.".into(),
                action: None,
            });
        }
    }

    /// Images of an imported conversation that are neither in the file nor here.
    fn note_missing(&mut self, title: &str, hashes: &BTreeSet<String>, store: &ImageStore<'_>) -> Result<()> {
        let mut n_missing = 0_usize;
        for sha256 in hashes {
            n_missing += usize::from(!store.has(sha256)?);
        }
        if n_missing > 0 {
            let omission =
                format!("{n_missing} images are missing in the file; only their thumbnails are shown.");
            self.note("import.image", title, vec![omission]);
        }
        Ok(())
    }

    fn list(&mut self, failure: ErrorInfo) {
        if self.listed.len() < MAX_LISTED_FAILURES {
            self.listed.push(failure);
        }
    }

    /// Nothing was imported: the first reason.
    fn into_error(self) -> Error {
        let Some(mut first) = self.listed.into_iter().next() else {
            return Error::input(
                "import.empty",
                "This file contains no chats.",
                "Choose the export's conversations.json, or the archive zip.",
            );
        };
        first.remedy =
            "Export the chats again from the app they come from, or download the file again.".into();
        Error::from(first)
    }
}

//! Threads with a name.

use std::thread::JoinHandle;

use crate::error::{Error, ErrorKind, Result};

pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(format!("inglenook-{name}")).spawn(work).map_err(|error| {
        Error::new(
            ErrorKind::Limit,
            "app.thread",
            format!("The system could not start a thread: {error}."),
            "Close other programs and restart Inglenook.",
        )
    })
}

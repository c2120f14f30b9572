//! Named threads.

use std::thread::JoinHandle;

use contract::{Error, ErrorKind, Result};

/// Starts a thread called `inglenook-NAME`. Error `app.thread`: the system has no thread to give.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(format!("inglenook-{name}")).spawn(work).map_err(|error| {
        Error::new(
            ErrorKind::Limit,
            "app.thread",
            format!("The system could not start a thread: {error}."),
            "Close other programs and restart Inglenook.",
        )
    })
}

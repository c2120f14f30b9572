//! Entry points for fuzz targets.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use contract::Error;

use super::core::Core;
use super::stdio;

/// Requests that wait while the output is read.
const N_WAITING: usize = 3;

/// Answers that are kept; further ones are lost, as with a server that doesn't read.
const MAX_ANSWERS: usize = 64;

/// Reads what a server wrote to its stdout. Returns what would be answered, and why it could not be read to its end.
pub fn read_output(output: &[u8]) -> (Vec<String>, Option<Error>) {
    let core = Arc::new(Core::new("fuzz", || {}));
    let waiting: Vec<_> = (0..N_WAITING).map(|_| core.expect()).collect();
    let (send, answers) = sync_channel(MAX_ANSWERS);
    let error = stdio::read(output, &core, &Arc::new(Mutex::new(Some(send))));
    drop(waiting);
    (answers.try_iter().collect(), error)
}

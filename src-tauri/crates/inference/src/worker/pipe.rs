//! The worker over a pipe: one JSON value per line, requests in, events out. A blank line asks for a
//! sign of life and is answered by one, whatever the worker does. It ends when its requests end.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use io::Clock;

use super::{End, Requests};
use contract::protocol::WorkerEvent;

/// Longest line that is read: a long conversation with its token logs fits many times over.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// Runs until `reader` ends or says `Stop`. Errors are those of `writer`, or a line that is no request.
pub fn serve(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
    clock: Arc<dyn Clock>,
) -> std::io::Result<()> {
    let (send, requests) = super::channel();
    let writer = Arc::new(Mutex::new(writer));
    // The pipe closes with this function, even where the reader still waits.
    let beating = Arc::downgrade(&writer);
    let listening = std::thread::spawn(move || listen(reader, &send, &beating));
    let mut written = Ok(());
    let end = super::run(&requests, clock, &mut |event| {
        if written.is_ok() {
            written = write_line(&mut *writer.lock().unwrap_or_else(PoisonError::into_inner), &event);
        }
        written.is_ok()
    });
    drop(requests);
    written?;
    match end {
        End::RequestsEnded => {
            listening.join().unwrap_or_else(|_| Err(std::io::Error::other("the reader panicked")))
        }
        // Its other end may stay open: nothing is waited for.
        End::Stopped | End::NobodyListens => Ok(()),
    }
}

fn listen<W: Write>(reader: impl Read, send: &Requests, writer: &Weak<Mutex<W>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n_read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        if n_read == 0 {
            return Ok(());
        }
        if line == b"\n" {
            beat(writer)?;
            continue;
        }
        let request = serde_json::from_slice(&line)?;
        if send.send(request).is_err() {
            return Ok(());
        }
    }
}

fn beat<W: Write>(writer: &Weak<Mutex<W>>) -> std::io::Result<()> {
    let Some(writer) = writer.upgrade() else { return Ok(()) };
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    writer.write_all(b"\n")?;
    writer.flush()
}

fn write_line(writer: &mut impl Write, event: &WorkerEvent) -> std::io::Result<()> {
    serde_json::to_writer(&mut *writer, event)?;
    writer.write_all(b"\n")?;
    writer.flush()
}

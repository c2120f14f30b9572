//! The worker over a pipe: one JSON value per line, requests in, events out. The worker ends when
//! its requests end.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;

use io::Clock;

use super::{End, Requests};
use contract::protocol::WorkerEvent;

/// Longest line that is read: a long conversation with its token logs fits many times over.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// Runs until `reader` ends or says `Stop`. Errors are those of `writer`, or a line that is no request.
pub fn serve(
    reader: impl Read + Send + 'static,
    writer: impl Write,
    clock: Arc<dyn Clock>,
) -> std::io::Result<()> {
    let (send, requests) = super::channel();
    let listening = std::thread::spawn(move || listen(reader, &send));
    let mut writer = writer;
    let mut written = Ok(());
    let end = super::run(&requests, clock, &mut |event| {
        if written.is_ok() {
            written = write_line(&mut writer, &event);
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

fn listen(reader: impl Read, send: &Requests) -> std::io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n_read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        if n_read == 0 {
            return Ok(());
        }
        let request = serde_json::from_slice(&line)?;
        if send.send(request).is_err() {
            return Ok(());
        }
    }
}

fn write_line(writer: &mut impl Write, event: &WorkerEvent) -> std::io::Result<()> {
    serde_json::to_writer(&mut *writer, event)?;
    writer.write_all(b"\n")?;
    writer.flush()
}

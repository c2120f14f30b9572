//! Standard input and output: one client, one message per line.

use std::io::{BufRead, Read, Write};
use std::time::Duration;

use app::App;
use contract::{Error, ErrorKind, Result};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::MAX_MESSAGE_BYTES;
use crate::connection::{MAX_WAITING, serve};
use crate::dispatcher::RequestDispatcher;

/// Threads for messages; models compute on other threads.
const IO_THREADS: usize = 2;

/// Time for what still runs and what is still to be written at the end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves one client until it closes its end, or a signal comes.
pub fn serve_stdio(app: App) -> Result<()> {
    let runtime = runtime()?;
    let (send, inbox) = channel(MAX_WAITING);
    let (outbox, outgoing) = channel(MAX_WAITING);
    // Ends with stdin, or with the program: a read can't be interrupted.
    platform::spawn("mcp-read", move || read_lines(std::io::stdin().lock(), &send))?;
    let (over, written) = std::sync::mpsc::sync_channel(1);
    platform::spawn("mcp-write", move || {
        write_lines(std::io::stdout(), outgoing);
        // Where the program ends first, the receiver is gone.
        let _ = over.send(());
    })?;
    runtime.block_on(async {
        tokio::select! {
            () = serve(RequestDispatcher::new(app), inbox, outbox) => {}
            () = server::signalled() => {}
        }
    });
    // Ends the requests that are left, and with them the last senders of the writer.
    runtime.shutdown_timeout(END_TIMEOUT);
    if written.recv_timeout(END_TIMEOUT).is_err() {
        tracing::info!("the client did not read the last messages");
    }
    Ok(())
}

/// Passes on every line that is not empty. One that is too long becomes a message that is refused.
fn read_lines(mut input: impl BufRead, inbox: &Sender<Vec<u8>>) {
    let most = MAX_MESSAGE_BYTES as u64;
    loop {
        let mut line = Vec::new();
        match (&mut input).take(most).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.len() == MAX_MESSAGE_BYTES && !line.ends_with(b"\n") {
            line.truncate(1);
            if skip_line(&mut input).is_err() {
                return;
            }
        }
        if !line.trim_ascii().is_empty() && inbox.blocking_send(line).is_err() {
            return;
        }
    }
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let n = end.map_or(buffer.len(), |at| at + 1);
        input.consume(n);
        if end.is_some() || n == 0 {
            return Ok(());
        }
    }
}

/// Until no sender is left, or the client reads no more.
fn write_lines(mut output: impl Write, mut outgoing: Receiver<Value>) {
    while let Some(message) = outgoing.blocking_recv() {
        if writeln!(output, "{message}").and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(IO_THREADS)
        .thread_name("inglenook-mcp")
        .enable_all()
        .build()
        .map_err(|error| {
            Error::new(
                ErrorKind::Limit,
                "mcp.threads",
                format!("The system could not start a thread: {error}."),
                "Close other programs and try again.",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_and_long_ones_spoil_only_themselves() {
        let mut input = b"{\"a\":1}\n\n  \n".to_vec();
        input.extend(std::iter::repeat_n(b'{', MAX_MESSAGE_BYTES + 10));
        input.extend(b"\nlast");
        let (send, mut inbox) = channel(8);
        read_lines(input.as_slice(), &send);
        drop(send);
        assert_eq!(inbox.blocking_recv().as_deref(), Some(&b"{\"a\":1}\n"[..]));
        assert_eq!(inbox.blocking_recv().as_deref(), Some(&b"{"[..]));
        assert_eq!(inbox.blocking_recv().as_deref(), Some(&b"last"[..]));
        assert_eq!(inbox.blocking_recv(), None);
    }

    #[test]
    fn messages_are_lines() {
        let (send, outgoing) = channel(2);
        send.blocking_send(serde_json::json!({ "a": "x\ny" })).unwrap();
        drop(send);
        let mut output = Vec::new();
        write_lines(&mut output, outgoing);
        assert_eq!(output, b"{\"a\":\"x\\ny\"}\n");
    }
}

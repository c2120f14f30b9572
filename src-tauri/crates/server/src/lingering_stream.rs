//! A connection that is closed so that a client which is still sending gets its answer.
//!
//! Where a socket is closed with unread bytes, the system resets the connection. The client loses the answer that it was
//! about to read: it sees a broken pipe instead of "the body is too large". So the rest is read and thrown away.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// For the rest of a body whose request is answered.
const LINGER: Duration = Duration::from_secs(5);
const CHUNK_BYTES: usize = 16 << 10;

/// A connection whose end waits, for a while, until the client has sent what it was sending.
pub struct LingeringStream {
    stream: TcpStream,
    /// Whether a request was answered before its body had arrived.
    has_unread_body: Arc<AtomicBool>,
    /// Runs once our side is closed.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl LingeringStream {
    pub fn new(stream: TcpStream, has_unread_body: Arc<AtomicBool>) -> Self {
        Self { stream, has_unread_body, deadline: None }
    }

    /// Reads until the client closes its side, or the deadline.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            if deadline.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            let mut read = ReadBuf::new(&mut chunk);
            let is_read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)).is_ok();
            if !is_read || read.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl AsyncRead for LingeringStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for LingeringStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.deadline.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        if self.has_unread_body.load(Ordering::Relaxed) {
            ready!(self.poll_discard(context));
        }
        Poll::Ready(Ok(()))
    }
}

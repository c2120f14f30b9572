//! Standard input and output: one client, one message per line.

use std::time::Duration;

use app::App;
use contract::{Error, ErrorKind, Result};
use rmcp::RoleServer;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Chain};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::MAX_MESSAGE_BYTES;
use crate::app_content::AppContent;
use crate::bounded_transport::BoundedTransport;
use crate::content::Content;
use crate::handler::McpHandler;

/// Threads for messages; models compute on other threads.
const IO_THREADS: usize = 2;

/// Time for what still runs and what is still to be written at a signal. Longer than `rmcp` gives them.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Serves one client until it closes its end, or a signal comes.
pub fn serve_stdio(app: App) -> Result<()> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let cancelled = CancellationToken::new();
        let (input, output) = stdio_pipes();
        let serving = serve(AppContent(app), input, output, cancelled.clone());
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => return,
            () = server::signalled() => cancelled.cancel(),
        }
        if tokio::time::timeout(END_TIMEOUT, serving).await.is_err() {
            tracing::info!("the client did not read the last messages");
        }
    });
    // A read of a terminal can't be interrupted: it ends with the program.
    runtime.shutdown_background();
    Ok(())
}

/// Serves one client until it closes its end.
async fn serve(
    content: impl Content,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    cancelled: CancellationToken,
) {
    let client_left = CancellationToken::new();
    let transport = BoundedTransport::new(line_transport(input, output), client_left.clone());
    match serve_server_with_ct(McpHandler::new(content, client_left), transport, cancelled).await {
        Ok(running) => {
            if let Err(panic) = running.waiting().await {
                tracing::error!("a client is no longer served: {panic}");
            }
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
        Err(error) => tracing::info!("the client did not begin: {error}"),
    }
}

/// One message per line. A line that is too long is skipped.
fn line_transport<R, W>(input: R, output: W) -> AsyncRwTransport<RoleServer, Chain<R, &'static [u8]>, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    // The last line of a script may have no end.
    let input = input.chain(&b"\n"[..]);
    AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE_BYTES)
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
    use rmcp::transport::Transport;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn lines_are_messages_and_long_ones_spoil_only_themselves() {
        let ping = |id: u8| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        let mut input = format!("{}\n\n", ping(1)).into_bytes();
        input.extend(std::iter::repeat_n(b'{', MAX_MESSAGE_BYTES + 10));
        input.extend(format!("\n{}", ping(2)).into_bytes());
        let mut transport = line_transport(std::io::Cursor::new(input), tokio::io::sink());
        for id in [1, 2] {
            let message = transport.receive().await.unwrap();
            assert_eq!(serde_json::to_value(message).unwrap(), ping(id));
        }
        assert!(transport.receive().await.is_none());
    }
}

//! WebSocket frames (RFC 6455) of the server's side.
//!
//! No message takes more memory than `MAX_MESSAGE_BYTES`.

use std::io::Result as IoResult;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::MAX_MESSAGE_BYTES;

/// Longest payload of a control frame.
const MAX_CONTROL_BYTES: u64 = 125;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// A whole message of text, its fragments put together.
    Text(Vec<u8>),
    /// The payload goes back in a pong.
    Ping(Vec<u8>),
    Pong,
    Close,
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    Normal,
    /// The client broke the protocol of frames.
    Protocol,
    /// It sent what is no text.
    Binary,
    TooLarge,
    /// The connection was cut.
    Cut,
}

impl CloseReason {
    /// The status code of the close frame; `None` where no client can read it.
    pub fn code(self) -> Option<u16> {
        match self {
            Self::Normal => Some(1000),
            Self::Protocol => Some(1002),
            Self::Binary => Some(1003),
            Self::TooLarge => Some(1009),
            Self::Cut => None,
        }
    }
}

struct FrameHead {
    is_final: bool,
    opcode: u8,
    n_bytes: u64,
    mask: [u8; 4],
}

/// Reads the frames of a client.
pub struct FrameReader<R> {
    reader: R,
    /// The fragments of a message so far.
    partial: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, partial: None }
    }

    /// The next message or control frame.
    pub async fn next(&mut self) -> Result<ClientFrame, CloseReason> {
        loop {
            let head = self.head().await?;
            let so_far = self.partial.as_ref().map_or(0, Vec::len) as u64;
            if head.n_bytes.saturating_add(so_far) > MAX_MESSAGE_BYTES as u64 {
                return Err(CloseReason::TooLarge);
            }
            let is_control = head.opcode >= CLOSE;
            if is_control && (!head.is_final || head.n_bytes > MAX_CONTROL_BYTES) {
                return Err(CloseReason::Protocol);
            }
            let payload = self.payload(&head).await?;
            match (head.opcode, self.partial.is_some()) {
                (CLOSE, _) => return Ok(ClientFrame::Close),
                (PING, _) => return Ok(ClientFrame::Ping(payload)),
                (PONG, _) => return Ok(ClientFrame::Pong),
                (BINARY, false) => return Err(CloseReason::Binary),
                (TEXT, false) if head.is_final => return Ok(ClientFrame::Text(payload)),
                (TEXT, false) => self.partial = Some(payload),
                (CONTINUATION, true) => {
                    let mut message = self.partial.take().unwrap_or_default();
                    message.extend_from_slice(&payload);
                    if head.is_final {
                        return Ok(ClientFrame::Text(message));
                    }
                    self.partial = Some(message);
                }
                _ => return Err(CloseReason::Protocol),
            }
        }
    }

    /// Reads and forgets what still comes, until the client ends its side.
    pub async fn skip_rest(&mut self) {
        // A cut connection has no rest.
        let _ = tokio::io::copy(&mut self.reader, &mut tokio::io::sink()).await;
    }

    async fn head(&mut self) -> Result<FrameHead, CloseReason> {
        let mut start = [0; 2];
        self.fill(&mut start).await?;
        let [first, second] = start;
        // No extension was agreed on, and clients have to mask.
        if first & 0x70 != 0 || second & 0x80 == 0 {
            return Err(CloseReason::Protocol);
        }
        let n_bytes = match second & 0x7f {
            126 => {
                let mut length = [0; 2];
                self.fill(&mut length).await?;
                u64::from(u16::from_be_bytes(length))
            }
            127 => {
                let mut length = [0; 8];
                self.fill(&mut length).await?;
                u64::from_be_bytes(length)
            }
            short => u64::from(short),
        };
        let mut mask = [0; 4];
        self.fill(&mut mask).await?;
        Ok(FrameHead { is_final: first & 0x80 != 0, opcode: first & 0x0f, n_bytes, mask })
    }

    async fn payload(&mut self, head: &FrameHead) -> Result<Vec<u8>, CloseReason> {
        let mut payload = Vec::new();
        // Memory grows with what arrives, not with what was announced.
        let read = (&mut self.reader).take(head.n_bytes).read_to_end(&mut payload).await;
        if read.is_err() || payload.len() as u64 != head.n_bytes {
            return Err(CloseReason::Cut);
        }
        for (at, byte) in payload.iter_mut().enumerate() {
            *byte ^= head.mask[at % 4];
        }
        Ok(payload)
    }

    async fn fill(&mut self, bytes: &mut [u8]) -> Result<(), CloseReason> {
        self.reader.read_exact(bytes).await.map(drop).map_err(|_| CloseReason::Cut)
    }
}

/// Writes a message of text.
pub async fn write_text(writer: &mut (impl AsyncWrite + Unpin), text: &str) -> IoResult<()> {
    write(writer, TEXT, text.as_bytes()).await
}

/// Answers a ping.
pub async fn write_pong(writer: &mut (impl AsyncWrite + Unpin), payload: &[u8]) -> IoResult<()> {
    write(writer, PONG, payload).await
}

/// Asks whether the client is still there.
pub async fn write_ping(writer: &mut (impl AsyncWrite + Unpin)) -> IoResult<()> {
    write(writer, PING, b"").await
}

/// Ends the connection.
pub async fn write_close(writer: &mut (impl AsyncWrite + Unpin), code: u16) -> IoResult<()> {
    write(writer, CLOSE, &code.to_be_bytes()).await
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), opcode: u8, payload: &[u8]) -> IoResult<()> {
    let mut head = vec![0x80 | opcode];
    match payload.len() {
        n @ 0..=125 => head.push(n as u8),
        n @ 126..=0xffff => {
            head.push(126);
            head.extend_from_slice(&(n as u16).to_be_bytes());
        }
        n => {
            head.push(127);
            head.extend_from_slice(&(n as u64).to_be_bytes());
        }
    }
    writer.write_all(&head).await?;
    writer.write_all(payload).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut bytes = vec![first, 0x80 | payload.len() as u8];
        bytes.extend(mask);
        bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        bytes
    }

    fn frames(bytes: &[u8]) -> Vec<Result<ClientFrame, CloseReason>> {
        run(async {
            let mut reader = FrameReader::new(bytes);
            let mut all = Vec::new();
            loop {
                let next = reader.next().await;
                let is_over = next.is_err();
                all.push(next);
                if is_over {
                    return all;
                }
            }
        })
    }

    #[test]
    fn the_example_of_rfc_6455_is_read() {
        // Section 5.7: a masked "Hello", and unmasked frames of the server.
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(frames(&hello)[0], Ok(ClientFrame::Text(b"Hello".to_vec())));
        let mut written = Vec::new();
        run(write_text(&mut written, "Hello")).unwrap();
        assert_eq!(written, [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        let mut written = Vec::new();
        run(write_text(&mut written, &"x".repeat(256))).unwrap();
        assert_eq!(written[..4], [0x81, 0x7e, 0x01, 0x00]);
        let mut written = Vec::new();
        run(write_text(&mut written, &"x".repeat(65536))).unwrap();
        assert_eq!(written[..10], [0x81, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
        let mut written = Vec::new();
        run(write_close(&mut written, 1002)).unwrap();
        assert_eq!(written, [0x88, 2, 0x03, 0xea]);
    }

    #[test]
    fn fragments_are_put_together_around_control_frames() {
        let bytes = [
            frame(0x01, b"one "),
            frame(0x89, b"p"),
            frame(0x00, b"two "),
            frame(0x8a, b""),
            frame(0x80, b"three"),
            frame(0x88, b""),
        ]
        .concat();
        assert_eq!(
            frames(&bytes),
            [
                Ok(ClientFrame::Ping(b"p".to_vec())),
                Ok(ClientFrame::Pong),
                Ok(ClientFrame::Text(b"one two three".to_vec())),
                Ok(ClientFrame::Close),
                Err(CloseReason::Cut),
            ]
        );
    }

    #[test]
    fn broken_frames_end_the_connection() {
        let unmasked = vec![0x81, 1, b'x'];
        let huge = [&[0x81, 0xff][..], &u64::MAX.to_be_bytes(), &[0; 4]].concat();
        let cases = [
            (unmasked, CloseReason::Protocol),
            (frame(0xc1, b"x"), CloseReason::Protocol),
            (frame(0x80, b"x"), CloseReason::Protocol),
            (frame(0x83, b"x"), CloseReason::Protocol),
            (frame(0x09, b"x"), CloseReason::Protocol),
            ([frame(0x01, b"a"), frame(0x81, b"b")].concat(), CloseReason::Protocol),
            (frame(0x82, b"x"), CloseReason::Binary),
            (huge, CloseReason::TooLarge),
            (frame(0x81, b"xyz")[..7].to_vec(), CloseReason::Cut),
            (vec![0x81], CloseReason::Cut),
        ];
        for (bytes, expected) in cases {
            assert_eq!(frames(&bytes).last(), Some(&Err(expected)), "{bytes:?}");
        }
    }
}

//! Listens on a loopback port for the browser's return (RFC 8252 section 7.3). Answers one request for its path; what
//! else a browser opens, such as an idle connection, is bounded in number and time.

use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::redirect_page::{RedirectOutcome, redirect_page};

const PATH: &str = "/callback";
/// Longest request: codes of some servers have a few thousand characters.
const MAX_REQUEST_BYTES: usize = 32 << 10;
/// A browser sends its request at once.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections in all. A browser opens one or two.
const MAX_CONNECTIONS: usize = 64;

/// A port that waits for the browser.
pub struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

/// Parameters of the browser's return.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedirectParameters {
    pub code: Option<String>,
    pub state: Option<String>,
    pub iss: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
}

/// The browser's return, which still waits for its page.
pub struct BrowserReturn {
    pub parameters: RedirectParameters,
    stream: TcpStream,
    accepted_languages: String,
}

impl RedirectListener {
    /// Opens a port that the system chooses.
    pub async fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the browser's return. None: too many other connections came.
    pub async fn wait(self) -> Option<BrowserReturn> {
        let (mut readers, mut n_connections) = (JoinSet::new(), 0);
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if n_connections < MAX_CONNECTIONS => {
                    n_connections += 1;
                    if let Ok((stream, _)) = accepted {
                        readers.spawn(tokio::time::timeout(REQUEST_TIMEOUT, read_request(stream)));
                    }
                }
                Some(read) = readers.join_next() => {
                    if let Ok(Ok(Some(found))) = read {
                        return Some(found);
                    }
                }
                else => return None,
            }
        }
    }
}

impl BrowserReturn {
    /// Shows the page. A browser that has gone needs none.
    pub async fn show(mut self, outcome: RedirectOutcome) {
        let page = redirect_page(outcome, &self.accepted_languages);
        let written = async {
            self.stream.write_all(page.as_bytes()).await?;
            self.stream.shutdown().await
        };
        if let Ok(Err(error)) | Err(error) =
            tokio::time::timeout(REQUEST_TIMEOUT, written).await.map_err(std::io::Error::other)
        {
            tracing::debug!("the browser did not take the page after a sign-in: {error}");
        }
    }
}

/// None: not the browser's return. Its sender gets an answer all the same.
async fn read_request(mut stream: TcpStream) -> Option<BrowserReturn> {
    let (mut head, mut chunk) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = stream.read(&mut chunk).await.ok().filter(|n| *n > 0)?;
        head.extend_from_slice(&chunk[..n]);
        if head.len() > MAX_REQUEST_BYTES {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let Some((parameters, accepted_languages)) = parse_head(&head) else {
        // Such as a request for an icon.
        let _ = stream
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .await;
        return None;
    };
    Some(BrowserReturn { parameters, stream, accepted_languages })
}

fn parse_head(head: &str) -> Option<(RedirectParameters, String)> {
    let mut lines = head.lines();
    let target = lines.next()?.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    if url.path() != PATH || url.host_str() != Some("127.0.0.1") {
        return None;
    }
    let mut found = RedirectParameters::default();
    for (name, value) in url.query_pairs() {
        let field = match name.as_ref() {
            "code" => &mut found.code,
            "state" => &mut found.state,
            "iss" => &mut found.iss,
            "error" => &mut found.error,
            "error_description" => &mut found.error_description,
            _ => continue,
        };
        // A parameter that stands there twice is not what the server wrote.
        if field.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    let languages = lines.filter_map(|line| line.split_once(':'));
    let languages = languages.filter(|(name, _)| name.eq_ignore_ascii_case("accept-language"));
    Some((found, languages.map(|(_, value)| value.trim().to_owned()).next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let code = |code: &str, state: &str| RedirectParameters {
            code: Some(code.into()),
            state: Some(state.into()),
            ..RedirectParameters::default()
        };
        let cases = [
            (
                "GET /callback?code=a%2Bb&state=s&x=1 HTTP/1.1\r\nAccept-Language: de\r\n\r\n",
                Some((code("a+b", "s"), "de".to_owned())),
            ),
            ("GET /callback?code=a&state=s HTTP/1.1\r\n\r\n", Some((code("a", "s"), String::new()))),
            ("GET /callback HTTP/1.1\r\n\r\n", Some((RedirectParameters::default(), String::new()))),
            ("GET /callback?code=a&code=b HTTP/1.1\r\n\r\n", None),
            ("GET /favicon.ico HTTP/1.1\r\n\r\n", None),
            ("GET http://evil.example/callback?code=a HTTP/1.1\r\n\r\n", None),
            ("POST /callback?code=a HTTP/1.1\r\n\r\n", None),
            ("\r\n\r\n", None),
        ];
        for (head, expected) in cases {
            assert_eq!(parse_head(head), expected, "{head}");
        }
    }
}

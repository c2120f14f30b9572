//! Fetches an image from an address that a client of the server names.
//!
//! Guarantees: unless addresses of the own network are allowed, nothing is sent to one, whatever a name resolves to and
//! wherever an answer redirects to. Each name is looked up once, and that address is connected to. Bytes, redirects and time
//! are limited. Through a proxy that the user has set, an address is checked here as well, but the proxy looks the name up
//! again: it is trusted with that.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use contract::types::ConnectionPurpose;
use contract::{Error, ErrorKind, Result};
use net::{ConnectionGate, is_public};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, Response, Url};

/// Largest image: what the decoder reads of a file fits.
pub const MAX_IMAGE_BYTES: usize = 20 << 20;

/// Most redirects: services for images need one or two.
const MAX_REDIRECTS: usize = 5;

/// For all of it: a client waits for its answer.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Longest address that is read.
const MAX_URL_BYTES: usize = 8192;

/// Which addresses may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageReach {
    /// Those of the public internet.
    Public,
    /// Those of this computer and its network, too.
    Any,
}

/// Returns the bytes of an image.
///
/// Errors: `image.address`, `image.address_private`, `image.fetch`, `image.too_large`; `network.offline`.
pub async fn fetch_image(gate: &ConnectionGate, url: &str, reach: ImageReach) -> Result<Vec<u8>> {
    match tokio::time::timeout(TIME_LIMIT, follow(gate, url, reach)).await {
        Ok(fetched) => fetched,
        Err(_) => Err(failed(url, &format!("it took longer than {} seconds", TIME_LIMIT.as_secs()))),
    }
}

async fn follow(gate: &ConnectionGate, url: &str, reach: ImageReach) -> Result<Vec<u8>> {
    let mut at = parse(url)?;
    for _ in 0..=MAX_REDIRECTS {
        let (host, port) = host_and_port(&at)?;
        let place = at.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let connection = gate.connect(&place, ConnectionPurpose::Image)?;
        let client = client(gate, &host, port, reach).await?;
        let request = client.get(at.clone()).header(ACCEPT, "image/*");
        let mut response = request.send().await.map_err(|error| failed(&place, &cause(&error)))?;
        if response.status().is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.ok_or_else(|| failed(&place, "it redirects to no address"))?;
            at = parse(
                at.join(to).map_err(|_| failed(&place, "it redirects to an invalid address"))?.as_str(),
            )?;
            continue;
        }
        if !response.status().is_success() {
            return Err(failed(
                &place,
                &format!("it answered with HTTP status {}", response.status().as_u16()),
            ));
        }
        check_type(&response, &place)?;
        if response.content_length().is_some_and(|n| n > MAX_IMAGE_BYTES as u64) {
            return Err(too_large(&place));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| failed(&place, &cause(&error)))? {
            connection.received(piece.len());
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_IMAGE_BYTES {
                return Err(too_large(&place));
            }
        }
        return Ok(bytes);
    }
    Err(failed(url, &format!("it redirects more than {MAX_REDIRECTS} times")))
}

fn parse(url: &str) -> Result<Url> {
    let wrong = |why: &str| {
        let shown: String = url.chars().take(200).collect();
        Error::input("image.address", format!("The image address {shown} {why}."), USE_BASE64)
    };
    if url.len() > MAX_URL_BYTES {
        return Err(wrong("is too long"));
    }
    let parsed = Url::parse(url).map_err(|_| wrong("is invalid"))?;
    match parsed.scheme() {
        "http" | "https" if parsed.username().is_empty() && parsed.password().is_none() => Ok(parsed),
        "http" | "https" => Err(wrong("contains a user name or password")),
        _ => Err(wrong("is neither http nor https")),
    }
}

fn host_and_port(url: &Url) -> Result<(String, u16)> {
    let host = url.host_str().filter(|host| !host.is_empty());
    let found = host.map(str::to_owned).zip(url.port_or_known_default());
    found.ok_or_else(|| failed(url.as_str(), "it names no host"))
}

/// A client that connects to the address that was looked up here, and to no other.
async fn client(gate: &ConnectionGate, host: &str, port: u16, reach: ImageReach) -> Result<Client> {
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let addresses: Vec<SocketAddr> = match literal {
        Some(address) => vec![SocketAddr::new(address, port)],
        None => {
            let found = tokio::net::lookup_host((host, port)).await;
            found.map_err(|error| failed(host, &format!("its name can't be resolved ({error})")))?.collect()
        }
    };
    if addresses.is_empty() {
        return Err(failed(host, "its name has no address"));
    }
    if reach == ImageReach::Public && !addresses.iter().all(|address| is_public(address.ip())) {
        return Err(Error::input(
            "image.address_private",
            format!(
                "{host} is an address of this computer or its network, from which no images are fetched."
            ),
            "Send the image as base64, or allow such addresses (nook settings set allow_image_urls any).",
        ));
    }
    let trust = tls::client_config().map_err(|error| failed(host, &error.to_string()))?;
    // The proxy of the environment is not asked: it would look the name up again, unknown to the user.
    let builder = match gate.proxy()? {
        Some(proxy) => {
            let made = Proxy::all(proxy.as_str()).map_err(|error| failed(host, &cause(&error)))?;
            Client::builder().proxy(made)
        }
        None => Client::builder().no_proxy(),
    };
    let builder = builder
        .tls_backend_preconfigured(trust)
        .user_agent(concat!("inglenook/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .resolve_to_addrs(host, &addresses)
        .http1_only();
    builder.build().map_err(|error| failed(host, &cause(&error)))
}

/// Refuses pages and other files. Servers that name no type are believed: the bytes are checked anyway.
fn check_type(response: &Response, place: &str) -> Result<()> {
    let Some(named) = response.headers().get(CONTENT_TYPE) else { return Ok(()) };
    let named = named.to_str().unwrap_or_default().to_ascii_lowercase();
    let named = named.split(';').next().unwrap_or_default().trim();
    match named.starts_with("image/") || named == "application/octet-stream" {
        true => Ok(()),
        false => Err(failed(place, &format!("it answered with \"{named}\" instead of an image"))),
    }
}

const USE_BASE64: &str = "Check the address, or send the image itself as base64 (data:image/png;base64,…).";

fn failed(place: &str, why: &str) -> Error {
    Error::input("image.fetch", format!("The image of {place} can't be fetched: {why}."), USE_BASE64)
}

fn too_large(place: &str) -> Error {
    let message = format!("The image of {place} has more than {MAX_IMAGE_BYTES} bytes.");
    Error::new(ErrorKind::Limit, "image.too_large", message, "Use a smaller image.")
}

/// The innermost reason.
fn cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|it| it.source()) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the request failed".into(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;

    use net::{ConnectionLog, ProxyAddress};

    use super::*;

    struct OpenLog;

    impl ConnectionLog for OpenLog {
        fn is_offline(&self) -> Result<bool> {
            Ok(false)
        }

        fn proxy(&self) -> Result<Option<ProxyAddress>> {
            Ok(None)
        }

        fn begin(&self, _: &str, purpose: &str) -> Result<i64> {
            assert_eq!(purpose, "image");
            Ok(1)
        }

        fn end(&self, _: i64, _: i64, _: i64) -> Result<()> {
            Ok(())
        }
    }

    fn fetch(url: &str, reach: ImageReach) -> Result<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(fetch_image(&ConnectionGate::new(Arc::new(OpenLog)), url, reach))
    }

    /// Serves the same answer to everyone; its address.
    fn server(answer: impl Fn(u16) -> Vec<u8> + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = answer(port);
        std::thread::spawn(move || {
            for stream in listener.incoming().take(20) {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                // The client may have gone.
                let _ = stream.write_all(&answer);
            }
        });
        format!("http://127.0.0.1:{port}/a.png")
    }

    fn whole(head: &str, body: &[u8]) -> Vec<u8> {
        [format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes(), body].concat()
    }

    #[test]
    fn an_image_is_fetched_where_the_own_network_is_allowed_and_nothing_else() {
        let url = server(|_| whole("200 OK\r\nContent-Type: image/png", b"bytes"));
        assert_eq!(fetch(&url, ImageReach::Any).unwrap(), b"bytes");
        let private = |url: &str| fetch(url, ImageReach::Public).unwrap_err().code().to_owned();
        assert_eq!(private(&url), "image.address_private");
        assert_eq!(private(&url.replace("127.0.0.1", "localhost")), "image.address_private");
        // The same address, written otherwise.
        for host in ["2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]", "169.254.169.254", "0"] {
            assert_eq!(private(&url.replace("127.0.0.1", host)), "image.address_private", "{host}");
        }
    }

    #[test]
    fn other_answers_are_refused_with_their_reason() {
        let check = |url: &str, code: &str, words: &str| {
            let error = fetch(url, ImageReach::Any).unwrap_err();
            assert!(error.code() == code && error.message().contains(words), "{url}: {error}");
        };
        let large = MAX_IMAGE_BYTES + 1;
        check(
            &server(|_| whole("200 OK\r\nContent-Type: text/html; charset=x", b"<p>")),
            "image.fetch",
            "text/html",
        );
        check(&server(|_| whole("404 Not Found", b"")), "image.fetch", "404");
        let head = format!("200 OK\r\nContent-Length: {large}");
        check(&server(move |_| whole(&head, b"")), "image.too_large", "");
        check(&server(move |_| whole("200 OK", &vec![0; large])), "image.too_large", "");
        let around = |port: u16| whole(&format!("302 Found\r\nLocation: http://127.0.0.1:{port}/b"), b"");
        check(&server(around), "image.fetch", "more than 5 times");
        check(
            &server(|_| whole("302 Found\r\nLocation: file:///etc/passwd", b"")),
            "image.address",
            "neither",
        );
        check("http://user:pass@example.org/a.png", "image.address", "password");
        check("ftp://example.org/a.png", "image.address", "neither");
        check("http://", "image.address", "invalid");
    }
}

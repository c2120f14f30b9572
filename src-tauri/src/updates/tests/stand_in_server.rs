//! An update server of a test: the static list of versions that Tauri's updater reads, packages with real minisign
//! signatures, and faults. It keeps every request that it was sent.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use minisign::KeyPair;
use serde_json::json;

/// What a path is answered with.
#[derive(Clone)]
pub enum StandInReply {
    Whole(Vec<u8>),
    Status(u16),
    Redirect(String),
    /// The length of all, and only these bytes.
    Cut(Vec<u8>, usize),
    /// The same, and the connection stays open until the client closes it.
    Stalled(Vec<u8>, usize),
}

/// Listens until the process ends.
pub struct StandInServer {
    address: SocketAddr,
    replies: Arc<Mutex<HashMap<String, StandInReply>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl StandInServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (replies, requests) =
            (Arc::<Mutex<HashMap<String, StandInReply>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (replying, asked) = (Arc::clone(&replies), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (replies, requests) = (Arc::clone(&replying), Arc::clone(&asked));
                std::thread::spawn(move || answer(stream, &replies, &requests));
            }
        });
        Self { address, replies, requests }
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn reply(&self, path: &str, reply: StandInReply) {
        self.replies.lock().unwrap().insert(path.to_owned(), reply);
    }

    /// Heads of all requests until now.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Offers a package as a version, signed by `keys` for the version `signed_as`.
    pub fn offer(&self, version: &str, package: &[u8], keys: &KeyPair, signed_as: &str) {
        self.reply("/package", StandInReply::Whole(package.to_vec()));
        let list = list(version, &target(), &self.url("/package"), &signature(package, keys, signed_as));
        self.reply("/latest.json", StandInReply::Whole(list.into_bytes()));
    }
}

/// A list of versions with one version for one target.
pub fn list(version: &str, target: &str, url: &str, signature: &str) -> String {
    json!({
        "version": version,
        "notes": "Faster answers.",
        "pub_date": "2030-01-02T03:04:05Z",
        "platforms": { target: { "url": url, "signature": signature } },
    })
    .to_string()
}

/// The name of this computer's packages in a list.
pub fn target() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    format!("{system}-{}", std::env::consts::ARCH)
}

/// What `tauri signer sign --app-version` writes.
pub fn signature(package: &[u8], keys: &KeyPair, version: &str) -> String {
    let comment = format!("timestamp:1893553445\tfile:inglenook.AppImage\tversion:{version}");
    let signed = minisign::sign(Some(&keys.pk), &keys.sk, package, Some(&comment), None).unwrap();
    base64(signed.into_string().as_bytes())
}

/// What `tauri signer generate` writes into the `.pub` file.
pub fn public_key(keys: &KeyPair) -> String {
    base64(keys.pk.to_box().unwrap().into_string().as_bytes())
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

fn answer(stream: TcpStream, replies: &Mutex<HashMap<String, StandInReply>>, requests: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
    // A proxy is asked for a whole address.
    let target = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]).to_owned(),
        None => target,
    };
    requests.lock().unwrap().push(head);
    let reply = replies.lock().unwrap().get(&path).cloned().unwrap_or(StandInReply::Status(404));
    let (status, more, body, n_sent) = match &reply {
        StandInReply::Whole(body) => (200, String::new(), body.as_slice(), body.len()),
        StandInReply::Status(status) => (*status, String::new(), &[][..], 0),
        StandInReply::Redirect(to) => (302, format!("location: {to}\r\n"), &[][..], 0),
        StandInReply::Cut(body, n_sent) | StandInReply::Stalled(body, n_sent) => {
            (200, String::new(), body.as_slice(), *n_sent)
        }
    };
    let head =
        format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n{more}\r\n", body.len());
    let stream = reader.get_mut();
    // The client may have gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..n_sent]));
    if matches!(reply, StandInReply::Stalled(..)) {
        let _ = stream.read(&mut [0]);
    }
}

#[test]
fn base64_is_that_of_the_rfc() {
    for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
        assert_eq!(base64(bytes.as_bytes()), text);
    }
}

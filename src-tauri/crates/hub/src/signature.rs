//! Signed manifests of a repository's files, and signed catalogues: minisign (Ed25519) signatures.
//!
//! A list with an invalid signature is refused, and so is one whose trusted comment says `expires:` a moment that has
//! passed. A signature by an untrusted key counts as unsigned.

use std::collections::HashMap;

use minisign_verify::{Error as Minisign, PublicKey, Signature};
use serde::Deserialize;

use crate::address::Repository;
use crate::client::Client;
use crate::error::{HubError, Result};
use crate::sha::Hash;
use crate::tree::{RemoteFile, RepositoryTree};

/// Name of the manifest in a repository.
pub const MANIFEST: &str = "inglenook.manifest.json";
/// Suffix of a signature file.
pub const SIGNATURE_ENDING: &str = ".minisig";

const FORMAT: &str = "inglenook-manifest 1";

/// Chunk sizes allowed in a manifest: large enough for short lists, small enough that a bad chunk is cheap.
const CHUNK_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(16 << 20);

/// Last characters of a key that identify it for people.
const KEY_NAME_CHARS: usize = 12;

/// Word of a trusted comment before the moment of expiry, in seconds since 1970: `expires:1893456000`.
const EXPIRES: &str = "expires:";

/// Public keys whose signatures are trusted, and the moment at which they are looked at.
#[derive(Default, Clone)]
pub struct TrustedKeys {
    keys: Vec<(String, PublicKey)>,
    /// Seconds since 1970.
    now_s: i64,
}

impl TrustedKeys {
    /// Parses one-line minisign keys, separated by spaces, commas, semicolons or newlines. Errors for an invalid key.
    pub fn parse(text: &str) -> Result<Self> {
        let words = text.split([';', ',', ' ', '\n', '\t']).map(str::trim).filter(|word| !word.is_empty());
        let key = |word: &str| match PublicKey::from_base64(word) {
            Ok(key) => {
                Ok((word.chars().rev().take(KEY_NAME_CHARS).collect::<String>().chars().rev().collect(), key))
            }
            Err(_) => Err(HubError::new(
                "hub.key",
                format!("\"{word}\" is not a minisign public key."),
                "Use the second line of the .pub file. It begins with RW.",
            )),
        };
        Ok(Self { keys: words.map(key).collect::<Result<_>>()?, now_s: 0 })
    }

    /// The same keys, for signatures that are looked at now. Without it no signature has expired.
    pub fn at(self, now_s: i64) -> Self {
        Self { now_s, ..self }
    }

    /// Whether no key is trusted.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Name of the trusted key that signed these bytes; None if no trusted key did. Errors for an invalid or expired
    /// signature by a trusted key, or a malformed one.
    pub fn signer(&self, bytes: &[u8], signature: &str, of: &str) -> Result<Option<String>> {
        let bad = |cause: &str| {
            HubError::new(
                "hub.signature",
                format!("The signature of {of} is invalid: {cause}."),
                "It was rejected because it may have been changed. Get it from its publisher again.",
            )
        };
        let signature = Signature::decode(signature).map_err(|_| bad("it is not a minisign signature"))?;
        for (name, key) in &self.keys {
            match key.verify(bytes, &signature, true) {
                Ok(()) => match expiry(signature.trusted_comment()) {
                    Some(at) if at <= self.now_s => {
                        return Err(bad(&format!(
                            "that of the key {name} expired at {at} seconds since 1970"
                        )));
                    }
                    _ => return Ok(Some(name.clone())),
                },
                Err(Minisign::UnexpectedKeyId) => {}
                Err(_) => {
                    return Err(bad(&format!("it names the key {name}, but was made for other contents")));
                }
            }
        }
        Ok(None)
    }
}

impl std::fmt::Debug for TrustedKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(name, _)| name)).finish()
    }
}

/// The moment that a trusted comment names, in seconds since 1970. One that is no number has passed.
fn expiry(comment: &str) -> Option<i64> {
    let words = comment.split(['\t', ' ']);
    let at = words.filter_map(|word| word.strip_prefix(EXPIRES)).next()?;
    Some(at.parse().unwrap_or(i64::MIN))
}

/// A publisher's list of the files of a repository.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Repository it belongs to.
    pub repository: String,
    files: HashMap<String, ManifestFile>,
}

/// A file in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Length in bytes.
    pub bytes: u64,
    /// Hash of the whole file.
    pub sha256: Hash,
    /// Chunk size in bytes.
    pub chunk_bytes: u64,
    /// Hashes of the chunks, in order.
    pub chunks: Vec<Hash>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestJson {
    format: String,
    repository: String,
    files: Vec<ManifestFileJson>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestFileJson {
    path: String,
    bytes: u64,
    sha256: String,
    chunk_bytes: u64,
    chunks: Vec<String>,
}

impl Manifest {
    /// Parses a manifest strictly. Errors for anything invalid or unknown.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let wrong = |cause: String| {
            HubError::new(
                "hub.manifest",
                format!("The signed list of files can't be used: {cause}."),
                "Report this to its publisher.",
            )
        };
        let written: ManifestJson =
            serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
        if written.format != FORMAT {
            return Err(wrong(format!("its format is {:?}, not {FORMAT:?}", written.format)));
        }
        let mut files = HashMap::new();
        for file in written.files {
            let hash =
                |text: &String| Hash::parse(text).ok_or_else(|| wrong(format!("{:?} is no SHA-256", text)));
            if !CHUNK_BYTES.contains(&file.chunk_bytes)
                || file.bytes.div_ceil(file.chunk_bytes) != file.chunks.len() as u64
            {
                return Err(wrong(format!(
                    "the chunks of {:?} don't make its {} bytes",
                    file.path, file.bytes
                )));
            }
            let listed = ManifestFile {
                bytes: file.bytes,
                sha256: hash(&file.sha256)?,
                chunk_bytes: file.chunk_bytes,
                chunks: file.chunks.iter().map(hash).collect::<Result<_>>()?,
            };
            files.insert(file.path, listed);
        }
        Ok(Self { repository: written.repository, files })
    }

    /// Entry of a file; None if it is not listed. Errors if the entry contradicts the hub or the repository differs.
    pub fn of(&self, repository: &str, file: &RemoteFile) -> Result<Option<&ManifestFile>> {
        let refuse = |cause: String| {
            HubError::new(
                "hub.signed_mismatch",
                format!("{cause}, so it was rejected."),
                "Choose another file, and report this to the publisher.",
            )
        };
        if self.repository != repository {
            return Err(refuse(format!("The signed list is of {}, not of {repository}", self.repository)));
        }
        let Some(listed) = self.files.get(&file.path) else { return Ok(None) };
        let is_same = listed.bytes == file.bytes && file.sha256.is_none_or(|hash| hash == listed.sha256);
        match is_same {
            true => Ok(Some(listed)),
            false => Err(refuse(format!("{} differs from the file in its signed list", file.path))),
        }
    }
}

impl Client {
    /// Signed manifest of a repository and its signer. None if there is none, or no trusted key signed it. Errors for an
    /// invalid signature or manifest.
    pub async fn manifest(
        &self,
        repository: &Repository,
        tree: &RepositoryTree,
        keys: &TrustedKeys,
    ) -> Result<Option<(Manifest, String)>> {
        let signature = format!("{MANIFEST}{SIGNATURE_ENDING}");
        let has = |path: &str| tree.files.iter().any(|file| file.path == path);
        if keys.is_empty() || !has(MANIFEST) || !has(&signature) {
            return Ok(None);
        }
        let bytes = self.raw(repository, &tree.revision, MANIFEST).await?;
        let signature = self.raw(repository, &tree.revision, &signature).await?;
        let signature = String::from_utf8_lossy(&signature);
        let Some(signer) = keys.signer(&bytes, &signature, &format!("the list of {repository}"))? else {
            return Ok(None);
        };
        Ok(Some((Manifest::parse(&bytes)?, signer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    const SIGNATURE: &str = "untrusted comment: signature from minisign secret key\n\
        RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
        trusted comment: timestamp:1633700835\tfile:test\tprehashed\n\
        wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==";

    #[test]
    fn f15_a_signature_holds_or_is_refused() {
        let keys = TrustedKeys::parse(&format!(" {KEY};\n")).unwrap();
        assert_eq!(
            keys.signer(b"test", SIGNATURE, "x").unwrap().as_deref(),
            Some("QTaLn73Y7GFO3".get(1..).unwrap())
        );
        let bad = [
            (&b"tesu"[..], SIGNATURE.to_owned()),
            (b"test", SIGNATURE.replace("wLMD", "wLME")),
            (b"test", SIGNATURE.replace("timestamp:1", "timestamp:2")),
            (b"test", SIGNATURE.replace("559r", "559s")),
            (b"test", "nonsense".into()),
            (b"test", String::new()),
        ];
        for (bytes, signature) in bad {
            let error = keys.signer(bytes, &signature, "the list").unwrap_err();
            assert_eq!(error.code(), "hub.signature", "{signature}");
            assert!(error.to_string().contains("the list"));
            let is_of_key = signature.contains("trusted comment") && !signature.contains("559s");
            let key_name = &KEY[KEY.len() - KEY_NAME_CHARS..];
            assert!(!is_of_key || error.to_string().contains(key_name), "{error}");
        }
        assert_eq!(TrustedKeys::default().signer(b"test", SIGNATURE, "x").unwrap(), None);
        assert_eq!(TrustedKeys::parse("RWxyz").unwrap_err().code(), "hub.key");
    }

    #[test]
    fn a_trusted_comment_may_name_its_end() {
        assert_eq!(expiry("timestamp:1633700835\tfile:test\tprehashed"), None);
        assert_eq!(expiry("timestamp:1\tfile:a\texpires:1893456000"), Some(1_893_456_000));
        assert_eq!(expiry("expires:never"), Some(i64::MIN), "what cannot be read has expired");
    }

    #[test]
    fn a_manifest_is_read_strictly_and_compared() {
        let hash = "ab".repeat(32);
        let text = format!(
            r#"{{"format":"{FORMAT}","repository":"a/b","files":[{{"path":"x","bytes":65537,"sha256":"{hash}","chunk_bytes":65536,"chunks":["{hash}","{hash}"]}}]}}"#
        );
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        let file = |bytes, sha256| RemoteFile { path: "x".into(), bytes, sha256 };
        assert!(manifest.of("a/b", &file(65537, Hash::parse(&hash))).unwrap().is_some());
        assert!(manifest.of("a/b", &RemoteFile { path: "y".into(), ..file(1, None) }).unwrap().is_none());
        for (repository, file) in [
            ("a/c", file(65537, None)),
            ("a/b", file(65536, None)),
            ("a/b", file(65537, Some(Hash::of(b"")))),
        ] {
            assert_eq!(manifest.of(repository, &file).unwrap_err().code(), "hub.signed_mismatch");
        }
        for (from, to) in [
            ("manifest 1", "manifest 2"),
            ("65537", "65536"),
            ("\"abab", "\"xyab"),
            ("chunk_bytes", "size"),
            ("{", "["),
        ] {
            assert_eq!(
                Manifest::parse(text.replacen(from, to, 1).as_bytes()).unwrap_err().code(),
                "hub.manifest"
            );
        }
    }
}

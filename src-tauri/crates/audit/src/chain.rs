//! The hash chain: every line names the hash of the line before it and ends with its own.
//!
//! A line's hash is the SHA-256 of its JSON without the field `hash`, which is always the last.

use serde::{Deserialize, Serialize};

use crate::record::AuditEntry;

/// Stands for the line before the first.
pub(crate) const NO_LINE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Characters of a hash.
const HASH_CHARS: usize = 64;

/// The last line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChainHead {
    pub seq: u64,
    pub hash: String,
}

impl Default for ChainHead {
    fn default() -> Self {
        Self { seq: 0, hash: NO_LINE.into() }
    }
}

/// A line without its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkedRecord {
    /// Number of the line, from 1.
    pub seq: u64,
    #[serde(flatten)]
    pub record: AuditEntry,
    /// Hash of the line before.
    pub previous: String,
}

/// SHA-256 in lower-case hexadecimal.
fn sha256(text: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ChainHead {
    /// The next line, without a line break, and the head that it makes.
    pub fn append(&self, record: AuditEntry) -> serde_json::Result<(String, Self)> {
        let linked = LinkedRecord { seq: self.seq + 1, record, previous: self.hash.clone() };
        let body = serde_json::to_string(&linked)?;
        let hash = sha256(&body);
        let line = format!("{},\"hash\":\"{hash}\"}}", body.strip_suffix('}').unwrap_or(&body));
        Ok((line, Self { seq: linked.seq, hash }))
    }
}

/// What is wrong with a line whose end is missing: a crash may have cut it off.
pub(crate) const INCOMPLETE: &str = "it is incomplete";

/// Parses a line and checks its own hash.
///
/// Errors: what is wrong with it.
pub(crate) fn parse_line(line: &str) -> Result<(LinkedRecord, ChainHead), &'static str> {
    let rest = line.strip_suffix("\"}").ok_or(INCOMPLETE)?;
    let at = rest.len().checked_sub(HASH_CHARS).filter(|at| rest.is_char_boundary(*at));
    let (body, hash) = rest.split_at(at.ok_or(INCOMPLETE)?);
    let body = body.strip_suffix(",\"hash\":\"").ok_or("it has no hash")?;
    let body = format!("{body}}}");
    if sha256(&body) != hash {
        return Err("its content does not match its hash");
    }
    let linked: LinkedRecord = serde_json::from_str(&body).map_err(|_| "it is no record")?;
    let head = ChainHead { seq: linked.seq, hash: hash.to_owned() };
    Ok((linked, head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{AuditRecord, AuditTokens, Interface, RefusalRecord};

    fn record(turn: &str) -> AuditEntry {
        AuditEntry::from(AuditRecord {
            began: "2026-01-15T12:00:00Z".into(),
            ended: "2026-01-15T12:00:01Z".into(),
            interface: Interface::Http,
            key: Some("lab".into()),
            route: None,
            turn: turn.into(),
            model: "starter".into(),
            tokens: AuditTokens { prompt: 3, reused: 1, answer: 2 },
            outcome: "stop".into(),
            error: None,
            text: None,
        })
    }

    #[test]
    fn a_refusal_is_a_line_of_the_same_chain() {
        let refusal = RefusalRecord {
            at: "2026-01-15T12:00:00Z".into(),
            refused: "hub.redirect".into(),
            subject: "acme/one".into(),
            message: "hub.example redirects to 10.0.0.1.".into(),
        };
        let (_, head) = ChainHead::default().append(record("t")).unwrap();
        let (line, next) = head.append(refusal.clone().into()).unwrap();
        let (linked, read) = parse_line(&line).unwrap();
        assert_eq!((linked.record, linked.seq, read), (refusal.into(), 2, next));
        assert_eq!(linked.previous, head.hash);
    }

    #[test]
    fn a_line_is_its_record_and_the_hash_of_it() {
        let (line, head) = ChainHead::default().append(record("t")).unwrap();
        assert_eq!(head.seq, 1);
        // sha256sum of the same text without the last field
        let body = line.replace(&format!(",\"hash\":\"{}\"", head.hash), "");
        assert_eq!(sha256(&body), head.hash);
        assert_eq!(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let (linked, read) = parse_line(&line).unwrap();
        assert_eq!((linked.record, linked.previous.as_str(), read), (record("t"), NO_LINE, head));
    }

    #[test]
    fn any_change_of_a_line_shows() {
        let (line, _) = ChainHead::default().append(record("täglich")).unwrap();
        for at in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes).into_owned();
            assert!(parse_line(&changed).is_err(), "byte {at}: {changed}");
            assert!(line.get(..at).is_none_or(|cut| parse_line(cut).is_err()), "cut at {at}");
        }
    }
}

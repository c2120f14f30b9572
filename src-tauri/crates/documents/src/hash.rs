//! The hash under which a document's text is stored.

/// SHA-256 of a text, in lower-case hexadecimal.
pub fn sha256(text: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

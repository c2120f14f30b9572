//! The hash under which a document or an image is stored.

/// SHA-256 of a text or of bytes, in lower-case hexadecimal.
pub fn sha256(data: impl AsRef<[u8]>) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, data.as_ref());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

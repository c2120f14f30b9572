//! What the database keeps of a file besides its content.

use serde::{Deserialize, Serialize};

/// A stored file without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    pub filename: String,
    /// What its program wants it for, such as `batch` or `user_data`.
    pub purpose: String,
    pub media_type: String,
    pub n_bytes: u64,
    /// From then on the file is gone. `None`: it stays until it is deleted.
    pub expires_ms: Option<i64>,
}

impl FileRecord {
    /// Whether the file is gone at a time.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_expire_at_their_time() {
        let file = |expires_ms| FileRecord {
            filename: "a.txt".into(),
            purpose: "user_data".into(),
            media_type: "text/plain".into(),
            n_bytes: 1,
            expires_ms,
        };
        for (expires_ms, now_ms, expected) in
            [(None, i64::MAX, false), (Some(5), 4, false), (Some(5), 5, true)]
        {
            assert_eq!(file(expires_ms).is_expired(now_ms), expected, "{expires_ms:?} at {now_ms}");
        }
    }
}

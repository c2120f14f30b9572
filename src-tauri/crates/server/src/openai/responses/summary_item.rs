//! Items that hold a summary of earlier ones. Clients keep them, and send them back without reading them.

use serde_json::{Value, json};

use crate::openai::new_id;

/// How a summary begins where it stands in a prompt.
const HEADING: &str = "Summary of the conversation so far:\n";

/// Marks summaries of ours among those of other servers.
const MARK: &str = "inglenook-summary:";

/// An item that holds a summary.
pub fn summary_item(summary: &str) -> Value {
    json!({ "id": new_id("cmp"), "type": "compaction", "encrypted_content": format!("{MARK}{summary}") })
}

/// The text that stands for a compaction item in a prompt.
///
/// Errors: it comes from another server, which alone can read it.
pub fn summary_of(item: &Value) -> std::result::Result<String, String> {
    let content = item.get("encrypted_content").and_then(Value::as_str).unwrap_or_default();
    match content.strip_prefix(MARK) {
        Some(summary) => Ok(format!("{HEADING}{summary}")),
        None => Err("a compaction item can only be read by the server that made it.".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_read_back() {
        assert_eq!(summary_of(&summary_item("Nothing.")), Ok(format!("{HEADING}Nothing.")));
        assert!(summary_of(&json!({ "type": "compaction", "encrypted_content": "gAAAA" })).is_err());
    }
}

//! Files in OpenAI's format: parts of a message's content, their bytes as base64.

use serde_json::Value;

use crate::{base64, blocks, extract, file_name, prompt_injection};

/// `{"type": "file", "file": {"filename", "file_data"}}`, or the same without the inner object. Its block in the prompt,
/// always as a whole. Error: a sentence.
pub fn file(part: &Value) -> Result<String, String> {
    let file = part.get("file").unwrap_or(part);
    let word = |key: &str| file.get(key).and_then(Value::as_str);
    let name = file_name::clean(word("filename").unwrap_or_default());
    let Some(data) = word("file_data") else {
        return Err(format!(
            "{name}: nothing is downloaded. Send `file_data` (a data URL or base64), or the `file_id` of a stored file."
        ));
    };
    let encoded = data.split_once(";base64,").map_or(data, |(_, encoded)| encoded);
    let bytes = base64::decode(encoded).ok_or_else(|| format!("{name}: `file_data` is not valid base64."))?;
    let read = extract::read(&name, &bytes)
        .map_err(|problem| format!("{name} can't be read: {}. {}", problem.why, problem.remedy))?;
    Ok(blocks::whole(&name, read.kind, &prompt_injection::reveal_hidden(&read.text)))
}

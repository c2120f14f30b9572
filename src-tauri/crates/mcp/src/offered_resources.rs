//! Resources of a server as the user sees them: entries of its lists, and what was read as text. Only text is accepted.

use serde_json::Value;

use contract::types::{ToolResource, ToolResourceTemplate};
use contract::{Error, Result};
use documents::prompt_injection;

/// Longest address and longest name, in characters. What is longer is left out of a list.
pub const MAX_URI_CHARS: usize = 2000;
const MAX_NAME_CHARS: usize = 200;
/// Longest description that is shown, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1000;

/// Ends of names by which a kind of text is known.
const ENDS: &[(&str, &str)] = &[
    ("application/json", "json"),
    ("application/xml", "xml"),
    ("application/yaml", "yaml"),
    ("text/css", "css"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/javascript", "js"),
    ("text/markdown", "md"),
    ("text/x-python", "py"),
    ("text/xml", "xml"),
    ("text/yaml", "yaml"),
];

/// A resource that was read.
pub struct ReadResource {
    /// Its contents, each under its address where there are several.
    pub text: String,
    /// What the server calls its kind.
    pub kind: String,
}

/// The text of a resource. Errors: `tools.binary`, `tools.resource`.
pub fn read(server: &str, uri: &str, contents: &[Value]) -> Result<ReadResource> {
    let kind_of = |part: &Value| part["mimeType"].as_str().unwrap_or_default().to_owned();
    if let Some(part) = contents.iter().find(|part| !part["text"].is_string()) {
        let kind = kind_of(part);
        let of = if kind.is_empty() { String::new() } else { format!(" ({kind})") };
        let message = format!("{server} returns {uri} as binary data{of}, not as text.");
        let remedy =
            "Only text can be attached this way. Choose a text resource, or save it and attach the file.";
        return Err(Error::input("tools.binary", message, remedy));
    }
    let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
    match contents {
        [] => {
            let message = format!("{server} has no resource at {uri}.");
            Err(Error::input("tools.resource", message, "Choose another one from its list."))
        }
        [one] => Ok(ReadResource { text: text(one), kind: kind_of(one) }),
        // Such as the files of a folder: each under its own address.
        many => {
            let part = |part: &Value| format!("{}:\n{}", part["uri"].as_str().unwrap_or(uri), text(part));
            Ok(ReadResource {
                text: many.iter().map(part).collect::<Vec<_>>().join("\n\n"),
                kind: String::new(),
            })
        }
    }
}

/// The end of an address, and an end by which its kind is known.
pub fn file_name(uri: &str, kind: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let name = if last.is_empty() { "resource" } else { last };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_lowercase();
    let end = ENDS.iter().find(|(of, _)| *of == kind).map(|(_, end)| *end);
    match end.filter(|_| !name.contains('.')) {
        Some(end) => format!("{name}.{end}"),
        None => name.to_owned(),
    }
}

/// A resource of a server's list. None: nothing that can be asked for.
pub fn resource(value: &Value) -> Option<ToolResource> {
    let uri = address(&value["uri"])?;
    let (name, description, kind) = described(value, &uri);
    Some(ToolResource { uri, name, description, kind, bytes: value["size"].as_u64() })
}

/// A template of a server's list. None: nothing that can be asked for.
pub fn template(value: &Value) -> Option<ToolResourceTemplate> {
    let template = address(&value["uriTemplate"])?;
    let (name, description, kind) = described(value, &template);
    Some(ToolResourceTemplate { template, name, description, kind })
}

fn address(value: &Value) -> Option<String> {
    let text = value.as_str().map(str::trim).filter(|text| !text.is_empty())?;
    (text.chars().count() <= MAX_URI_CHARS).then(|| text.to_owned())
}

/// Name, description and kind.
fn described(value: &Value, address: &str) -> (String, String, Option<String>) {
    let text = |key: &str, most: usize| -> String {
        let text: String = value[key].as_str().unwrap_or_default().trim().chars().take(most).collect();
        prompt_injection::reveal_hidden(&text)
    };
    let names = ["title", "name"].map(|key| text(key, MAX_NAME_CHARS));
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| address.to_owned());
    let kind = Some(text("mimeType", MAX_NAME_CHARS)).filter(|kind| !kind.is_empty());
    (name, text("description", MAX_DESCRIPTION_CHARS), kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contents_are_text_or_refused() {
        let of = |contents: Value| read("lab", "note://a", contents.as_array().unwrap());
        assert_eq!(of(json!([{ "uri": "note://a", "text": "x" }])).unwrap().text, "x");
        let two = json!([{ "uri": "note://a/1", "text": "x" }, { "uri": "note://a/2", "text": "y" }]);
        assert_eq!(of(two).unwrap().text, "note://a/1:\nx\n\nnote://a/2:\ny");
        let mixed = json!([{ "text": "x" }, { "blob": "AAAA", "mimeType": "image/png" }]);
        let error = of(mixed).err().unwrap();
        assert_eq!(error.code(), "tools.binary");
        assert!(error.message().contains("note://a as binary data (image/png)"), "{error}");
        assert_eq!(of(json!([])).err().unwrap().code(), "tools.resource");
        assert_eq!(of(json!([3])).err().unwrap().code(), "tools.binary");
    }

    #[test]
    fn names_tell_the_kind() {
        let cases = [
            (("file:///home/me/a.md", "text/plain"), "a.md"),
            (("note://today", "text/markdown"), "today.md"),
            (("note://today/", "text/csv; charset=utf-8"), "today.csv"),
            (("note://list?x=1/2#y", "application/JSON"), "list.json"),
            (("urn:isbn:123", ""), "123"),
            (("x:///", "text/html"), "resource.html"),
            (("//", ""), "resource"),
        ];
        for ((uri, kind), expected) in cases {
            assert_eq!(file_name(uri, kind), expected, "{uri}");
        }
    }

    #[test]
    fn lists_are_read_with_care() {
        let one =
            json!({ "uri": " note://a ", "name": "a", "title": "A", "mimeType": "text/plain", "size": 3 });
        let read = resource(&one).unwrap();
        assert_eq!((read.uri.as_str(), read.name.as_str(), read.bytes), ("note://a", "A", Some(3)));
        assert_eq!(resource(&json!({ "uri": "note://b" })).unwrap().name, "note://b");
        for wrong in [json!({}), json!({ "uri": "" }), json!({ "uri": 3 }), json!("note://a")] {
            assert!(resource(&wrong).is_none(), "{wrong}");
        }
        assert!(resource(&json!({ "uri": "x".repeat(3000) })).is_none());
        assert_eq!(template(&json!({ "uriTemplate": "note://{name}" })).unwrap().template, "note://{name}");
    }
}

//! JSON pointers (RFC 6901), without the fragment's `#`.

use serde_json::Value;

/// Appends a step.
pub fn join(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// Returns the pointer that a reference inside its document stands for: `#` or `#/…`, percent-decoded.
pub fn of_reference(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return None;
    }
    percent_decode(fragment)
}

/// Returns the schema that a local reference names, with its pointer.
pub fn resolve<'a>(root: &'a Value, reference: &str) -> Option<(String, &'a Value)> {
    let pointer = of_reference(reference)?;
    let target = root.pointer(&pointer)?;
    Some((pointer, target))
}

fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_decoded() {
        assert_eq!(of_reference("#"), Some(String::new()));
        assert_eq!(of_reference("#/definitions/a%20b~1c"), Some("/definitions/a b~1c".into()));
        assert_eq!(of_reference("#name"), None);
        assert_eq!(of_reference("http://a/b#/c"), None);
        assert_eq!(of_reference("#/%zz"), None);
        assert_eq!(join("/a", "b/c~d"), "/a/b~1c~0d");
    }
}

//! Which request a message answers that is no JSON: cut off, or with a fault in its result.

const ID_KEY: &str = "\"id\"";

/// Finds the request that a broken message answers, among those that wait.
pub fn request_of(line: &str, waiting: &[u64]) -> Option<u64> {
    let from = line.find('{')?;
    let ids = ids_in(&line[from..]);
    let is_waiting = |id: &u64| waiting.contains(id);
    // The message's own id lies outside what it says.
    let own = ids.iter().find(|(depth, id)| *depth == 1 && is_waiting(id));
    // A string that does not end hides what is behind it.
    let any = || {
        line.rmatch_indices(ID_KEY)
            .find_map(|(at, key)| number_after_colon(&line[at + key.len()..]).filter(is_waiting))
    };
    let found = own.map(|(_, id)| *id).or_else(any);
    // Its id is lost where it was cut off before it.
    let only = || waiting.first().copied().filter(|_| waiting.len() == 1 && line.contains("\"jsonrpc\""));
    found.or_else(only)
}

/// The ids of a message, each with how deep it lies.
fn ids_in(text: &str) -> Vec<(usize, u64)> {
    let (mut ids, mut depth, mut rest) = (Vec::new(), 0_usize, text);
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        rest = &rest[at..];
        let n = match rest.as_bytes()[0] {
            b'"' => string_len(rest),
            b'{' | b'[' => {
                depth += 1;
                1
            }
            _ => {
                depth = depth.saturating_sub(1);
                1
            }
        };
        let (word, after) = rest.split_at(n);
        rest = after;
        if word == ID_KEY {
            ids.extend(number_after_colon(rest).map(|id| (depth, id)));
        }
    }
    ids
}

/// Bytes of the string at the front, with its quotes.
fn string_len(text: &str) -> usize {
    let (mut is_escaped, bytes) = (false, text.as_bytes());
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}

fn number_after_colon(text: &str) -> Option<u64> {
    let value = text.trim_start().strip_prefix(':')?.trim_start().trim_start_matches('"');
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    value[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_found_by_its_id() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"ty"#, Some(7)),
            (r#"{"jsonrpc":"2.0","id": "7" ,"result":{"a":tru}}"#, Some(7)),
            (r#"{"result":{"id":8,"a":b},"id":7}"#, Some(7)),
            (r#"{"result":{"id":3,"text":"\"id\": 8},"id":7}"#, Some(7)),
            (r#"INFO: {"id":8,"result":x}"#, Some(8)),
            (r#"{"id":9,"result":x}"#, None),
            (r#"{"text":"id: 7"}"#, None),
            ("Listening on port 7", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(request_of(line, &[7, 8]), expected, "{line}");
        }
        assert_eq!(request_of(r#"{"jsonrpc":"2.0","result":{"con"#, &[5]), Some(5));
        assert_eq!(request_of(r#"{"level":"info""#, &[5]), None);
        assert_eq!(request_of(r#"{"jsonrpc":"2.0","result":{"con"#, &[5, 6]), None);
    }
}

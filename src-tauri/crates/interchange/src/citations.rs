//! Citation marks in ChatGPT's answers: replaced by what they stand for, else removed.
//!
//! Newer marks lie between U+E200 and U+E201, their fields are parted by U+E202, and `content_references` says what they
//! show. Older ones are `【12†source】`, with `citations` by position. Text between U+E203 and U+E204 is only highlighted.

use serde_json::Value;

const OPEN: char = '\u{e200}';
const CLOSE: char = '\u{e201}';
const FIELD: char = '\u{e202}';

/// Every character that marks something.
const MARKS: [char; 7] = [OPEN, CLOSE, FIELD, '\u{e203}', '\u{e204}', '\u{e205}', '\u{e206}'];

/// Longest mark that never ends; what follows it is text.
const MAX_OPEN_MARK_CHARS: usize = 200;

/// The text as its reader saw it.
pub fn resolve(text: &str, metadata: &Value) -> String {
    if !has_marks(text) {
        return text.to_owned();
    }
    let mut resolved = by_position(text, &metadata["citations"]);
    for reference in metadata["content_references"].as_array().into_iter().flatten() {
        let matched = reference["matched_text"].as_str().unwrap_or_default();
        // Some refer to a single space, which is no mark.
        if has_marks(matched) && resolved.contains(matched) {
            let shown = shown(reference);
            resolved = replace_mark(&resolved, matched, &shown);
        }
    }
    without_old_marks(&without_marks(&resolved))
}

fn has_marks(text: &str) -> bool {
    text.contains(MARKS) || text.contains('【') || text.contains("[oaicite:")
}

/// What a reference shows: its own words, else links to what it cites.
fn shown(reference: &Value) -> String {
    let words = ["alt", "prompt_text"].iter().find_map(|key| filled(&reference[*key]));
    let kind = reference["type"].as_str().unwrap_or_default();
    match words {
        Some(words) => words.to_owned(),
        None if kind == "hidden" => String::new(),
        None => links(reference)
            .or_else(|| filled(&reference["name"]).map(|name| format!("({name})")))
            .unwrap_or_default(),
    }
}

fn links(reference: &Value) -> Option<String> {
    let items = reference["items"].as_array().filter(|items| !items.is_empty());
    let links: Vec<_> = match items {
        Some(items) => items.iter().filter_map(link).collect(),
        None => link(reference).into_iter().collect(),
    };
    (!links.is_empty()).then(|| format!("({})", links.join(", ")))
}

/// A link in Markdown.
fn link(item: &Value) -> Option<String> {
    let url = filled(&item["url"]).filter(|url| !url.contains(char::is_whitespace))?;
    let title = filled(&item["title"]).or_else(|| filled(&item["attribution"])).unwrap_or(url);
    let title = title.replace('[', "\\[").replace(']', "\\]").replace('\n', " ");
    match url.contains(['(', ')']) {
        true => Some(format!("[{title}](<{url}>)")),
        false => Some(format!("[{title}]({url})")),
    }
}

fn filled(value: &Value) -> Option<&str> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// The first occurrence.
fn replace_mark(text: &str, mark: &str, shown: &str) -> String {
    match text.split_once(mark) {
        Some((before, after)) => format!("{}{shown}{after}", before_mark(before, shown, after)),
        None => text.to_owned(),
    }
}

/// Without the space that a mark stood behind, where nothing takes its place.
fn before_mark<'a>(before: &'a str, shown: &str, after: &str) -> &'a str {
    // No further than the longest mark: a text may be nothing but marks.
    let next = after.chars().take(MAX_OPEN_MARK_CHARS).find(|c| !MARKS.contains(c));
    let is_loose = shown.is_empty() && next.is_none_or(|c| c.is_whitespace() || ".,;:!?)".contains(c));
    if is_loose { before.strip_suffix(' ').unwrap_or(before) } else { before }
}

/// Older references name the characters of their mark.
fn by_position(text: &str, citations: &Value) -> String {
    let Some(citations) = citations.as_array().filter(|citations| !citations.is_empty()) else {
        return text.to_owned();
    };
    let chars: Vec<char> = text.chars().collect();
    let at = |value: &Value| value.as_u64().and_then(|at| usize::try_from(at).ok());
    let mut spans: Vec<(usize, usize, String)> = citations
        .iter()
        .filter_map(|citation| {
            let (start, end) = (at(&citation["start_ix"])?, at(&citation["end_ix"])?);
            let is_mark = chars.get(start) == Some(&'【') && chars.get(end.checked_sub(1)?) == Some(&'】');
            let link = link(&citation["metadata"]).filter(|_| is_mark)?;
            (start < end).then(|| (start, end, format!("({link})")))
        })
        .collect();
    spans.sort();
    let (mut resolved, mut done) = (String::new(), 0);
    for (start, end, shown) in spans {
        if start >= done {
            resolved.extend(&chars[done..start]);
            resolved.push_str(&shown);
            done = end;
        }
    }
    resolved.extend(&chars[done..]);
    resolved
}

/// Removes the marks that nothing refers to; those that carry a name leave it.
fn without_marks(text: &str) -> String {
    let mut rest = text;
    let mut clean = String::with_capacity(text.len());
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (mark, behind) = match after.split_once(CLOSE) {
            Some((mark, behind)) if !mark.contains(OPEN) => (mark, behind),
            _ => unclosed(after),
        };
        let shown = name_in(mark);
        clean.push_str(before_mark(before, &shown, behind));
        clean.push_str(&shown);
        rest = behind;
    }
    clean.push_str(rest);
    clean.retain(|c| !MARKS.contains(&c));
    clean
}

/// A mark that the text's end, or another mark, cuts off: up to the next space.
fn unclosed(after: &str) -> (&str, &str) {
    let end = after
        .char_indices()
        .take(MAX_OPEN_MARK_CHARS)
        .find(|(_, c)| c.is_whitespace() || *c == OPEN)
        .map_or_else(|| after.len().min(after.floor_char_boundary(MAX_OPEN_MARK_CHARS)), |(at, _)| at);
    after.split_at(end)
}

/// The words that a mark shows by itself: an entity's name, a link's title.
fn name_in(mark: &str) -> String {
    let mut fields = mark.split(FIELD);
    let (kind, first) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    match kind {
        "entity" => {
            let fields: Value = serde_json::from_str(first).unwrap_or_default();
            filled(&fields[1]).unwrap_or_default().to_owned()
        }
        "url" | "link" => first.to_owned(),
        _ => String::new(),
    }
}

/// Removes `【12†source】`, `【4:0†file.pdf】`, `【oaicite:0】` and `:contentReference[oaicite:0]{index=0}`.
fn without_old_marks(text: &str) -> String {
    let text = without_each(text, "【", |after| {
        let end = after.find('】')?;
        let inside = &after[..end];
        let is_number =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || ":-".contains(c));
        let is_mark = inside.split_once('†').is_some_and(|(number, _)| is_number(number))
            || inside.starts_with("oaicite:")
            || inside.starts_with("turn") && inside.contains('†');
        is_mark.then(|| end + '】'.len_utf8())
    });
    let text = without_each(&text, ":contentReference[oaicite:", |after| {
        let end = after.find(']')? + 1;
        let index = after[end..].strip_prefix("{index=").and_then(|rest| rest.find('}'));
        Some(index.map_or(end, |at| end + "{index=".len() + at + 1))
    });
    without_each(&text, "[oaicite:", |after| Some(after.find(']')? + 1))
}

/// Removes what begins with `start`, and as many bytes behind it as `length` says. None: it is no mark.
fn without_each(text: &str, start: &str, length: impl Fn(&str) -> Option<usize>) -> String {
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(start) {
        let after = &rest[at + start.len()..];
        match length(after) {
            Some(n_bytes) => {
                let behind = &after[n_bytes..];
                clean.push_str(before_mark(&rest[..at], "", behind));
                rest = behind;
            }
            None => {
                clean.push_str(&rest[..at + start.len()]);
                rest = after;
            }
        }
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, metadata: Value, expected: &str) {
        assert_eq!(resolve(text, &metadata), expected, "{text}");
    }

    #[test]
    fn marks_become_what_their_references_show() {
        let mark = "\u{e200}cite\u{e202}turn0search0\u{e202}turn0search3\u{e201}";
        let with = |reference: Value| {
            let mut reference = reference;
            reference["matched_text"] = json!(mark);
            json!({"content_references": [{"matched_text": " ", "type": "sources_footnote"}, reference]})
        };
        let text = format!("Paris is it {mark}. Next");
        let alt = json!({"type": "grouped_webpages", "alt": "([Wiki](https://en.wikipedia.org/wiki/Paris))"});
        check(&text, with(alt), "Paris is it ([Wiki](https://en.wikipedia.org/wiki/Paris)). Next");
        let items = json!({"type": "grouped_webpages", "alt": null, "items": [
            {"title": "A [b]", "url": "https://a.b/c"}, {"title": "", "url": "https://d.e/f_(g)"}, {"url": null}]});
        check(
            &text,
            with(items),
            "Paris is it ([A \\[b\\]](https://a.b/c), [https://d.e/f_(g)](<https://d.e/f_(g)>)). Next",
        );
        check(
            &text,
            with(json!({"type": "webpage", "title": "T", "url": "https://a.b"})),
            "Paris is it ([T](https://a.b)). Next",
        );
        check(
            &text,
            with(json!({"type": "file", "name": "plan.pdf", "alt": ""})),
            "Paris is it (plan.pdf). Next",
        );
        check(&text, with(json!({"type": "hidden", "url": "https://a.b"})), "Paris is it. Next");
        check(&text, json!({"content_references": "broken"}), "Paris is it. Next");
        check(&format!("{mark} a{mark} b {mark}\n"), json!(null), " a b\n");
    }

    #[test]
    fn marks_without_a_reference_leave_the_name_that_they_carry() {
        for (text, expected) in [
            ("See \u{e200}entity\u{e202}[\"city\",\"Paris\",\"capital\"]\u{e201} too.", "See Paris too."),
            ("by \u{e200}entity\u{e202}[\"people\", \"N. Erb\", 0]\u{e201} notes", "by N. Erb notes"),
            ("a \u{e200}url\u{e202}Title\u{e202}turn0search1\u{e201} b", "a Title b"),
            ("\u{e200}image_group\u{e202}{\"query\":[\"x\"]}\u{e201}\nText", "\nText"),
            ("\u{e203}Marked words\u{e204} \u{e200}cite\u{e202}turn0news1\u{e201}\u{e206}", "Marked words"),
            ("cut \u{e200}cite\u{e202}turn0sea", "cut"),
            (
                "cut \u{e200}cite\u{e202}turn0 and more \u{e200}cite\u{e202}turn0search1\u{e201}.",
                "cut and more.",
            ),
            ("stray \u{e201}\u{e202}.", "stray ."),
            ("an icon \u{e0b0} and CJK 【注】", "an icon \u{e0b0} and CJK 【注】"),
        ] {
            check(text, json!({}), expected);
        }
    }

    #[test]
    fn older_marks_are_resolved_by_position_or_removed() {
        let citations = json!({"citations": [
            {"start_ix": 8, "end_ix": 19, "metadata": {"type": "webpage", "title": "T", "url": "https://a.b"}},
            {"start_ix": 0, "end_ix": 2, "metadata": {"title": "no mark", "url": "https://a.b"}}]});
        check("Ein Fuß 【12†source】.", citations, "Ein Fuß ([T](https://a.b)).");
        for (text, expected) in [
            ("too. 【4:0†source】", "too."),
            ("a【11†L1-L5】 b", "a b"),
            ("file 【7:1†plan.pdf】, more", "file, more"),
            ("x 【oaicite:3】.", "x."),
            ("x :contentReference[oaicite:0]{index=0}.", "x."),
            ("x [oaicite:2] y", "x y"),
            ("【重要】 and 【1】 and 【open", "【重要】 and 【1】 and 【open"),
        ] {
            check(text, json!({}), expected);
        }
    }
}

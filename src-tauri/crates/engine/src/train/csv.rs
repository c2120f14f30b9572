//! Comma-separated values (RFC 4180), also with semicolons or tabs.

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Line where it starts, from 1.
    pub line: usize,
    pub fields: Vec<String>,
}

/// Returns the separator: the one of the three that the first line has most of, outside of quotes.
fn separator(text: &str) -> char {
    let mut quoted = false;
    let mut counts = [(',', 0), (';', 0), ('\t', 0)];
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '\n' if !quoted => break,
            c if !quoted => counts.iter_mut().filter(|(known, _)| *known == c).for_each(|(_, n)| *n += 1),
            _ => {}
        }
    }
    let most = counts.iter().map(|(_, n)| *n).max().unwrap_or(0);
    counts.iter().find(|(_, n)| *n == most).map_or(',', |(c, _)| *c)
}

/// Returns all rows. A quote that is not closed ends with the text.
pub(super) fn records(text: &str) -> Vec<Record> {
    let separator = separator(text);
    let (mut all, mut fields, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut start, mut is_quoted) = (1, 1, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' if is_quoted => is_quoted = false,
            '"' if field.is_empty() => is_quoted = true,
            c if is_quoted => field.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                fields.push(std::mem::take(&mut field));
                push(&mut all, start, &mut fields);
                start = line;
            }
            c if c == separator => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    push(&mut all, start, &mut fields);
    all
}

/// Appends a row unless it is blank.
fn push(all: &mut Vec<Record>, line: usize, fields: &mut Vec<String>) {
    let fields = std::mem::take(fields);
    if fields.len() > 1 || fields.iter().any(|field| !field.trim().is_empty()) {
        all.push(Record { line, fields });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_lines_and_separators() {
        let check = |text: &str, expected: &[(usize, &[&str])]| {
            let found = records(text);
            let found: Vec<(usize, Vec<&str>)> =
                found.iter().map(|r| (r.line, r.fields.iter().map(String::as_str).collect())).collect();
            let expected: Vec<(usize, Vec<&str>)> = expected.iter().map(|(n, f)| (*n, f.to_vec())).collect();
            assert_eq!(found, expected, "{text:?}");
        };
        check(
            "a,b\r\nc,\"d \"\"e\"\"\nf\"\n\n,\n",
            &[(1, &["a", "b"]), (2, &["c", "d \"e\"\nf"]), (5, &["", ""])],
        );
        check("a;b,c\n", &[(1, &["a;b", "c"])]);
        check("a;b;c,\nd", &[(1, &["a", "b", "c,"]), (2, &["d"])]);
        check("a\tb\"c", &[(1, &["a", "b\"c"])]);
        check("\"open,\nx", &[(1, &["open,\nx"])]);
        check("", &[]);
    }
}

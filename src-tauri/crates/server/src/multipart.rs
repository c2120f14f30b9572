//! Bodies of the type `multipart/form-data` (RFC 7578), as clients upload files in.

/// Most parts of a body. A form for a file has three or four.
const MAX_PARTS: usize = 64;

/// A field of a form.
#[derive(Debug, PartialEq, Eq)]
pub struct FormPart<'a> {
    pub name: String,
    /// `None`: the field is no file.
    pub filename: Option<String>,
    pub media_type: Option<String>,
    pub content: &'a [u8],
}

/// Splits a body into its parts. Error: a sentence.
pub fn parse<'a>(content_type: &str, body: &'a [u8]) -> Result<Vec<FormPart<'a>>, String> {
    let boundary = boundary(content_type)?;
    let opening = format!("--{boundary}");
    let separator = format!("\r\n--{boundary}");
    // What stands before the first boundary is no part.
    let start = match body.starts_with(opening.as_bytes()) {
        true => opening.len(),
        false => find(body, separator.as_bytes()).ok_or("The body has no boundary.")? + separator.len(),
    };
    let mut rest = &body[start..];
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        let line_end = find(rest, b"\r\n").ok_or("The form ends within a boundary.")?;
        rest = &rest[line_end..];
        let end = find(rest, separator.as_bytes()).ok_or("The form has no closing boundary.")?;
        if parts.len() == MAX_PARTS {
            return Err(format!("The form has more than {MAX_PARTS} parts."));
        }
        parts.push(part(&rest[..end])?);
        rest = &rest[end + separator.len()..];
    }
    Ok(parts)
}

fn boundary(content_type: &str) -> Result<String, String> {
    let (kind, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return Err("The body must be a form of the type multipart/form-data.".into());
    }
    // RFC 2046: 1 to 70 characters
    let boundary = parameter(parameters, "boundary").filter(|it| (1..=70).contains(&it.len()));
    boundary.ok_or_else(|| "The header Content-Type needs a `boundary`.".into())
}

/// A part begins with the line break behind its boundary; an empty line ends its headers.
fn part(bytes: &[u8]) -> Result<FormPart<'_>, String> {
    let head_end = find(bytes, b"\r\n\r\n").ok_or("A part of the form has no headers.")?;
    let head = std::str::from_utf8(&bytes[..head_end]).map_err(|_| "The headers of a part are not UTF-8.")?;
    let content = &bytes[head_end + 4..];
    let header = |name: &str| {
        let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    };
    let disposition = header("content-disposition").and_then(|value| value.split_once(';'));
    let parameters = disposition.map(|(_, parameters)| parameters).unwrap_or_default();
    let name = parameter(parameters, "name").ok_or("A part of the form has no name.")?;
    let filename = parameter(parameters, "filename");
    Ok(FormPart { name, filename, media_type: header("content-type").map(str::to_owned), content })
}

/// A parameter of a header, quoted or not. Browsers and clients write quotes in names as `%22` or `\"`.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    loop {
        rest = rest.trim_start_matches([';', ' ', '\t', '\r', '\n']);
        let (key, after) = rest.split_once('=')?;
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = behind;
    }
}

/// The text up to the closing quote, and what follows it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value.replace("%22", "\""), &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                escaped @ ('"' | '\\') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
    None
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = bytes.get(from..)?.iter().position(|byte| *byte == first) {
        let start = from + at;
        if bytes[start..].starts_with(wanted) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=xyz";

    /// Name, file name, media type and content.
    type PartFields<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [u8]);

    fn check(content_type: &str, body: &[u8], expected: &[PartFields]) {
        let parts = parse(content_type, body).unwrap();
        let found: Vec<PartFields> = parts
            .iter()
            .map(|part| {
                (part.name.as_str(), part.filename.as_deref(), part.media_type.as_deref(), part.content)
            })
            .collect();
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(body));
    }

    #[test]
    fn forms_have_fields_and_files() {
        let field = b"--xyz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xyz--\r\n";
        check(TYPE, field, &[("purpose", None, None, b"batch")]);
        let file = b"--xyz\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\\\"b%22.txt\"\r\n\
            Content-Type: text/plain\r\n\r\n\r\nline --xyz\r\n\r\n--xyz--";
        check(TYPE, file, &[("file", Some("a\"b\".txt"), Some("text/plain"), b"\r\nline --xyz\r\n")]);
        let two = b"preamble\r\n--xyz  \r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--xyz\r\n\
            Content-Disposition: form-data; name=b; filename=\"\"\r\n\r\n\xff\r\n--xyz--epilogue";
        check(
            "Multipart/Form-Data; charset=x; boundary=\"xyz\"",
            two,
            &[("a", None, None, b""), ("b", Some(""), None, b"\xff")],
        );
        check(TYPE, b"--xyz--", &[]);
    }

    #[test]
    fn what_is_no_form_says_why() {
        let good = b"--xyz--";
        for (content_type, body, why) in [
            ("application/json", &good[..], "multipart/form-data"),
            ("multipart/form-data", good, "`boundary`"),
            ("multipart/form-data; boundary=", good, "`boundary`"),
            (TYPE, b"", "no boundary"),
            (TYPE, b"--xyz", "within a boundary"),
            (TYPE, b"--xyz\r\n", "closing boundary"),
            (TYPE, b"--xyz\r\nx\r\n--xyz--", "no headers"),
            (TYPE, b"--xyz\r\nContent-Type: a\r\n\r\nx\r\n--xyz--", "no name"),
            (TYPE, b"--xyz\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--xyz--", "no name"),
            (TYPE, b"--xyz\r\n\xff: x\r\n\r\nx\r\n--xyz--", "UTF-8"),
        ] {
            let error = parse(content_type, body).unwrap_err();
            assert!(error.contains(why), "{}: {error}", String::from_utf8_lossy(body));
        }
        let many = "\r\n--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\n".repeat(MAX_PARTS + 1);
        assert!(parse(TYPE, format!("{many}\r\n--xyz--").as_bytes()).unwrap_err().contains("more than"));
    }
}

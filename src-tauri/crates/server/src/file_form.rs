//! Forms that upload a file (`multipart/form-data`, RFC 7578): the file, and the fields beside it.

use std::collections::BTreeMap;
use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use contract::{Error, Result};
use documents::file_name;
use futures_util::stream;
use multer::{Field, Multipart};

use crate::body::read;
use crate::request_fields::invalid;

/// Most parts of a form. One for a file has three or four.
const MAX_PARTS: usize = 64;

/// Longest media type that is kept.
const MAX_TYPE_BYTES: usize = 255;

/// Lengths of a boundary, by RFC 2046.
const BOUNDARY_BYTES: std::ops::RangeInclusive<usize> = 1..=70;

/// What stands for the type of a file whose client names none.
const ANY_TYPE: &str = "application/octet-stream";

/// A form with a file.
#[derive(Debug)]
pub struct FileForm {
    pub filename: String,
    pub media_type: String,
    pub content: Bytes,
    /// The other fields, as text.
    pub fields: BTreeMap<String, String>,
}

impl FileForm {
    /// Reads a request whose file is in the field `file_field`. The outer error is a refusal of the body as a whole.
    pub async fn read(
        headers: &HeaderMap,
        body: Body,
        file_field: &str,
    ) -> std::result::Result<Result<Self>, Response> {
        let body = read(body).await?;
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Ok(Self::parse(content_type.unwrap_or_default(), body, file_field).await)
    }

    /// Parses a body, which waits for nothing.
    pub async fn parse(content_type: &str, body: Bytes, file_field: &str) -> Result<Self> {
        let boundary = multer::parse_boundary(content_type).ok();
        let boundary = boundary.filter(|it| BOUNDARY_BYTES.contains(&it.len())).ok_or_else(no_form)?;
        // In one piece: for each further piece the parser would search its buffer from the start.
        let body = stream::once(std::future::ready(Ok::<_, Infallible>(body)));
        let mut parts = Multipart::new(body, boundary);
        let (mut file, mut fields) = (None, BTreeMap::new());
        for n_read in 0.. {
            let broken = |error| broken_part(n_read + 1, &error);
            let Some(part) = parts.next_field().await.map_err(broken)? else { break };
            if n_read == MAX_PARTS {
                return Err(invalid(format!("The form has more than {MAX_PARTS} parts.")));
            }
            let name = part.name().map(unescape_quotes);
            let name =
                name.ok_or_else(|| invalid(format!("Part {} of the form has no name.", n_read + 1)))?;
            if name == file_field {
                let filename = file_name::clean(&part.file_name().map(unescape_quotes).unwrap_or_default());
                file = Some((filename, media_type(&part), part.bytes().await.map_err(broken)?));
            } else {
                let text = String::from_utf8(part.bytes().await.map_err(broken)?.into());
                let text = text.map_err(|_| invalid(format!("`{name}` is not UTF-8 text.")))?;
                fields.insert(name, text);
            }
        }
        let missing = || invalid(format!("The form needs a file in the field `{file_field}`."));
        let (filename, media_type, content) = file.ok_or_else(missing)?;
        Ok(Self { filename, media_type, content, fields })
    }
}

fn no_form() -> Error {
    let message =
        "The body must be a form: Content-Type `multipart/form-data` with a `boundary` of 1 to 70 bytes.";
    invalid(message)
}

/// The part with this number can't be read.
fn broken_part(number: usize, error: &multer::Error) -> Error {
    let fault = match error {
        multer::Error::IncompleteStream => {
            "the boundary before it or the end of its headers is missing".into()
        }
        multer::Error::IncompleteFieldData { .. } => "the boundary behind it is missing".into(),
        other => match std::error::Error::source(other) {
            Some(cause) => format!("{other}: {cause}"),
            None => other.to_string(),
        },
    };
    invalid(format!("Part {number} of the form can't be read: {fault}."))
}

/// Browsers write a quote in a name as `%22`, by the HTML specification; the parser undoes only `\"`.
fn unescape_quotes(name: &str) -> String {
    name.replace("%22", "\"")
}

fn media_type(part: &Field<'_>) -> String {
    let kind = part.content_type().map(ToString::to_string).filter(|kind| kind.len() <= MAX_TYPE_BYTES);
    kind.unwrap_or_else(|| ANY_TYPE.into())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=xyz";

    fn parse(content_type: &str, body: &[u8]) -> Result<FileForm> {
        // A held body is parsed in one poll.
        FileForm::parse(content_type, Bytes::copy_from_slice(body), "file").now_or_never().unwrap()
    }

    /// A file's name, media type and content, and the other fields.
    type FormFields<'a> = (&'a str, &'a str, &'a [u8], &'a [(&'a str, &'a str)]);

    fn check(content_type: &str, body: &[u8], expected: FormFields) {
        let form = parse(content_type, body).unwrap();
        let fields: Vec<_> = form.fields.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let found = (form.filename.as_str(), form.media_type.as_str(), &form.content[..], &fields[..]);
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(body));
    }

    #[test]
    fn a_form_has_a_file_and_fields() {
        let body = b"--xyz\r\nContent-Disposition: form-data; name=purpose\r\n\r\nbatch\r\n\
              --xyz\r\nContent-Disposition: form-data; name=file; filename=\"../../a.txt\"\r\n\
              Content-Type: text/plain\r\n\r\nhello\r\n--xyz--";
        check(TYPE, body, ("a.txt", "text/plain", b"hello", &[("purpose", "batch")]));
        // quotes in names, as clients and as browsers write them; a boundary within a line is content
        let body = b"--xyz\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a\\\"b%22.txt\"\r\n\
            Content-Type: text/csv; charset=utf-8\r\n\r\n\r\nline --xyz\r\n\r\n--xyz--";
        let name = file_name::clean("a\"b\".txt");
        check(TYPE, body, (&name, "text/csv; charset=utf-8", b"\r\nline --xyz\r\n", &[]));
        // text around the form, padding behind a boundary, a file that has no name or type and is not UTF-8
        let body =
            b"preamble\r\n--xyz  \r\nContent-Disposition: form-data; name=\"a%22\"\r\n\r\n\r\n--xyz\r\n\
            Content-Disposition: form-data; name=file; filename=\"\"\r\n\r\n\xff\r\n--xyz--epilogue";
        let kind = "Multipart/Form-Data; charset=x; boundary=\"xyz\"";
        check(kind, body, (&file_name::clean(""), ANY_TYPE, b"\xff", &[("a\"", "")]));
    }

    #[test]
    fn what_is_no_form_says_why() {
        let good = b"--xyz--";
        for (content_type, body, why) in [
            ("application/json", &good[..], "`multipart/form-data`"),
            ("", good, "`multipart/form-data`"),
            ("multipart/form-data", good, "`boundary`"),
            ("multipart/form-data; boundary=", good, "`boundary`"),
            ("multipart/form-data; boundary=\"\"", good, "`boundary`"),
            (TYPE, good, "the field `file`"),
            (TYPE, b"", "Part 1 of the form can't be read: the boundary"),
            (TYPE, b"--xyz", "Part 1 of the form can't be read: the boundary"),
            (TYPE, b"--xyz\r\nx\r\n--xyz--", "the end of its headers is missing"),
            (TYPE, b"--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n", "behind it is missing"),
            (
                TYPE,
                b"--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--xyz",
                "Part 2 of the form",
            ),
            (TYPE, b"--xyz\r\nContent-Type: a\r\n\r\nx\r\n--xyz--", "Part 1 of the form has no name"),
            (TYPE, b"--xyz\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--xyz--", "no name"),
            (TYPE, b"--xyz\r\n\xff: x\r\n\r\nx\r\n--xyz--", "failed to read headers: invalid header name"),
            (
                TYPE,
                b"--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\n\xff\r\n--xyz--",
                "`a` is not UTF-8",
            ),
        ] {
            let error = parse(content_type, body).unwrap_err();
            assert!(error.message().contains(why), "{}: {error}", String::from_utf8_lossy(body));
        }
        let many = "\r\n--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\n".repeat(MAX_PARTS + 1);
        let error = parse(TYPE, format!("{many}\r\n--xyz--").as_bytes()).unwrap_err();
        assert!(error.message().contains("more than 64 parts"), "{error}");
    }
}

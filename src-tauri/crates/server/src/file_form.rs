//! Forms that upload a file: the file, and the fields beside it.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use contract::Result;
use documents::file_name;

use crate::body::read;
use crate::multipart;
use crate::request_fields::invalid;

/// Longest media type that is kept.
const MAX_TYPE_BYTES: usize = 255;

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
        Ok(Self::parse(content_type.unwrap_or_default(), &body, file_field))
    }

    /// Parses a body.
    pub fn parse(content_type: &str, body: &Bytes, file_field: &str) -> Result<Self> {
        let (mut file, mut fields) = (None, BTreeMap::new());
        for part in multipart::parse(content_type, body).map_err(invalid)? {
            if part.name == file_field {
                let name = file_name::clean(part.filename.as_deref().unwrap_or_default());
                let media_type = part.media_type.filter(|it| is_media_type(it));
                file =
                    Some((name, media_type.unwrap_or_else(|| ANY_TYPE.into()), body.slice_ref(part.content)));
            } else {
                let text = std::str::from_utf8(part.content);
                let text = text.map_err(|_| invalid(format!("`{}` is not UTF-8 text.", part.name)))?;
                fields.insert(part.name, text.to_owned());
            }
        }
        let missing = || invalid(format!("The form needs a file in the field `{file_field}`."));
        let (filename, media_type, content) = file.ok_or_else(missing)?;
        Ok(Self { filename, media_type, content, fields })
    }
}

fn is_media_type(text: &str) -> bool {
    text.len() <= MAX_TYPE_BYTES
        && text.contains('/')
        && text.chars().all(|c| c.is_ascii_graphic() || c == ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_a_file_and_fields() {
        let body = Bytes::from_static(
            b"--x\r\nContent-Disposition: form-data; name=purpose\r\n\r\nbatch\r\n\
              --x\r\nContent-Disposition: form-data; name=file; filename=\"../../a.txt\"\r\n\
              Content-Type: text/plain\r\n\r\nhello\r\n--x--",
        );
        let form = FileForm::parse("multipart/form-data; boundary=x", &body, "file").unwrap();
        assert_eq!((form.filename.as_str(), form.media_type.as_str()), ("a.txt", "text/plain"));
        assert_eq!((&form.content[..], form.fields["purpose"].as_str()), (&b"hello"[..], "batch"));
        let error = FileForm::parse("multipart/form-data; boundary=x", &body, "data").unwrap_err();
        assert!(error.message().contains("`data`"), "{error}");
    }
}

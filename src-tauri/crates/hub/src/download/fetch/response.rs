//! Checks of a response's status and headers against the request.

use std::sync::atomic::Ordering::Relaxed;

use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderValue};
use reqwest::{Response, Url};

use super::{DownloadSource, FileFetch, RequestFailure};
use crate::download::fetch_end::FetchEnd;
use crate::error::HubError;
use crate::http_error::{RequestError, response_error};
use crate::url::host;

/// After this many responses that ignore the `Range` header, treat the server as not supporting ranges.
const MAX_IGNORED_RANGES: u32 = 3;

/// After this many entity tag changes in a row for unchanged content, ignore entity tags: several stores may serve one
/// content, each under its own tag.
const MAX_TAG_CHANGES: u32 = 3;

/// After this many refusals of the store in a row, each with a new URL, give up.
const MAX_REFUSALS: u32 = 5;

impl FileFetch {
    /// Checks status and headers of a response against the request.
    pub(super) fn check_head(
        &self,
        location: &Url,
        response: &Response,
        from: u64,
        end: u64,
        wants_whole: bool,
    ) -> Result<(), RequestFailure> {
        let headers = response.headers();
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let broken = |cause: &str| RequestFailure::Broken(HubError::bad_response(&host(location), cause));
        match response.status().as_u16() {
            200 | 206 => {}
            301..=303 | 307 | 308 => {
                let next = self.client.hub.redirect_target(location, headers);
                let next = next.map_err(|error| RequestFailure::Request(RequestError::Permanent(error)))?;
                self.source().location = Some(next);
                return Err(broken("it has moved"));
            }
            416 => {
                let total =
                    text(CONTENT_RANGE).and_then(|range| range.rsplit('/').next()?.parse::<u64>().ok());
                let is_other = total.is_some_and(|total| total != self.part.header().bytes);
                return Err(if is_other {
                    RequestFailure::Fatal(FetchEnd::Changed)
                } else {
                    broken("it has no such range")
                });
            }
            401 | 403 | 404 | 410 if self.n_refusals.fetch_add(1, Relaxed) < MAX_REFUSALS => {
                // Signed URLs expire. Resolving again shows whether the refusal has another reason.
                self.source().location = None;
                return Err(broken("its URL of the file is no longer valid"));
            }
            _ => {
                return Err(RequestFailure::Request(response_error(
                    &self.client.hub,
                    self.client.has_token(),
                    Some(&self.repository),
                    response,
                )));
            }
        }
        if text(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return Err(broken("it compressed the file"));
        }
        self.check_tag(text(ETAG))?;
        if response.status().as_u16() == 206 {
            let range = text(CONTENT_RANGE).and_then(content_range);
            let is_asked = range.is_some_and(|(first, last, total)| {
                first == from
                    && last < end.max(from + 1)
                    && total.is_none_or(|total| total == self.part.header().bytes)
            });
            return if is_asked && !wants_whole {
                Ok(())
            } else {
                Err(broken("it sent another range than asked for"))
            };
        }
        let is_whole = from == 0 && end == self.part.header().bytes;
        match response.content_length() {
            Some(bytes) if bytes != self.part.header().bytes => Err(RequestFailure::Fatal(FetchEnd::Changed)),
            _ if wants_whole || is_whole => Ok(()),
            _ if self.n_ignored.fetch_add(1, Relaxed) + 1 >= MAX_IGNORED_RANGES => {
                Err(RequestFailure::Fatal(FetchEnd::NoRanges))
            }
            _ => Err(broken("it sent the whole file instead of a part")),
        }
    }

    /// A changed entity tag may mean changed content: resolves the file again.
    fn check_tag(&self, tag: Option<&str>) -> Result<(), RequestFailure> {
        let Some(tag) = tag else { return Ok(()) };
        let mut source = self.source();
        let is_other = source.tag.as_ref().is_some_and(|known| known != tag);
        if !is_other || self.n_tag_changes.load(Relaxed) >= MAX_TAG_CHANGES {
            source.tag = Some(tag.to_owned());
            return Ok(());
        }
        self.n_tag_changes.fetch_add(1, Relaxed);
        *source = DownloadSource::default();
        Err(RequestFailure::Broken(HubError::bad_response(
            "the store",
            "it reports another entity tag than before",
        )))
    }
}

/// Parses `bytes 0-99/1000` into first, last and total; the total may be `*`.
fn content_range(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = if total.trim() == "*" { None } else { Some(total.trim().parse().ok()?) };
    (first <= last).then_some((first, last, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(content_range("bytes 0-99/1000"), Some((0, 99, Some(1000))));
        assert_eq!(content_range("bytes 5-5/*"), Some((5, 5, None)));
        for wrong in ["", "bytes", "bytes 9-5/10", "bytes */10", "items 0-1/2", "bytes 0-x/2", "bytes 0-1"] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}

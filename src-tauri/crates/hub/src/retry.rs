//! The `Retry-After` header.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// Wait requested by `Retry-After`, in seconds or as a date. A date counts from the server's own `Date` header, so that our
/// clock does not matter. None if absent or unreadable.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let wanted = text(RETRY_AFTER)?;
    if let Ok(seconds) = wanted.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let (then, now) = (date(wanted)?, date(text(DATE)?)?);
    // A date in the past means no wait.
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read() {
        let check = |wanted: &str, date: Option<&str>, expected: Option<u64>| {
            let mut headers = HeaderMap::from_iter([(RETRY_AFTER, wanted.parse().unwrap())]);
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            assert_eq!(retry_after(&headers).map(|wait| wait.as_secs()), expected, "{wanted} {date:?}");
        };
        let now = Some("Wed, 21 Oct 2026 07:28:00 GMT");
        check("7", None, Some(7));
        check(" 1.9 ", None, Some(1));
        check("999999", now, Some(999_999));
        check("Wed, 21 Oct 2026 07:28:30 GMT", now, Some(30));
        check("Wednesday, 21-Oct-26 07:29:00 GMT", now, Some(60));
        check("Wed Oct 21 07:28:05 2026", now, Some(5));
        check("Wed, 21 Oct 2026 07:00:00 GMT", now, Some(0));
        check("Wed, 21 Oct 2026 07:28:30 GMT", None, None);
        for wrong in ["", "soon", "-3", "NaN", "inf", "Wed, 41 Oct 2026 07:28:30 GMT"] {
            check(wrong, now, None);
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}

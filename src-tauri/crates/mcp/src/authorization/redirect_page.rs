//! The page that the browser shows after a sign-in, in the browser's language.

/// What the page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectOutcome {
    Done,
    Failed,
}

/// Language, direction, text after success, text after failure, and what to do then.
const TEXTS: &[(&str, &str, &str, &str, &str)] = &[
    ("en", "ltr", "You are signed in.", "The sign-in did not work.", "You can close this page."),
    (
        "de",
        "ltr",
        "Du bist angemeldet.",
        "Die Anmeldung hat nicht geklappt.",
        "Du kannst diese Seite schließen.",
    ),
    ("ja", "ltr", "サインインしました。", "サインインできませんでした。", "このページを閉じてかまいません。"),
    ("ar", "rtl", "تم تسجيل الدخول.", "لم ينجح تسجيل الدخول.", "يمكنك إغلاق هذه الصفحة."),
];

/// A whole HTTP response. Loads nothing, and is kept by no cache. `accepted`: the browser's `Accept-Language`.
pub fn redirect_page(outcome: RedirectOutcome, accepted: &str) -> String {
    let (language, direction, done, failed, close) = texts_for(accepted);
    let (status, said) = match outcome {
        RedirectOutcome::Done => ("200 OK", done),
        RedirectOutcome::Failed => ("400 Bad Request", failed),
    };
    let style = "body{color-scheme:light dark;display:grid;font:1.125rem/1.6 system-ui,sans-serif;\
                 min-height:90vh;place-items:center;text-align:center}";
    let page = format!(
        "<!doctype html><html lang=\"{language}\" dir=\"{direction}\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Inglenook</title><style>{style}</style>\
         <main><p>{said}</p><p>{close}</p></main></html>"
    );
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{page}",
        page.len()
    )
}

/// The first accepted language that there is, else English.
fn texts_for(accepted: &str) -> (&'static str, &'static str, &'static str, &'static str, &'static str) {
    let wanted = accepted.split(',').filter_map(|part| part.trim().get(..2));
    let found = wanted.filter_map(|two| TEXTS.iter().find(|it| it.0.eq_ignore_ascii_case(two))).next();
    *found.unwrap_or(&TEXTS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_speaks_the_language_of_the_browser() {
        let cases = [
            ("de-DE,de;q=0.9,en;q=0.8", "Du bist angemeldet."),
            ("fr, ja;q=0.5", "サインインしました。"),
            ("ar", "تم تسجيل الدخول."),
            ("", "You are signed in."),
            ("日本", "You are signed in."),
        ];
        for (accepted, expected) in cases {
            assert!(redirect_page(RedirectOutcome::Done, accepted).contains(expected), "{accepted}");
        }
        let failed = redirect_page(RedirectOutcome::Failed, "en");
        assert!(failed.starts_with("HTTP/1.1 400 ") && failed.contains("You can close this page."));
    }
}

//! Opens addresses and folders in the user's own programs: the browser, the mail program, the file manager.

/// Opens an address or a folder. Returns false where no program could be started; the user opens it then.
///
/// `browser` is the user's program for addresses of the web, where the variable [`BROWSER_VARIABLE`] names one.
pub fn open_outside(target: &str, browser: Option<&str>) -> bool {
    match browser {
        Some(browser) if !browser.is_empty() && has_scheme(target, &["https://", "http://"]) => {
            open::with_detached(target, browser).is_ok()
        }
        _ => open::that_detached(target).is_ok(),
    }
}

/// Names the browser, for `xdg-open` too.
pub const BROWSER_VARIABLE: &str = "BROWSER";

/// Whether a text is an address of the web or of a mailbox. Anything else could start a program.
pub fn is_link(text: &str) -> bool {
    has_scheme(text, &["https://", "http://", "mailto:"]) && !text.chars().any(char::is_control)
}

fn has_scheme(text: &str, schemes: &[&str]) -> bool {
    schemes.iter().any(|it| text.get(..it.len()).is_some_and(|start| start.eq_ignore_ascii_case(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_web_and_of_mailboxes_are_links() {
        for link in ["https://example.org/a?b=c#d", "HTTP://localhost:8642/", "mailto:a@example.org"] {
            assert!(is_link(link), "{link}");
        }
        let others = ["", "file:///etc/passwd", "/usr/bin/true", "javascript:alert(1)", "smb://host/share"];
        for other in
            others.into_iter().chain(["inglenook://chat", "https://a\nb", "--help", "ftp://a", "häß"])
        {
            assert!(!is_link(other), "{other:?}");
        }
    }
}

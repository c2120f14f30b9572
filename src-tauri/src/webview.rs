//! What holds for the page of every window: the addresses it may go to, and a new start after a crash.

use io::OperatingSystem;
use tauri::{Url, WebviewWindow};

/// Addresses of the frames that show what a model wrote.
pub const PREVIEW_SCHEME: &str = "preview";

/// Loads the page again where its process has died. Answers are written by this process meanwhile; the page follows them
/// from what is stored.
#[cfg(target_os = "linux")]
pub fn reload_after_crash(window: &WebviewWindow) -> tauri::Result<()> {
    use webkit2gtk::WebViewExt;
    window.with_webview(|webview| {
        webview.inner().connect_web_process_terminated(|view, reason| {
            tracing::error!("the page's process ended ({reason:?}); the page is loaded again");
            view.reload();
        });
    })
}

/// On macOS `run` does it. On Windows, WebView2 shows an error page that offers to load again.
#[cfg(not(target_os = "linux"))]
pub fn reload_after_crash(_: &WebviewWindow) -> tauri::Result<()> {
    Ok(())
}

/// Whether the URL belongs to the page; it may not navigate elsewhere. Frames have a scheme of their own.
pub fn is_ours(url: &Url) -> bool {
    is_ours_on(OperatingSystem::HERE, url)
}

fn is_ours_on(system: OperatingSystem, url: &Url) -> bool {
    match (url.scheme(), system) {
        ("tauri" | PREVIEW_SCHEME, _) => url.host_str() == Some("localhost"),
        // WebView2 knows no other schemes: the page and its frames use these origins.
        ("http" | "https", OperatingSystem::Windows) => {
            matches!(url.host_str(), Some("tauri.localhost" | "preview.localhost"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_itself_is_ours() {
        use OperatingSystem::{Linux, MacOs, Windows};
        let on = |system, url: &str, expected| {
            assert_eq!(is_ours_on(system, &url.parse().unwrap()), expected, "{system:?} {url}");
        };
        let check = |url: &str, expected| [Linux, MacOs, Windows].map(|system| on(system, url, expected));
        check("tauri://localhost/", true);
        check("tauri://localhost/index.html#x", true);
        check("tauri://localhost.evil.com/", false);
        check("preview://localhost/static", true);
        check("preview://evil.com/static", false);
        check("https://example.org/", false);
        check("http://tauri.localhost.evil.com/", false);
        for url in ["http://tauri.localhost/", "https://preview.localhost/static"] {
            on(Linux, url, false);
            on(MacOs, url, false);
            on(Windows, url, true);
        }
        check("file:///etc/passwd", false);
        check("data:text/html,x", false);
        check("javascript:alert(1)", false);
    }
}

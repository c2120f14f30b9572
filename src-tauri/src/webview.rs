//! What holds for the page of every window: the addresses it may go to, and a new start after a crash.

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
    match url.scheme() {
        "tauri" | PREVIEW_SCHEME => url.host_str() == Some("localhost"),
        // On Windows the page and its frames use these origins.
        "http" | "https" => {
            cfg!(windows) && matches!(url.host_str(), Some("tauri.localhost" | "preview.localhost"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_itself_is_ours() {
        let check = |url: &str, expected| assert_eq!(is_ours(&url.parse().unwrap()), expected, "{url}");
        check("tauri://localhost/", true);
        check("tauri://localhost/index.html#x", true);
        check("tauri://localhost.evil.com/", false);
        check("preview://localhost/static", true);
        check("preview://evil.com/static", false);
        check("https://example.org/", false);
        check("http://tauri.localhost/", cfg!(windows));
        check("file:///etc/passwd", false);
        check("data:text/html,x", false);
        check("javascript:alert(1)", false);
    }
}

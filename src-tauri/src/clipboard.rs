//! What other programs have copied, where the web view keeps it from the page. WebKitGTK gives a page neither copied files
//! nor copied pictures (<https://bugs.webkit.org/show_bug.cgi?id=218519>); elsewhere the page gets them with its paste event.

use contract::types::ErrorInfo;
use tauri::WebviewWindow;
use tauri::ipc::Response;

/// Paths of copied files. Empty: none are copied, or the page has them.
#[tauri::command]
pub async fn clipboard_paths(window: WebviewWindow) -> Result<Vec<String>, ErrorInfo> {
    withheld::paths(&window).await
}

/// A copied picture's file. Empty: none is copied, or the page has it.
#[tauri::command]
pub async fn clipboard_picture(window: WebviewWindow) -> Result<Response, ErrorInfo> {
    withheld::picture(&window).await.map(Response::new)
}

#[cfg(not(target_os = "linux"))]
mod withheld {
    use contract::types::ErrorInfo;
    use tauri::WebviewWindow;

    pub async fn paths(_: &WebviewWindow) -> Result<Vec<String>, ErrorInfo> {
        Ok(Vec::new())
    }

    pub async fn picture(_: &WebviewWindow) -> Result<Vec<u8>, ErrorInfo> {
        Ok(Vec::new())
    }
}

#[cfg(target_os = "linux")]
mod withheld {
    use std::sync::mpsc::{self, SyncSender};
    use std::time::Duration;

    use contract::Error;
    use contract::types::ErrorInfo;
    use gtk::gdk::{Atom, SELECTION_CLIPBOARD};
    use gtk::{Clipboard, glib};
    use tauri::WebviewWindow;

    use crate::background::blocking;

    /// Time that the program which copied has to hand it over.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Media types in the order of preference: those without loss first.
    const PICTURES: [&str; 6] =
        ["image/png", "image/webp", "image/tiff", "image/bmp", "image/jpeg", "image/gif"];

    pub async fn paths(window: &WebviewWindow) -> Result<Vec<String>, ErrorInfo> {
        ask(window, |clipboard, reply| {
            clipboard.request_uris(move |_, uris| {
                let paths = uris.iter().filter_map(|uri| glib::filename_from_uri(uri).ok());
                // The page may have stopped waiting.
                let _ = reply.send(paths.map(|(path, _)| path.to_string_lossy().into_owned()).collect());
            });
        })
        .await
    }

    pub async fn picture(window: &WebviewWindow) -> Result<Vec<u8>, ErrorInfo> {
        ask(window, |clipboard, reply| {
            clipboard.request_contents(&Atom::intern("TARGETS"), move |clipboard, copied| {
                let offered = copied.targets().unwrap_or_default();
                let wanted = PICTURES.iter().map(|name| Atom::intern(name));
                match wanted.into_iter().find(|kind| offered.contains(kind)) {
                    Some(kind) => clipboard.request_contents(&kind, move |_, picture| {
                        let _ = reply.send(picture.data());
                    }),
                    None => _ = reply.send(Vec::new()),
                }
            });
        })
        .await
    }

    /// Asks the clipboard on the thread of the window system, and waits for the reply on another one.
    async fn ask<T: Send + 'static>(
        window: &WebviewWindow,
        request: impl FnOnce(&Clipboard, SyncSender<T>) + Send + 'static,
    ) -> Result<T, ErrorInfo> {
        let (reply, replies) = mpsc::sync_channel(1);
        window
            .run_on_main_thread(move || request(&Clipboard::get(&SELECTION_CLIPBOARD), reply))
            .map_err(|error| Error::bug(error).info)?;
        blocking(move || replies.recv_timeout(PATIENCE).map_err(|_| silent())).await
    }

    fn silent() -> Error {
        let message = "The program that has copied this did not hand it over.";
        Error::input("shell.clipboard", message, "Save it as a file and attach that.")
    }
}

//! The quick window: a small chat above all other windows, opened by a global shortcut, the tray or a link.
//!
//! It is created when it is first opened, and only hidden afterwards. It never keeps the program running.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use contract::types::ErrorInfo;
use desktop::{DeepLink, KeyCombination};
use tauri::async_runtime::spawn_blocking;
use tauri::webview::{NewWindowResponse, PageLoadEvent, WebviewWindowBuilder};
use tauri::{AppHandle, Manager, State, WebviewUrl, WebviewWindow, WindowEvent};

use crate::global_keys::GlobalKeys;
use crate::state::LinkInbox;
use crate::{focus, webview};

/// Label of the window, in `capabilities/quick.json` too.
pub const LABEL: &str = "quick";
/// The page shows the quick window for this address.
const PAGE: &str = "index.html?window=quick";

const SIZE_PX: (f64, f64) = (560.0, 460.0);
const MIN_SIZE_PX: (f64, f64) = (380.0, 260.0);
/// Share of the screen's free height above the window: it opens where people look, not in the middle.
const SHARE_ABOVE: f64 = 0.3;

/// Calls of the application that the quick window may make. Whatever a page of it might be talked into, it changes no
/// setting, reads no file and deletes nothing.
const CALLS: &[&str] = &[
    "app_info",
    "models_list",
    "settings_list",
    "conversation_get",
    "conversation_prefetch",
    "send",
    "turn_cancel",
    "tool_decide",
    "tool_stop",
];

/// The global shortcut, while one is set.
#[derive(Default)]
pub struct QuickKeys(Mutex<Option<GlobalKeys>>);

impl QuickKeys {
    fn lock(&self) -> MutexGuard<'_, Option<GlobalKeys>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses calls that only the main window may make.
pub fn check_call(window: &str, call: &str) -> Result<(), ErrorInfo> {
    if window != LABEL || CALLS.contains(&call) {
        return Ok(());
    }
    let message = format!("The quick window can't do this ({call}).");
    Err(contract::Error::input("window.quick_call", message, "Open the chat in the main window.").info)
}

/// Shows the window and gives it the focus.
pub fn show(shell: &AppHandle) {
    let shell = shell.clone();
    // Building a window waits for the main thread, so it never happens there.
    spawn_blocking(move || {
        let shown = match shell.get_webview_window(LABEL) {
            Some(window) => raise(&window),
            None => build(&shell),
        };
        if let Err(error) = shown {
            tracing::error!("the quick window could not be shown: {error}");
        }
    });
}

fn raise(window: &WebviewWindow) -> tauri::Result<()> {
    window.unminimize()?;
    window.show()?;
    window.set_focus()
}

/// Shows the window, or hides it if it has the focus.
pub fn toggle(shell: &AppHandle) {
    match shell.get_webview_window(LABEL) {
        Some(window) if has_focus(&window) => hide(&window),
        _ => show(shell),
    }
}

/// Closes the window with the main one, so that it does not keep the program running.
pub fn close(shell: &AppHandle) {
    if let Some(window) = shell.get_webview_window(LABEL)
        && let Err(error) = window.destroy()
    {
        tracing::warn!("the quick window could not be closed: {error}");
    }
}

/// Opens the links that are for the quick window. Returns the others.
pub fn take_links(shell: &AppHandle, links: Vec<DeepLink>) -> Vec<DeepLink> {
    let (ours, others): (Vec<_>, Vec<_>) = links.into_iter().partition(|link| *link == DeepLink::QuickWindow);
    if !ours.is_empty() {
        show(shell);
    }
    others
}

/// Sets the global shortcut, or removes it. Error `window.shortcut`: the keys can't be used. None are set then.
#[tauri::command]
pub async fn set_quick_keys(shell: AppHandle, keys: Option<String>) -> Result<(), ErrorInfo> {
    let set = move || {
        let state = shell.state::<QuickKeys>();
        let mut taken = state.lock();
        // The old ones first: they may be the same.
        *taken = None;
        if let Some(keys) = keys {
            *taken = Some(GlobalKeys::take(&shell, &KeyCombination::parse(&keys)?, toggle)?);
        }
        Ok(())
    };
    match spawn_blocking(set).await {
        Ok(done) => done.map_err(|error: contract::Error| error.info),
        Err(panicked) => Err(contract::Error::bug(panicked).info),
    }
}

/// Shows the quick window.
#[tauri::command]
pub async fn show_quick(shell: AppHandle) -> Result<(), ErrorInfo> {
    show(&shell);
    Ok(())
}

/// Hides the quick window. Its chat stays, and an answer continues.
#[tauri::command]
pub async fn hide_quick(window: WebviewWindow) -> Result<(), ErrorInfo> {
    hide(&window);
    Ok(())
}

/// Continues in the main window: in a conversation, or with a text that was not sent yet.
#[tauri::command]
pub async fn open_in_main(
    window: WebviewWindow,
    inbox: State<'_, LinkInbox>,
    conversation: Option<String>,
    text: String,
) -> Result<(), ErrorInfo> {
    let link = match conversation {
        Some(id) => DeepLink::Conversation { id },
        None => DeepLink::NewChat { text },
    };
    inbox.send(vec![link]);
    focus::raise(window.app_handle());
    hide(&window);
    Ok(())
}

fn hide(window: &WebviewWindow) {
    if let Err(error) = window.hide() {
        tracing::warn!("the quick window could not be hidden: {error}");
    }
}

fn has_focus(window: &WebviewWindow) -> bool {
    window.is_visible().unwrap_or(false) && window.is_focused().unwrap_or(false)
}

/// Creates the window, which shows itself as soon as it has a page to show.
fn build(shell: &AppHandle) -> tauri::Result<()> {
    let first_load = Once::new();
    let mut builder = WebviewWindowBuilder::new(shell, LABEL, WebviewUrl::App(PAGE.into()))
        .title("Inglenook Quick")
        .inner_size(SIZE_PX.0, SIZE_PX.1)
        .min_inner_size(MIN_SIZE_PX.0, MIN_SIZE_PX.1)
        .always_on_top(true)
        .skip_taskbar(true)
        .maximizable(false)
        .visible(false)
        .center()
        .on_navigation(webview::is_ours)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false)
        .on_page_load(move |window, load| {
            if load.event() == PageLoadEvent::Finished {
                first_load.call_once(|| {
                    if let Err(error) = raise(&window) {
                        tracing::error!("the quick window could not be shown: {error}");
                    }
                });
            }
        });
    if let Some(screen) = shell.primary_monitor()? {
        let size = screen.size().to_logical::<f64>(screen.scale_factor());
        let origin = screen.position().to_logical::<f64>(screen.scale_factor());
        let x = origin.x + (size.width - SIZE_PX.0).max(0.0) / 2.0;
        let y = origin.y + (size.height - SIZE_PX.1).max(0.0) * SHARE_ABOVE;
        builder = builder.position(x, y);
    }
    let window = builder.build()?;
    webview::reload_after_crash(&window)?;
    let closed = window.clone();
    window.on_window_event(move |event| {
        if let WindowEvent::CloseRequested { api, .. } = event {
            api.prevent_close();
            hide(&closed);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_window_makes_only_its_calls() {
        let check = |window: &str, call: &str, expected: bool| {
            assert_eq!(check_call(window, call).is_ok(), expected, "{window} {call}");
        };
        check("main", "settings_set", true);
        check("quick", "send", true);
        check("quick", "conversation_get", true);
        check("quick", "settings_set", false);
        check("quick", "conversation_delete", false);
        check("quick", "attachment_add_path", false);
        check("quick", "trash_empty", false);
    }

    #[test]
    fn its_calls_exist_and_its_capability_names_only_what_it_needs() {
        for call in CALLS {
            assert!(app::calls::CALLS.iter().any(|known| known.name == *call), "{call}");
        }
        let capability: serde_json::Value =
            serde_json::from_str(include_str!("../capabilities/quick.json")).unwrap();
        assert_eq!(capability["windows"], serde_json::json!([LABEL]));
        let permissions = capability["permissions"].as_array().unwrap();
        for refused in ["pick", "save", "open-dir", "tray", "close", "drops", "core:", "quick-keys"] {
            assert!(!permissions.iter().any(|it| it.as_str().unwrap().contains(refused)), "{refused}");
        }
    }
}

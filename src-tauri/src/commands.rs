//! Commands of the page. Each is one call into `app`, off the main thread.

use std::path::Path;

use contract::types::{AppEvent, ErrorInfo, TurnEvent};
use desktop::DeepLink;
use io::Io;
use serde_json::Value;
use tauri::State;
use tauri::async_runtime::spawn_blocking;
use tauri::ipc::Channel;

use crate::background::blocking;
use crate::state::{DragDropUpdate, DropListener, LinkInbox, OpenApp};
use crate::{quick, tray};

/// Zoom factors at which the page stays readable.
const MIN_ZOOM: f64 = 0.5;
const MAX_ZOOM: f64 = 3.0;

/// Runs a call of the application by name. Rejects with an `ErrorInfo`.
#[tauri::command]
pub async fn call(
    window: tauri::WebviewWindow,
    app: State<'_, OpenApp>,
    name: String,
    args: Value,
) -> Result<Value, ErrorInfo> {
    quick::check_call(window.label(), &name)?;
    let app = app.app()?;
    blocking(move || app.call(&name, args)).await
}

/// Sends a turn's events after `after_seq`; returns when the turn ends or the page closes.
#[tauri::command]
pub async fn watch_turn(
    app: State<'_, OpenApp>,
    turn: String,
    after_seq: u64,
    channel: Channel<Vec<TurnEvent>>,
) -> Result<(), ErrorInfo> {
    let watch = app.app()?.watch_turn(&turn, after_seq).map_err(|error| error.info)?;
    blocking(move || {
        for events in watch {
            if channel.send(events).is_err() {
                break;
            }
        }
        Ok(())
    })
    .await
}

/// Sends application events while the page lives. Returns at once.
#[tauri::command]
pub async fn watch_app(app: State<'_, OpenApp>, channel: Channel<Vec<AppEvent>>) -> Result<(), ErrorInfo> {
    let watch = app.app()?.watch_app();
    spawn_blocking(move || {
        for events in watch {
            if channel.send(events).is_err() {
                break;
            }
        }
    });
    Ok(())
}

/// Shows the system's file dialog. Null if the user cancels.
#[tauri::command]
pub async fn pick_model_file(window: tauri::WebviewWindow) -> Result<Option<String>, ErrorInfo> {
    let dialog = rfd::AsyncFileDialog::new()
        .set_title("Add a model")
        .add_filter("Models", &["gguf", "safetensors"])
        .add_filter("All files", &["*"])
        .set_parent(&window);
    let picked = dialog.pick_file().await;
    Ok(picked.map(|file| file.path().to_string_lossy().into_owned()))
}

/// Like `pick_model_file`, for a folder of models.
#[tauri::command]
pub async fn pick_folder(window: tauri::WebviewWindow) -> Result<Option<String>, ErrorInfo> {
    let dialog = rfd::AsyncFileDialog::new().set_title("Add a model folder").set_parent(&window);
    let picked = dialog.pick_folder().await;
    Ok(picked.map(|folder| folder.path().to_string_lossy().into_owned()))
}

/// Like `pick_model_file`, for a chat export, a backup or an attachment.
#[tauri::command]
pub async fn pick_file(window: tauri::WebviewWindow, kind: String) -> Result<Option<String>, ErrorInfo> {
    let dialog = rfd::AsyncFileDialog::new().set_parent(&window);
    let dialog = match kind.as_str() {
        "backup" => dialog.set_title("Restore a backup").add_filter("Backups", &["db"]),
        "attach" => dialog.set_title("Attach a file").add_filter(
            "Images, text, office files, books, tables and PDF",
            &[
                "png", "jpg", "jpeg", "webp", "gif", "bmp", "tif", "tiff", "txt", "md", "csv", "tsv", "pdf",
                "docx", "odt", "xlsx", "ods", "pptx", "odp", "epub", "html", "htm", "json", "xml", "log",
            ],
        ),
        _ => dialog.set_title("Import chats").add_filter("Exports", &["json", "zip"]),
    };
    let picked = dialog.add_filter("All files", &["*"]).pick_file().await;
    Ok(picked.map(|file| file.path().to_string_lossy().into_owned()))
}

/// Shows the system's save dialog. Null if the user cancels.
#[tauri::command]
pub async fn pick_save(window: tauri::WebviewWindow, name: String) -> Result<Option<String>, ErrorInfo> {
    let dialog = rfd::AsyncFileDialog::new().set_title("Save").set_file_name(name).set_parent(&window);
    let picked = dialog.save_file().await;
    Ok(picked.map(|file| file.path().to_string_lossy().into_owned()))
}

/// Asks where to save a text and writes it there. Null if the user cancels.
#[tauri::command]
pub async fn save_text(
    window: tauri::WebviewWindow,
    name: String,
    text: String,
) -> Result<Option<String>, ErrorInfo> {
    let Some(path) = pick_save(window, name).await? else { return Ok(None) };
    blocking(move || {
        io::RealIo.write_atomic(Path::new(&path), text.as_bytes())?;
        Ok(Some(path))
    })
    .await
}

/// A folder of the application.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dir {
    Data,
    Log,
}

/// Opens a folder of the application in the system's file manager.
#[tauri::command]
pub async fn open_dir(app: State<'_, OpenApp>, which: Dir) -> Result<(), ErrorInfo> {
    let info = app.app()?.app_info();
    let dir = match which {
        Dir::Data => info.data_dir,
        Dir::Log => info.log_dir,
    };
    blocking(move || {
        if platform::open_outside(&dir, None) {
            return Ok(());
        }
        let message = format!("The file manager could not be opened for {dir}.");
        Err(contract::Error::input("shell.folder", message, "Open the folder yourself."))
    })
    .await
}

/// Opens an address in the user's browser or mail program; the user has seen it.
#[tauri::command]
pub async fn open_link(url: String) -> Result<(), ErrorInfo> {
    blocking(move || {
        let browser = std::env::var(platform::BROWSER_VARIABLE).ok();
        if platform::is_link(&url) && platform::open_outside(&url, browser.as_deref()) {
            return Ok(());
        }
        let message = "No program could be opened for this address.";
        Err(contract::Error::input("shell.link", message, "Copy the address and open it yourself."))
    })
    .await
}

/// Sets the zoom factor; 1 is the default.
#[tauri::command]
pub async fn set_zoom(window: tauri::WebviewWindow, factor: f64) -> Result<(), ErrorInfo> {
    let factor = if factor.is_finite() { factor.clamp(MIN_ZOOM, MAX_ZOOM) } else { 1.0 };
    window.set_zoom(factor).map_err(|error| contract::Error::bug(error).info)
}

/// Notifies the user unless the window is focused.
#[tauri::command]
pub async fn notify(window: tauri::WebviewWindow, title: String, text: String) -> Result<(), ErrorInfo> {
    blocking(move || {
        crate::notify::tell(&window, &title, &text);
        Ok(())
    })
    .await
}

/// Sends updates about files dragged over or dropped on the window.
#[tauri::command]
pub async fn watch_drops(
    drops: State<'_, DropListener>,
    channel: Channel<DragDropUpdate>,
) -> Result<(), ErrorInfo> {
    drops.listen(channel);
    Ok(())
}

/// Sends opened model files and deep links, including those from before the page loaded.
#[tauri::command]
pub async fn watch_asked(
    asks: State<'_, LinkInbox>,
    channel: Channel<Vec<DeepLink>>,
) -> Result<(), ErrorInfo> {
    asks.listen(channel);
    Ok(())
}

/// Shows the tray icon with a menu of these labels; null removes it.
#[tauri::command]
pub async fn set_tray(shell: tauri::AppHandle, labels: Option<tray::Labels>) -> Result<(), ErrorInfo> {
    match spawn_blocking(move || tray::set(&shell, labels)).await {
        Ok(done) => done,
        Err(panicked) => Err(contract::Error::bug(panicked).info),
    }
}

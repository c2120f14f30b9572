//! Work that may block, off the main thread and off the threads of async code.

use contract::types::ErrorInfo;
use tauri::async_runtime::spawn_blocking;

/// Runs work that may block. A panic becomes an error.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> contract::Result<T> + Send + 'static,
) -> Result<T, ErrorInfo> {
    match spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| error.info),
        Err(panicked) => Err(contract::Error::bug(panicked).info),
    }
}

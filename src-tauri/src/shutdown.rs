//! Closing the window during an answer: asks the page once whether to quit. A restart into a new version does the same.
//!
//! Never asks twice: a second close, or a page that does not listen, ends the program.

use std::sync::{Mutex, MutexGuard, PoisonError};

use contract::types::ErrorInfo;
use tauri::ipc::Channel;
use tauri::{AppHandle, Manager, State, WebviewWindow};

use crate::background::blocking;
use crate::state::OpenApp;
use crate::{updates, window_state};

#[derive(Default)]
pub struct CloseQuestion(Mutex<CloseQuestionState>);

#[derive(Default)]
struct CloseQuestionState {
    /// Channel of the page.
    page: Option<Channel<()>>,
    is_asked: bool,
    reason: CloseReason,
}

/// What follows when the window is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CloseReason {
    #[default]
    Quit,
    /// A downloaded version is installed, and the program starts again.
    Update,
}

impl CloseQuestion {
    fn question(&self) -> MutexGuard<'_, CloseQuestionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CloseQuestionState {
    /// Asks the page unless it was asked before. Returns whether it was asked now.
    fn ask(&mut self) -> bool {
        let asked_now = !self.is_asked && self.page.as_ref().is_some_and(|page| page.send(()).is_ok());
        self.is_asked |= asked_now;
        asked_now
    }

    /// What closing leads to. The next time it is quitting again.
    fn take_reason(&mut self) -> CloseReason {
        std::mem::take(&mut self.reason)
    }
}

/// Whether to keep the window open because the page now asks the user.
pub fn is_waiting_for_user(shell: &AppHandle) -> bool {
    let app = shell.state::<OpenApp>().app();
    app.is_ok_and(|app| app.is_answering()) && shell.state::<CloseQuestion>().question().ask()
}

/// Registers the page to ask; the last one to register wins.
#[tauri::command]
pub async fn watch_closing(closing: State<'_, CloseQuestion>, channel: Channel<()>) -> Result<(), ErrorInfo> {
    *closing.question() = CloseQuestionState { page: Some(channel), ..CloseQuestionState::default() };
    Ok(())
}

/// Receives the user's decision: quit now, or continue.
#[tauri::command]
pub async fn close_window(
    window: WebviewWindow,
    closing: State<'_, CloseQuestion>,
    close: bool,
) -> Result<(), ErrorInfo> {
    let reason = closing.question().take_reason();
    match (close, reason) {
        (true, CloseReason::Quit) => {
            // Losing the window position is harmless.
            let _ = window_state::save(&window);
            window.app_handle().exit(0);
            Ok(())
        }
        (true, CloseReason::Update) => install_update(window).await,
        (false, _) => {
            closing.question().is_asked = false;
            Ok(())
        }
    }
}

/// Installs the downloaded version and starts it. Asks the page first during an answer, as closing does.
#[tauri::command]
pub async fn restart_to_update(
    window: WebviewWindow,
    app: State<'_, OpenApp>,
    closing: State<'_, CloseQuestion>,
) -> Result<(), ErrorInfo> {
    if app.app()?.is_update_ready() {
        closing.question().reason = CloseReason::Update;
        if is_waiting_for_user(window.app_handle()) {
            return Ok(());
        }
        closing.question().take_reason();
    }
    // Without a ready update this says why.
    install_update(window).await
}

async fn install_update(window: WebviewWindow) -> Result<(), ErrorInfo> {
    let kept = window.clone();
    let installed = blocking(move || updates::install_and_restart(&window)).await;
    if installed.is_err() {
        // The window stays open, and may be closed later.
        kept.state::<CloseQuestion>().question().is_asked = false;
    }
    installed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_page_that_listens_is_asked_once() {
        assert!(!CloseQuestionState::default().ask());
        let n_asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_asked);
        let page = Channel::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let mut question = CloseQuestionState { page: Some(page), ..CloseQuestionState::default() };
        assert!(question.ask());
        assert!(!question.ask());
        question.is_asked = false;
        assert!(question.ask());
        assert_eq!(n_asked.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn an_update_is_the_reason_of_one_close() {
        let mut question =
            CloseQuestionState { reason: CloseReason::Update, ..CloseQuestionState::default() };
        assert_eq!(question.take_reason(), CloseReason::Update);
        assert_eq!(question.take_reason(), CloseReason::Quit);
    }
}

//! Closing the window during an answer: asks the page once whether to quit.
//!
//! Never asks twice: a second close, or a page that does not listen, ends the program.

use std::sync::{Mutex, MutexGuard, PoisonError};

use contract::types::ErrorInfo;
use tauri::ipc::Channel;
use tauri::{AppHandle, Manager, State, WebviewWindow};

use crate::state::OpenApp;
use crate::window_state;

#[derive(Default)]
pub struct CloseQuestion(Mutex<CloseQuestionState>);

#[derive(Default)]
struct CloseQuestionState {
    /// Channel of the page.
    page: Option<Channel<()>>,
    is_asked: bool,
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
}

/// Whether to keep the window open because the page now asks the user.
pub fn is_waiting_for_user(shell: &AppHandle) -> bool {
    let app = shell.state::<OpenApp>().app();
    app.is_ok_and(|app| app.is_answering()) && shell.state::<CloseQuestion>().question().ask()
}

/// Registers the page to ask; the last one to register wins.
#[tauri::command]
pub async fn watch_closing(closing: State<'_, CloseQuestion>, channel: Channel<()>) -> Result<(), ErrorInfo> {
    *closing.question() = CloseQuestionState { page: Some(channel), is_asked: false };
    Ok(())
}

/// Receives the user's decision: quit now, or continue.
#[tauri::command]
pub async fn close_window(
    window: WebviewWindow,
    closing: State<'_, CloseQuestion>,
    close: bool,
) -> Result<(), ErrorInfo> {
    if close {
        // Losing the window position is harmless.
        let _ = window_state::save(&window);
        window.app_handle().exit(0);
    } else {
        closing.question().is_asked = false;
    }
    Ok(())
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
        let mut question = CloseQuestionState { page: Some(page), is_asked: false };
        assert!(question.ask());
        assert!(!question.ask());
        question.is_asked = false;
        assert!(question.ask());
        assert_eq!(n_asked.load(Ordering::Relaxed), 2);
    }
}

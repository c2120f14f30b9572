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
    /// Whom to ask.
    page: Option<Channel<()>>,
    is_asked: bool,
}

impl CloseQuestion {
    fn question(&self) -> MutexGuard<'_, CloseQuestionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CloseQuestionState {
    /// Whether the page was asked just now.
    fn ask(&mut self) -> bool {
        let is_told = !self.is_asked && self.page.as_ref().is_some_and(|page| page.send(()).is_ok());
        self.is_asked |= is_told;
        is_told
    }
}

/// Whether the window shall stay for now: its user is being asked.
pub fn waits(shell: &AppHandle) -> bool {
    let app = shell.state::<OpenApp>().app();
    app.is_ok_and(|app| app.is_answering()) && shell.state::<CloseQuestion>().question().ask()
}

/// Who is asked: the page that said so last.
#[tauri::command]
pub async fn watch_closing(closing: State<'_, CloseQuestion>, channel: Channel<()>) -> Result<(), ErrorInfo> {
    *closing.question() = CloseQuestionState { page: Some(channel), is_asked: false };
    Ok(())
}

/// What the user said: the program ends now, or goes on.
#[tauri::command]
pub async fn close_window(
    window: WebviewWindow,
    closing: State<'_, CloseQuestion>,
    close: bool,
) -> Result<(), ErrorInfo> {
    if close {
        // A place that can't be had, or kept, costs nothing but the place.
        let _ = window_state::keep(&window);
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

//! State of the shell that commands and window events share: the open application, and the page's channels.

use std::sync::Mutex;

use app::desktop::deep_links::DeepLink;
use contract::types::ErrorInfo;
use tauri::ipc::Channel;

/// The application, until the window ends.
pub struct OpenApp(Mutex<Option<app::App>>);

impl OpenApp {
    pub fn new(app: app::App) -> Self {
        Self(Mutex::new(Some(app)))
    }

    /// Ends the application: its last clone saves what running turns have written.
    pub fn close(&self) {
        drop(self.lock().take());
    }

    pub fn app(&self) -> Result<app::App, ErrorInfo> {
        self.lock().clone().ok_or_else(|| contract::Error::bug("the window is closing").info)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<app::App>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Files of other programs over the window.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DragDropUpdate {
    Over { paths: Vec<String> },
    Left,
    Dropped { paths: Vec<String> },
}

/// Who is told of them: the page that asked last.
#[derive(Default)]
pub struct DropListener(Mutex<Option<Channel<DragDropUpdate>>>);

impl DropListener {
    pub fn listen(&self, channel: Channel<DragDropUpdate>) {
        *self.lock() = Some(channel);
    }

    pub fn send(&self, drop: DragDropUpdate) {
        if let Some(channel) = &*self.lock() {
            // A page that is gone is told nothing.
            let _ = channel.send(drop);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Channel<DragDropUpdate>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What the desktop asked for, until a page takes it.
#[derive(Default)]
pub struct LinkInbox(Mutex<PendingLinks>);

#[derive(Default)]
struct PendingLinks {
    asked: Vec<DeepLink>,
    page: Option<Channel<Vec<DeepLink>>>,
}

impl LinkInbox {
    pub fn send(&self, asked: Vec<DeepLink>) {
        let mut waiting = self.lock();
        waiting.asked.extend(asked);
        waiting.hand_over();
    }

    pub fn listen(&self, page: Channel<Vec<DeepLink>>) {
        let mut waiting = self.lock();
        waiting.page = Some(page);
        waiting.hand_over();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PendingLinks> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl PendingLinks {
    fn hand_over(&mut self) {
        let Some(page) = &self.page else { return };
        if !self.asked.is_empty() && page.send(self.asked.clone()).is_ok() {
            self.asked.clear();
        }
    }
}

//! State of the shell that commands and window events share: the open application, and the page's channels.

use std::sync::{Arc, Mutex};

use contract::types::ErrorInfo;
use desktop::DeepLink;
use tauri::ipc::Channel;

/// The open application, until the program exits.
pub struct OpenApp {
    app: Mutex<Option<app::App>>,
    /// Holds the application while it listens.
    server: Arc<server::ServerControl>,
}

impl OpenApp {
    /// Starts the local server where the settings say so.
    pub fn new(app: app::App) -> Self {
        let server = Arc::new(server::ServerControl::default());
        let runner = Arc::clone(&server);
        app.control_server_by(Box::new(move |app, action| runner.run(app, action)));
        app.start_server_if_set();
        Self { app: Mutex::new(Some(app)), server }
    }

    /// Closes the application. Dropping its last clone saves the partial answers of running turns.
    pub fn close(&self) {
        self.server.stop();
        drop(self.lock().take());
    }

    pub fn app(&self) -> Result<app::App, ErrorInfo> {
        self.lock().clone().ok_or_else(|| contract::Error::bug("the window is closing").info)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<app::App>> {
        self.app.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Files dragged over the window.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DragDropUpdate {
    Over { paths: Vec<String> },
    Left,
    Dropped { paths: Vec<String> },
}

/// The page's channel for drag and drop; the last page to register gets the updates.
#[derive(Default)]
pub struct DropListener(Mutex<Option<Channel<DragDropUpdate>>>);

impl DropListener {
    pub fn listen(&self, channel: Channel<DragDropUpdate>) {
        *self.lock() = Some(channel);
    }

    pub fn send(&self, drop: DragDropUpdate) {
        if let Some(channel) = &*self.lock() {
            // The page may have closed.
            let _ = channel.send(drop);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Channel<DragDropUpdate>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Deep links and opened files that wait for the page.
#[derive(Default)]
pub struct LinkInbox(Mutex<PendingLinks>);

#[derive(Default)]
struct PendingLinks {
    links: Vec<DeepLink>,
    page: Option<Channel<Vec<DeepLink>>>,
}

impl LinkInbox {
    pub fn send(&self, links: Vec<DeepLink>) {
        let mut pending = self.lock();
        pending.links.extend(links);
        pending.deliver();
    }

    pub fn listen(&self, page: Channel<Vec<DeepLink>>) {
        let mut pending = self.lock();
        pending.page = Some(page);
        pending.deliver();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PendingLinks> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl PendingLinks {
    fn deliver(&mut self) {
        let Some(page) = &self.page else { return };
        if !self.links.is_empty() && page.send(self.links.clone()).is_ok() {
            self.links.clear();
        }
    }
}

//! Moves a model's weights to large pages after its first run, so that no start waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use weights::WeightFile;

/// Moves the weights of one model, once.
pub struct LargePagePromotion {
    file: Arc<WeightFile>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    has_begun: bool,
}

impl LargePagePromotion {
    pub fn of(file: Arc<WeightFile>) -> Self {
        Self { file, stop: Arc::default(), thread: None, has_begun: false }
    }

    /// Starts the move on a thread, once. Without a thread the weights stay where they are.
    pub fn begin(&mut self) {
        if self.has_begun {
            return;
        }
        self.has_begun = true;
        let (file, stop) = (self.file.clone(), self.stop.clone());
        let thread = std::thread::Builder::new().name("large pages".into());
        let moving = move || {
            file.move_to_large_pages(&stop);
        };
        self.thread = thread.spawn(moving).ok();
    }

    /// Waits for the end.
    pub fn finish(&mut self) {
        self.begin();
        // A panic there has moved fewer pages, nothing else.
        self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for LargePagePromotion {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

//! Ctrl+C: stops the answer that is being written; where none is, ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use api::App;

/// The turn that Ctrl+C would stop.
#[derive(Clone, Default)]
pub struct Interrupt {
    turn: Arc<Mutex<Option<Stoppable>>>,
}

struct Stoppable {
    app: App,
    turn: String,
    was_stopped: bool,
}

/// Exit code of a program that Ctrl+C ended.
const INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Listens from now on. `when_idle` is the exit code where nothing is being answered.
    pub fn listen(when_idle: i32) -> Self {
        let this = Self::default();
        let listener = this.clone();
        let begun = thread::Builder::new().name("nook-interrupt".into()).spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                listener.pressed(when_idle);
            }
        });
        // Without the thread Ctrl+C ends the program, as it does for any other.
        drop(begun);
        this
    }

    pub fn begin(&self, app: &App, turn: &str) {
        *self.lock() = Some(Stoppable { app: app.clone(), turn: turn.into(), was_stopped: false });
    }

    pub fn end(&self) {
        *self.lock() = None;
    }

    fn pressed(&self, when_idle: i32) {
        match &mut *self.lock() {
            None => {
                eprintln!();
                std::process::exit(when_idle)
            }
            Some(stoppable) if stoppable.was_stopped => std::process::exit(INTERRUPTED),
            Some(stoppable) => {
                stoppable.was_stopped = true;
                // If the worker has ended, so has the turn.
                let _ = stoppable.app.turn_cancel(&stoppable.turn);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Stoppable>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Set once Ctrl+C is pressed; a second time ends the program.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&flag);
    let begun = thread::Builder::new().name("nook-interrupt".into()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            if pressed.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
        }
    });
    // Without the thread Ctrl+C ends the program, as it does for any other.
    drop(begun);
    flag
}

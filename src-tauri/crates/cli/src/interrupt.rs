//! Ctrl+C: stops the answer that is being written; where none is, ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use app::App;
use app::CallStop;

use crate::input::event::InputEvent;

/// What Ctrl+C would stop.
#[derive(Clone, Default)]
pub struct Interrupt {
    now: Arc<Mutex<InterruptState>>,
}

#[derive(Default)]
struct InterruptState {
    stoppable: Option<Stoppable>,
    /// Waits for a line.
    waiting: Option<Sender<InputEvent>>,
}

struct Stoppable {
    app: App,
    what: StopTarget,
    was_stopped: bool,
}

enum StopTarget {
    Turn(String),
    /// Of a tool, in no conversation.
    Call(Arc<CallStop>),
}

/// Exit code of a program that Ctrl+C ended.
const EXIT_INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Listens from now on. `when_idle` is the exit code where nothing is being answered.
    pub fn listen(when_idle: i32) -> Self {
        let this = Self::default();
        let listener = this.clone();
        hear(move || listener.pressed(when_idle));
        this
    }

    pub fn begin(&self, app: &App, turn: &str) {
        self.stops(app, StopTarget::Turn(turn.into()));
    }

    /// A tool is called, or leave for it is asked: what its end is told by.
    pub fn begin_call(&self, app: &App) -> Arc<CallStop> {
        let stop = Arc::<CallStop>::default();
        self.stops(app, StopTarget::Call(Arc::clone(&stop)));
        stop
    }

    fn stops(&self, app: &App, what: StopTarget) {
        self.lock().stoppable = Some(Stoppable { app: app.clone(), what, was_stopped: false });
    }

    pub fn end(&self) {
        self.lock().stoppable = None;
    }

    /// Who waits for a line, and hears of it too: also where it was pressed before the waiting began.
    pub fn wake(&self, waiting: Option<Sender<InputEvent>>) {
        let mut now = self.lock();
        let was_stopped = now.stoppable.as_ref().is_some_and(|it| it.was_stopped);
        now.waiting = waiting.filter(|it| !was_stopped || it.send(InputEvent::Interrupted).is_err());
    }

    fn pressed(&self, when_idle: i32) {
        let mut now = self.lock();
        // Whoever waited may have gone.
        let woken = now.waiting.take().is_some_and(|waiting| waiting.send(InputEvent::Interrupted).is_ok());
        match &mut now.stoppable {
            None if woken => {}
            None => {
                eprintln!();
                std::process::exit(when_idle)
            }
            Some(stoppable) if stoppable.was_stopped => {
                // Nothing is dropped that way, and what was started has to end.
                stoppable.app.end_tool_servers();
                std::process::exit(EXIT_INTERRUPTED)
            }
            Some(stoppable) => {
                stoppable.was_stopped = true;
                match &stoppable.what {
                    // If the worker has ended, so has the turn.
                    StopTarget::Turn(turn) => _ = stoppable.app.turn_cancel(turn),
                    StopTarget::Call(stop) => stop.press(),
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, InterruptState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Set once Ctrl+C is pressed; a second time ends the program.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&flag);
    hear(move || {
        if pressed.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_INTERRUPTED);
        }
    });
    flag
}

/// Calls `pressed` each time, also where it is pressed while that runs.
fn hear(mut pressed: impl FnMut() + Send + 'static) {
    let begun = thread::Builder::new().name("nook-interrupt".into()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let Ok(mut presses) = presses() else { return };
            while presses.recv().await.is_some() {
                pressed();
            }
        });
    });
    // Without the thread Ctrl+C ends the program, as it does for any other.
    drop(begun);
}

#[cfg(unix)]
fn presses() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn presses() -> std::io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

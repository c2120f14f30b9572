//! Ctrl+C: stops the running answer; without one, ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use app::App;
use app::CallStop;

use crate::input::event::InputEvent;

/// The target of Ctrl+C, shared with the thread that listens for it.
#[derive(Clone, Default)]
pub struct Interrupt {
    now: Arc<Mutex<InterruptState>>,
}

#[derive(Default)]
struct InterruptState {
    stoppable: Option<Stoppable>,
    /// Wakes the thread that waits for a line.
    waiting: Option<Sender<InputEvent>>,
}

struct Stoppable {
    app: App,
    what: StopTarget,
    was_stopped: bool,
}

enum StopTarget {
    Turn(String),
    /// A tool call outside of a conversation.
    Call(Arc<CallStop>),
}

/// Exit code after Ctrl+C.
const EXIT_INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Starts listening. `when_idle` is the exit code if Ctrl+C is pressed while nothing runs.
    pub fn listen(when_idle: i32) -> Self {
        let this = Self::default();
        let listener = this.clone();
        on_ctrl_c(move || listener.pressed(when_idle));
        this
    }

    pub fn begin(&self, app: &App, turn: &str) {
        self.stops(app, StopTarget::Turn(turn.into()));
    }

    /// Makes a tool call, or the question for its approval, the target. Returns the handle that stops it.
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

    /// Sets the waiter to wake on Ctrl+C. Wakes it at once if Ctrl+C was pressed before.
    pub fn wake(&self, waiting: Option<Sender<InputEvent>>) {
        let mut now = self.lock();
        let was_stopped = now.stoppable.as_ref().is_some_and(|it| it.was_stopped);
        now.waiting = waiting.filter(|it| !was_stopped || it.send(InputEvent::Interrupted).is_err());
    }

    fn pressed(&self, when_idle: i32) {
        let mut now = self.lock();
        // The waiter may have ended already.
        let woken = now.waiting.take().is_some_and(|waiting| waiting.send(InputEvent::Interrupted).is_ok());
        match &mut now.stoppable {
            None if woken => {}
            None => {
                eprintln!();
                std::process::exit(when_idle)
            }
            Some(stoppable) if stoppable.was_stopped => {
                // `exit` runs no destructors, so end the started servers here.
                stoppable.app.end_tool_servers();
                std::process::exit(EXIT_INTERRUPTED)
            }
            Some(stoppable) => {
                stoppable.was_stopped = true;
                match &stoppable.what {
                    // A failed cancel means that the turn has ended.
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

/// Returns a flag that Ctrl+C sets; a second Ctrl+C ends the program.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let pressed = Arc::clone(&flag);
    on_ctrl_c(move || {
        if pressed.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_INTERRUPTED);
        }
    });
    flag
}

/// Leaves Ctrl+C to a program that was started: this one goes on.
pub fn ignore() {
    on_ctrl_c(|| {});
}

/// Calls `pressed` for every Ctrl+C, including those during a call.
fn on_ctrl_c(mut pressed: impl FnMut() + Send + 'static) {
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
    // Without the thread, Ctrl+C keeps its default effect and ends the program.
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

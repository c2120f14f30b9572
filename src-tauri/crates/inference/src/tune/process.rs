//! A run in its own process, with the lowest priority, so that chats stay quick.
//!
//! The process ends when its pipe from this one closes: no run outlives the application.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use contract::{Error, ErrorKind, Result};
use io::{RealClock, RealIo};

use super::{AfterStep, TuneProgress, run_job};

/// The first argument of a program of ours that runs a job; the second is its folder.
pub const ARGUMENT: &str = "tune-over-pipe";

/// Lowers the priority on Unix.
const NICE: &str = "nice";
const LOWEST_PRIORITY: &str = "19";

/// Interrupts a run, from any thread.
#[derive(Debug, Default)]
pub struct TuneInterrupt {
    is_set: AtomicBool,
    child: Mutex<Option<Child>>,
}

impl TuneInterrupt {
    /// Interrupts the run. A process ends at once; a thread after its step.
    pub fn interrupt(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        if let Some(child) = &mut *self.child.lock().unwrap_or_else(PoisonError::into_inner) {
            // One that has ended needs no killing.
            let _ = child.kill();
        }
    }

    /// Whether the run was interrupted.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }
}

/// Runs the job of a folder: in a process of `program`, or in this thread if there is none.
///
/// Errors: the process could not be started, or ended without a word.
pub fn run(
    program: Option<&Path>,
    folder: &Path,
    interrupt: &TuneInterrupt,
    on_progress: &mut dyn FnMut(TuneProgress),
) -> Result<()> {
    let Some(program) = program else {
        run_job(folder, &RealIo, &RealClock::new(), &mut |progress| {
            on_progress(progress);
            if interrupt.is_set() { AfterStep::Interrupt } else { AfterStep::GoOn }
        });
        return Ok(());
    };
    let mut child = start(program, folder)?;
    // Held open: the process ends when it closes.
    let stdin = child.stdin.take();
    let stdout = child.stdout.take().ok_or_else(|| not_started(&"a pipe is missing"))?;
    *interrupt.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
    if interrupt.is_set() {
        interrupt.interrupt();
    }
    let mut has_ended = false;
    for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
        match serde_json::from_str::<TuneProgress>(&line) {
            Ok(progress) => {
                has_ended |= matches!(progress, TuneProgress::Done { .. } | TuneProgress::Failed { .. });
                on_progress(progress);
            }
            Err(error) => tracing::warn!("a training process says what is no progress: {error}"),
        }
    }
    drop(stdin);
    let child = interrupt.child.lock().unwrap_or_else(PoisonError::into_inner).take();
    let status = child.map(|mut child| child.wait());
    if has_ended || interrupt.is_set() {
        return Ok(());
    }
    let how = match status {
        Some(Ok(status)) => status.to_string(),
        Some(Err(error)) => error.to_string(),
        None => "unknown".into(),
    };
    Err(Error::new(
        ErrorKind::Device,
        "tune.ended",
        format!("The training process ended unexpectedly ({how}). At most its last step is lost."),
        "Resume the run. If it ends again, close other programs, or choose a smaller model or shorter examples.",
    ))
}

fn start(program: &Path, folder: &Path) -> Result<Child> {
    let spawn = |mut command: Command| {
        command.arg(ARGUMENT).arg(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl+C in a terminal is the application's to handle.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        #[cfg(windows)]
        {
            const NO_WINDOW_IDLE_PRIORITY: u32 = 0x0800_0000 | 0x0000_0040;
            std::os::windows::process::CommandExt::creation_flags(&mut command, NO_WINDOW_IDLE_PRIORITY);
        }
        command.spawn()
    };
    if cfg!(unix) {
        let mut command = Command::new(NICE);
        command.args(["-n", LOWEST_PRIORITY]).arg(program);
        if let Ok(child) = spawn(command) {
            return Ok(child);
        }
    }
    spawn(Command::new(program)).map_err(|error| not_started(&error))
}

fn not_started(why: &dyn std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Device,
        "tune.not_started",
        format!("The training process could not be started: {why}."),
        "Close other programs and try again.",
    )
}

/// The whole run of a program that was started to do a job. Each progress is a line on stdout.
pub fn serve(folder: Option<PathBuf>) -> ExitCode {
    let Some(folder) = folder else { return ExitCode::from(2) };
    let watch = std::thread::Builder::new().name("inglenook-parent".into()).spawn(|| {
        // Nothing is ever sent: it ends with the parent. The state was written whole after the last step.
        while std::io::stdin().read(&mut [0]).is_ok_and(|n| n > 0) {}
        std::process::exit(0);
    });
    if watch.is_err() {
        return ExitCode::FAILURE;
    }
    let mut stdout = std::io::stdout();
    run_job(&folder, &RealIo, &RealClock::new(), &mut |progress| {
        let Ok(mut line) = serde_json::to_vec(&progress) else { return AfterStep::Interrupt };
        line.push(b'\n');
        match stdout.write_all(&line).and_then(|()| stdout.flush()) {
            Ok(()) => AfterStep::GoOn,
            // The reader is gone.
            Err(_) => AfterStep::Interrupt,
        }
    });
    ExitCode::SUCCESS
}

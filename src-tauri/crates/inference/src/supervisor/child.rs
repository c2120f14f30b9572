//! One child process: its pipes, a thread for each, and its exit status.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use super::{Input, WorkerProgram};
use contract::protocol::WorkerRequest;
use contract::{Error, ErrorKind};

/// Requests that wait to be written to the process. One that leaves that many has hung.
const MAX_WAITING_REQUESTS: usize = 4096;

/// Lines of stderr that are kept for the log of its end.
const LAST_LINES: usize = 20;
/// Longer ones are cut.
const MAX_LINE_BYTES: u64 = 4096;

/// Less than this share of a processor is no work: a hundredth.
const WORK_SHARE: u32 = 100;

/// A line to the process.
enum WorkerInput {
    Request(WorkerRequest),
    /// Asks for a sign of life.
    Beat,
}

pub struct Child {
    process: std::process::Child,
    lines: Option<SyncSender<WorkerInput>>,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    listening: Option<JoinHandle<()>>,
    hangs: bool,
}

/// How a process ended.
pub struct WorkerEnd {
    pub error: Error,
    pub last_words: String,
}

impl Child {
    /// Starts it as number `of`; its events go to `inputs`.
    pub fn start(program: &WorkerProgram, of: u64, inputs: &SyncSender<Input>) -> std::io::Result<Self> {
        let mut command = Command::new(&program.path);
        command.args(&program.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        apart(&mut command);
        let mut process = command.spawn()?;
        let missing = || std::io::Error::other("a pipe is missing");
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let (stdin, stdout) = (stdin.ok_or_else(missing)?, stdout.ok_or_else(missing)?);
        let stderr = process.stderr.take().ok_or_else(missing)?;
        let last_lines = Arc::<Mutex<VecDeque<String>>>::default();
        let mut child = Self { process, lines: None, last_lines, listening: None, hangs: false };

        let (send, lines) = mpsc::sync_channel(MAX_WAITING_REQUESTS);
        child.lines = Some(send);
        spawn("write", move || {
            let mut stdin = stdin;
            for line in lines {
                // A process that hears no more ends, and that is seen where it speaks.
                if write_line(&mut stdin, &line).is_err() {
                    return;
                }
            }
        })?;
        let inputs = inputs.clone();
        spawn("read", move || {
            for line in BufReader::new(stdout).lines() {
                let input = line.map_err(|error| error.to_string()).and_then(|line| {
                    if line.is_empty() {
                        return Ok(Input::Beat(of));
                    }
                    let event = serde_json::from_str(&line).map_err(|error| error.to_string())?;
                    Ok(Input::Event(of, Box::new(event)))
                });
                match input {
                    Ok(input) => {
                        if inputs.send(input).is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        tracing::error!("the worker says what is no event: {error}");
                        break;
                    }
                }
            }
            // without a supervisor the end has no recipient
            let _ = inputs.send(Input::Ended(of));
        })?;
        let lines = Arc::clone(&child.last_lines);
        child.listening = Some(spawn("listen", move || listen(stderr, &lines))?);
        Ok(child)
    }

    pub fn ask(&mut self, request: WorkerRequest) {
        if self.tell(WorkerInput::Request(request)) {
            self.hangs();
        }
    }

    /// Asks for a sign of life, which comes as `Input::Beat`.
    pub fn ask_beat(&mut self) {
        // One that does not even read misses this beat.
        let _ = self.tell(WorkerInput::Beat);
    }

    /// Returns whether too many lines wait. One that has ended is seen to have where it speaks.
    fn tell(&self, line: WorkerInput) -> bool {
        let sent = self.lines.as_ref().map(|lines| lines.try_send(line));
        matches!(sent, Some(Err(TrySendError::Full(_))))
    }

    /// Ends it; it has been silent for too long.
    pub fn hangs(&mut self) {
        self.hangs = true;
        // One that has ended needs no killing.
        let _ = self.process.kill();
    }

    /// What it has done up to `now`.
    pub fn activity(&self, now: Duration) -> ProcessActivity {
        let mut activity = ProcessActivity { at: Some(now), ..ProcessActivity::default() };
        let Ok(mut system) = System::new() else { return activity };
        let pid = Pid::from_u32(self.process.id());
        let kind = ProcessRefreshKind::nothing().with_cpu().with_disk_usage();
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
        if let Some(process) = system.process(pid) {
            activity.cpu = Duration::from_millis(process.accumulated_cpu_time());
            activity.n_read = process.disk_usage().total_read_bytes;
        }
        activity
    }

    /// Waits for its end, which has come or is brought about, and says why.
    pub fn reap(mut self) -> WorkerEnd {
        // What speaks no more is of no use, even if it lives.
        let _ = self.process.kill();
        let status = self.process.wait();
        if let Some(listening) = self.listening.take() {
            // Its stderr ends with it; a thread that panicked has lost words, nothing else.
            let _ = listening.join();
        }
        let error = match (self.hangs, status) {
            (true, _) => Error::new(
                ErrorKind::Device,
                "worker.hung",
                "Inglenook's inference process stopped responding and was ended.",
                "Try again. If this happens often, choose another model or restart the computer.",
            ),
            (false, Ok(status)) => reason(status),
            (false, Err(error)) => crashed(&error.to_string()),
        };
        let lines = self.last_lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let last_words = lines.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
        drop(lines);
        WorkerEnd { error, last_words }
    }
}

impl Drop for Child {
    /// No process outlives its supervisor, and none stays a zombie.
    fn drop(&mut self) {
        self.lines = None;
        if !matches!(self.process.try_wait(), Ok(Some(_))) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// What a process has done.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessActivity {
    /// by a monotonic clock; None: nothing is known
    at: Option<Duration>,
    cpu: Duration,
    n_read: u64,
}

impl ProcessActivity {
    #[cfg(test)]
    pub fn of(at: Duration, cpu: Duration, n_read: u64) -> Self {
        Self { at: Some(at), cpu, n_read }
    }

    /// It read from the disk.
    pub fn has_read_since(&self, before: &Self) -> bool {
        self.at.is_some() && before.at.is_some() && self.n_read > before.n_read
    }

    /// It computed, or read from the disk.
    pub fn has_worked_since(&self, before: &Self) -> bool {
        let (Some(at), Some(was)) = (self.at, before.at) else { return true };
        let wall = at.saturating_sub(was);
        self.n_read > before.n_read || self.cpu.saturating_sub(before.cpu) > wall / WORK_SHARE
    }
}

/// The pipe from the parent program. When it closes, this process ends, whatever it is doing: its
/// listener has gone.
pub struct Parent<R> {
    pipe: R,
}

impl<R> Parent<R> {
    pub fn new(pipe: R) -> Self {
        Self { pipe }
    }
}

impl<R: Read> Read for Parent<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.pipe.read(buffer) {
            Ok(0) if !buffer.is_empty() => std::process::exit(0),
            read => read,
        }
    }
}

/// Ctrl+C in the terminal is for the parent alone, and Windows opens no console window.
fn apart(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(windows)]
    {
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        std::os::windows::process::CommandExt::creation_flags(command, CREATE_NO_WINDOW);
    }
    #[cfg(not(any(unix, windows)))]
    let _ = command;
}

fn spawn(what: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(format!("inglenook-{what}")).spawn(work)
}

fn write_line(pipe: &mut impl Write, line: &WorkerInput) -> std::io::Result<()> {
    let mut line = match line {
        WorkerInput::Request(request) => serde_json::to_vec(request)?,
        WorkerInput::Beat => Vec::new(),
    };
    line.push(b'\n');
    pipe.write_all(&line)?;
    pipe.flush()
}

/// Each line goes to our log; the last ones are kept.
fn listen(stderr: impl Read, last_lines: &Mutex<VecDeque<String>>) {
    let mut stderr = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        match stderr.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if line.is_empty() {
            continue;
        }
        tracing::info!(target: "worker", "{line}");
        let mut lines = last_lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

fn crashed(how: &str) -> Error {
    Error::new(
        ErrorKind::Device,
        "worker.crashed",
        format!("Inglenook's inference process ended unexpectedly ({how})."),
        "Try again. If it happens only with this model, choose another. The log folder has details.",
    )
}

#[cfg(unix)]
fn reason(status: ExitStatus) -> Error {
    use std::os::unix::process::ExitStatusExt;
    // The same numbers on every Unix that we run on.
    const SIGKILL: i32 = 9;
    const SIGBUS: i32 = if cfg!(any(target_os = "linux", target_os = "android")) { 7 } else { 10 };
    match status.signal() {
        Some(SIGKILL) => Error::new(
            ErrorKind::Limit,
            "worker.killed",
            "The system ended Inglenook's inference process, most likely because memory ran out.",
            "Close other programs, reduce the context length in the settings, or choose a smaller model. Then try again.",
        ),
        Some(SIGBUS) => Error::input(
            "worker.file_gone",
            "The model file was truncated or became unreadable while the model was answering.",
            "Check its drive, or download the model again. Then try again.",
        ),
        Some(_) | None => crashed(&status.to_string()),
    }
}

#[cfg(not(unix))]
fn reason(status: ExitStatus) -> Error {
    crashed(&status.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_from_hanging() {
        let after = |s: u64, cpu_ms: u64, n_read: u64| ProcessActivity {
            at: Some(Duration::from_secs(s)),
            cpu: Duration::from_millis(cpu_ms),
            n_read,
        };
        let before = after(0, 100, 10);
        assert!(!after(60, 100, 10).has_worked_since(&before));
        assert!(
            !after(60, 600, 10).has_worked_since(&before),
            "a hundredth of the time is its threads' idling"
        );
        assert!(after(60, 1000, 10).has_worked_since(&before));
        assert!(after(60, 100, 11).has_worked_since(&before));
        assert!(after(60, 100, 10).has_worked_since(&ProcessActivity::default()), "nothing is known yet");
        assert!(after(60, 100, 11).has_read_since(&before) && !after(60, 9000, 10).has_read_since(&before));
    }
}

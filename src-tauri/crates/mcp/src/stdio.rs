//! A server as a child process: one message per line on stdin and stdout, its log on stderr. No
//! line takes more memory than `MAX_LINE_BYTES`. All waiters receive its end, with its last log
//! lines. Dropping it closes its stdin and, if that isn't enough, kills it and its children.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::core::{Core, words};
use super::descendants;
use super::program_path::find_program;
use contract::{Error, ErrorKind, Result};
use documents::lenient_json;

/// Longest message: a picture in base64 has some megabytes.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// Messages that wait for a server that doesn't read.
const MAX_WAITING: usize = 64;
/// Lines of stderr that are kept to be shown at its end.
const LAST_LINES: usize = 5;
/// Longer ones are cut.
const MAX_LOG_BYTES: u64 = 4096;
/// How long it may take to end by itself once its stdin is closed.
const ENDING: Duration = Duration::from_secs(2);
/// A process whose stdout has ended is looked at so often before it is killed.
const LOOKS: u32 = 50;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What is started.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    pub command: String,
    pub args: Vec<String>,
    /// All of its environment.
    pub env: Vec<(String, String)>,
    pub cwd: Option<PathBuf>,
}

pub struct Stdio {
    /// None: it was hung up on.
    lines: Arc<Mutex<Option<SyncSender<String>>>>,
    id: u32,
    /// Hears that the process has ended. None: it was waited for.
    ended: Mutex<Option<Receiver<()>>>,
}

impl Stdio {
    pub fn start(launch: &Launch, core: &Arc<Core>) -> Result<Self> {
        let mut command = Command::new(find_program(&launch.command, &launch.env));
        let piped = std::process::Stdio::piped;
        command.args(&launch.args).env_clear().envs(launch.env.iter().map(|(key, value)| (key, value)));
        command.stdin(piped()).stdout(piped()).stderr(piped());
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        apart(&mut command);
        let started = command.spawn();
        let mut child = started.map_err(|error| not_started(core.name(), launch, &error))?;
        let id = child.id();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Error::bug("a pipe of a server of tools is missing"));
        };
        let (send, lines) = sync_channel::<String>(MAX_WAITING);
        let outbox = Arc::new(Mutex::new(Some(send)));
        platform::spawn("tools-write", move || write(stdin, &lines))?;
        let last = Arc::<Mutex<VecDeque<String>>>::default();
        let (kept, name) = (Arc::clone(&last), core.name().to_owned());
        let (log_ended, log_over) = sync_channel::<()>(1);
        platform::spawn("tools-log", move || {
            listen(stderr, &name, &kept);
            // the waiter may have gone
            let _ = log_ended.send(());
        })?;
        let (over, ended) = sync_channel(1);
        let (core, back) = (Arc::clone(core), Arc::clone(&outbox));
        platform::spawn("tools-read", move || {
            let trouble = read(stdout, &core, &back);
            let status = bury(child);
            // Its last output is still on the way; a child process may hold the pipe open.
            let _ = log_over.recv_timeout(Duration::from_millis(500));
            let last = last.lock().unwrap_or_else(PoisonError::into_inner);
            core.end(trouble.unwrap_or_else(|| gone(core.name(), status, last.iter())));
            drop(last);
            let _ = over.send(());
        })?;
        Ok(Self { lines: outbox, id, ended: Mutex::new(Some(ended)) })
    }

    pub fn send(&self, core: &Core, message: &Value) -> Result<()> {
        send(&self.lines, core, message)
    }

    /// Its end, waited for and helped to.
    pub fn end(&self) {
        self.hang_up();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Once it has ended its number may be another's.
        if ended.is_some_and(|ended| ended.recv_timeout(ENDING) == Err(RecvTimeoutError::Timeout)) {
            descendants::kill(self.id);
        }
    }

    /// Closes its stdin, by which it should end.
    pub fn hang_up(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.end();
    }
}

pub type Outbox = Mutex<Option<SyncSender<String>>>;

fn send(outbox: &Outbox, core: &Core, message: &Value) -> Result<()> {
    let outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
    match outbox.as_ref().map(|lines| lines.try_send(format!("{message}\n"))) {
        Some(Ok(())) => Ok(()),
        Some(Err(TrySendError::Full(_))) => Err(Error::new(
            ErrorKind::Device,
            "tools.deaf",
            format!("{} does not read its input.", core.name()),
            "Turn it off and on again.",
        )),
        Some(Err(TrySendError::Disconnected(_))) | None => {
            Err(core.over().unwrap_or_else(|| gone(core.name(), None, [].iter())))
        }
    }
}

/// Until it is hung up on, or the process reads no more.
fn write(mut stdin: impl Write, lines: &Receiver<String>) {
    for line in lines {
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Until its stdout ends. Some: it can't be listened to any longer.
pub fn read(stdout: impl Read, core: &Arc<Core>, outbox: &Arc<Outbox>) -> Option<Error> {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stdout).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
        if line.len() as u64 == MAX_LINE_BYTES {
            return Some(too_large(core.name()));
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        match message_in(&text) {
            Ok(message @ (Value::Object(_) | Value::Array(_))) => {
                for answer in core.heard(message) {
                    let (core, outbox) = (Arc::clone(core), Arc::clone(outbox));
                    answer.deliver(move |answer| {
                        if let Err(error) = send(&outbox, &core, &answer) {
                            tracing::debug!("{} was not answered: {error}", core.name());
                        }
                    });
                }
            }
            Err(error) if core.heard_broken(&text, &error.to_string()) => {}
            Ok(_) | Err(_) => {
                if let Err(error) = core.junk(&text) {
                    return Some(error);
                }
            }
        }
    }
}

/// A message. Some servers print it behind words of their own that don't end their line.
fn message_in(text: &str) -> serde_json::Result<Value> {
    lenient_json::parse_value(text).or_else(|error| match text.find("{\"jsonrpc\"") {
        Some(at) if at > 0 => lenient_json::parse_value(&text[at..]).map_err(|_| error),
        Some(_) | None => Err(error),
    })
}

/// What speaks no more is of no use, even if it lives. One that is ending is given the time to say how.
fn bury(mut child: Child) -> Option<ExitStatus> {
    for _ in 0..LOOKS {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::sleep(LOOK_AGAIN),
            Err(_) => break,
        }
    }
    descendants::kill(child.id());
    child.wait().ok()
}

fn listen(stderr: impl Read, name: &str, last: &Mutex<VecDeque<String>>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr).take(MAX_LOG_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if text.is_empty() {
            continue;
        }
        tracing::debug!(server = name, "{text}");
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(text);
    }
}

/// Keys that interrupt this program don't reach it.
#[cfg(unix)]
fn apart(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Opens no console window.
#[cfg(windows)]
fn apart(command: &mut Command) {
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    std::os::windows::process::CommandExt::creation_flags(command, CREATE_NO_WINDOW);
}

#[cfg(not(any(unix, windows)))]
fn apart(_: &mut Command) {}

fn not_started(name: &str, launch: &Launch, error: &std::io::Error) -> Error {
    let message = format!("{name} could not be started with \"{}\": {error}.", launch.command);
    let remedy = match (error.kind(), &launch.cwd) {
        (std::io::ErrorKind::NotFound, None) => "Check that the program is installed, or give its full path.",
        (std::io::ErrorKind::NotFound, Some(_)) => {
            "Check that the program is installed and that its working folder (cwd) exists."
        }
        _ => "Check that the file is an executable program.",
    };
    Error::input("tools.start", message, remedy)
}

fn too_large(name: &str) -> Error {
    Error::new(
        ErrorKind::Limit,
        "tools.too_large",
        format!("{name} sent a message larger than {} MB.", MAX_LINE_BYTES >> 20),
        "Request less data at once. The server restarts when it is needed.",
    )
}

fn gone<'a>(name: &str, status: Option<ExitStatus>, last: impl Iterator<Item = &'a String>) -> Error {
    let mut message = match status {
        Some(status) if !status.success() => format!("{name} exited ({status})."),
        Some(_) | None => format!("{name} exited."),
    };
    let lines: Vec<&str> = last.map(String::as_str).collect();
    if !lines.is_empty() {
        message.push_str(&format!(" Last output: {}.", words(&lines.join(" / "))));
    }
    Error::new(
        ErrorKind::Device,
        "tools.gone",
        message,
        "It restarts when it is needed. See the documentation of the server for its requirements.",
    )
}

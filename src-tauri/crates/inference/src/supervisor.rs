//! Supervises the worker process. A crash (a file truncated under its map, out of memory, a driver)
//! ends at most a turn, never the window. A turn whose process died continues once in a new process
//! from where its text stood, with a notice; the second time it fails with a reason. A process
//! without a sign of life is ended. Nothing runs while there is no request. The child ends when its
//! pipe from this process closes. Knows nothing of models.

mod child;
mod heartbeat;
mod in_flight;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use io::{Clock, OperatingSystem, RealClock};

use crate::tune;
use crate::worker::{End, pipe};
use child::{Child, ProcessActivity};
use contract::protocol::{KvStats, LoadState, WorkerEvent, WorkerRequest};
use contract::{Error, ErrorKind, Result};
use heartbeat::{BEAT_INTERVAL, Heartbeat, Pulse};
use in_flight::InFlight;

/// The argument, alone, that makes a program of ours the worker.
pub const ARGUMENT: &str = "worker-over-pipe";

/// A process that has work and says nothing for so long is silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// Consecutive silences without a read from the disk after which it hangs, though it gives signs of life.
const MAX_SILENCES: u32 = 15;

/// Time that a worker may take to stop: it may be in the middle of a prompt run or of writing.
const STOPPING: Duration = Duration::from_secs(10);

/// Requests and events that wait for the supervisor; a full queue slows the worker down.
const INPUTS_WAITING: usize = 1024;

/// Where the worker runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WorkerPlacement {
    /// A thread of this process.
    #[default]
    Thread,
    /// A child process.
    Process(WorkerProgram),
}

/// What is started as the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProgram {
    pub path: PathBuf,
    pub args: Vec<OsString>,
    /// See `PATIENCE`: how long it may say nothing.
    pub patience: Duration,
}

impl WorkerProgram {
    /// This program's own file, even where an update has replaced it since.
    pub fn this() -> Result<Self> {
        let path = std::env::current_exe().map_err(|error| not_started(&error))?;
        let is_there = path.exists();
        let path = worker_path(OperatingSystem::HERE, path, is_there);
        Ok(Self { path, args: vec![ARGUMENT.into()], patience: PATIENCE })
    }
}

/// The file to start: Linux still has a program that an update has replaced. Windows replaces no running program.
fn worker_path(system: OperatingSystem, path: PathBuf, is_there: bool) -> PathBuf {
    match system {
        OperatingSystem::Linux if !is_there => PathBuf::from("/proc/self/exe"),
        OperatingSystem::Linux | OperatingSystem::MacOs | OperatingSystem::Windows => path,
    }
}

/// The program's whole run, if it was started as the worker or to fine-tune. Call it first in `main`.
pub fn serve_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let first = args.next()?;
    if first == tune::process::ARGUMENT {
        return Some(tune::process::serve(args.next().map(PathBuf::from)));
    }
    if first != ARGUMENT || args.next().is_some() {
        return None;
    }
    platform::logging::to_stderr();
    let served =
        pipe::serve(child::Parent::new(std::io::stdin()), std::io::stdout(), Arc::new(RealClock::new()));
    Some(match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

/// What the supervisor hears.
enum Input {
    Request(WorkerRequest),
    /// The requests' sender has gone.
    RequestsEnded,
    /// Of the process of that number.
    Event(u64, Box<WorkerEvent>),
    /// Its sign of life.
    Beat(u64),
    /// It says no more: it has ended, or says what is no event.
    Ended(u64),
}

/// As `worker::run`, in child processes made of `program`.
pub fn run(
    requests: Receiver<WorkerRequest>,
    program: &WorkerProgram,
    clock: &dyn Clock,
    emit: &mut dyn FnMut(WorkerEvent) -> bool,
) -> End {
    run_beating(requests, program, BEAT_INTERVAL, clock, emit)
}

/// As `run`, where a sign of life is asked for at each interval.
fn run_beating(
    requests: Receiver<WorkerRequest>,
    program: &WorkerProgram,
    beat_interval: Duration,
    clock: &dyn Clock,
    emit: &mut dyn FnMut(WorkerEvent) -> bool,
) -> End {
    let (send, inputs) = mpsc::sync_channel(INPUTS_WAITING);
    let forward = send.clone();
    let forwarding = std::thread::Builder::new().name("inglenook-requests".into()).spawn(move || {
        for request in requests {
            if forward.send(Input::Request(request)).is_err() {
                return;
            }
        }
        // without a supervisor the end has no recipient
        let _ = forward.send(Input::RequestsEnded);
    });
    let (child, flights) = (None, InFlight::default());
    let mut supervisor = Supervisor {
        program,
        clock,
        emit,
        send,
        child,
        n_children: 0,
        flights,
        interval: beat_interval.min(program.patience),
        next_look: Duration::ZERO,
        heartbeat: Heartbeat::default(),
        heard: ProcessActivity::default(),
        heard_at: Duration::ZERO,
        n_silences: 0,
        gone: false,
    };
    if let Err(error) = forwarding {
        supervisor.fail_all(&not_started(&error));
        return End::RequestsEnded;
    }
    supervisor.run(&inputs)
}

struct Supervisor<'a> {
    program: &'a WorkerProgram,
    clock: &'a dyn Clock,
    emit: &'a mut dyn FnMut(WorkerEvent) -> bool,
    send: SyncSender<Input>,
    /// None: there is nothing for it to do yet.
    child: Option<Child>,
    /// Names the processes.
    n_children: u64,
    flights: InFlight,
    /// Between looks at the process.
    interval: Duration,
    next_look: Duration,
    heartbeat: Heartbeat,
    /// What the process had done when it last said something, or was last found silent.
    heard: ProcessActivity,
    heard_at: Duration,
    n_silences: u32,
    /// The listener has gone.
    gone: bool,
}

impl Supervisor<'_> {
    fn run(&mut self, inputs: &Receiver<Input>) -> End {
        while !self.gone {
            let input = match self.flights.is_empty() {
                true => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => inputs.recv_timeout(self.next_look.saturating_sub(self.clock.monotonic())),
            };
            let is_due = matches!(input, Err(RecvTimeoutError::Timeout))
                || !self.flights.is_empty() && self.clock.monotonic() >= self.next_look;
            match input {
                Ok(Input::Request(WorkerRequest::Stop)) => {
                    self.stop(inputs);
                    return End::Stopped;
                }
                Ok(Input::RequestsEnded) | Err(RecvTimeoutError::Disconnected) => {
                    self.stop(inputs);
                    return End::RequestsEnded;
                }
                Ok(Input::Request(request)) => self.request(request),
                Ok(Input::Event(of, event)) if of == self.n_children => self.event(*event),
                Ok(Input::Beat(of)) if of == self.n_children => self.heartbeat.beats(),
                Ok(Input::Ended(of)) if of == self.n_children => self.worker_ended(),
                // What a process said before it was given up.
                Ok(Input::Event(..) | Input::Beat(_) | Input::Ended(_)) => {}
                Err(RecvTimeoutError::Timeout) => {}
            }
            if is_due {
                self.look();
            }
        }
        End::NobodyListens
    }

    fn say(&mut self, event: WorkerEvent) {
        self.gone |= !(self.emit)(event);
    }

    fn request(&mut self, request: WorkerRequest) {
        // Nothing is kept where there is no process.
        match (&request, &self.child) {
            (WorkerRequest::KvStats { request }, None) => {
                return self.say(WorkerEvent::KvStats { request: *request, stats: KvStats::default() });
            }
            (WorkerRequest::Store { request, .. }, None) => {
                return self.say(WorkerEvent::Stored { request: *request, outcome: Ok(None) });
            }
            _ => {}
        }
        if self.flights.is_empty() {
            self.watch_anew();
        }
        self.flights.asked(&request, self.clock.now_utc_ms());
        match &request {
            WorkerRequest::Unload { .. }
            | WorkerRequest::Forget { .. }
            | WorkerRequest::Cancel { .. }
            | WorkerRequest::Prefetch(_)
                if self.child.is_none() => {}
            _ => self.pass_on(vec![request]),
        }
    }

    /// To the process, which is started where there is none.
    fn pass_on(&mut self, requests: Vec<WorkerRequest>) {
        if self.child.is_none() {
            self.n_children += 1;
            self.watch_anew();
            match Child::start(self.program, self.n_children, &self.send) {
                Ok(child) => self.child = Some(child),
                Err(error) => return self.fail_all(&not_started(&error)),
            }
        }
        if let Some(child) = &mut self.child {
            requests.into_iter().for_each(|request| child.ask(request));
        }
    }

    /// The process has just been given work.
    fn watch_anew(&mut self) {
        let now = self.clock.monotonic();
        (self.heard_at, self.next_look, self.n_silences) = (now, now + self.interval, 0);
        (self.heartbeat, self.heard) = (Heartbeat::default(), ProcessActivity::default());
    }

    fn event(&mut self, event: WorkerEvent) {
        self.n_silences = 0;
        self.heartbeat.beats();
        self.heard_at = self.clock.monotonic();
        if let Some(event) = self.flights.heard(event) {
            self.say(event);
        }
    }

    /// Looks after the process while it has work: whether it lives, and whether it says something.
    fn look(&mut self) {
        let now = self.clock.monotonic();
        self.next_look = now + self.interval;
        let Some(child) = &mut self.child else { return };
        let is_silent = now.saturating_sub(self.heard_at) >= self.program.patience;
        match self.heartbeat.look(&mut || child.activity(now)) {
            Pulse::Ask => child.ask_beat(),
            Pulse::Waits => {}
            Pulse::Stopped => {
                tracing::error!("the worker gives no sign of life and is ended");
                // Its end comes as an input.
                return child.hangs();
            }
        }
        if is_silent {
            self.silence(now);
        }
    }

    /// Nothing was said for as long as patience lasts, though there is work.
    fn silence(&mut self, now: Duration) {
        let Some(child) = &mut self.child else { return };
        let activity = child.activity(now);
        // A slow disk is no fault of the process.
        self.n_silences = if activity.has_read_since(&self.heard) { 0 } else { self.n_silences + 1 };
        (self.heard, self.heard_at) = (activity, now);
        if self.n_silences < MAX_SILENCES {
            return;
        }
        tracing::error!(silent_s = self.program.patience.as_secs(), "the worker hangs and is ended");
        child.hangs();
        // Its end comes as an input.
    }

    /// The process is gone: what was asked of it is asked of another one, where that has not failed before.
    fn worker_ended(&mut self) {
        let Some(child) = self.child.take() else { return };
        let end = child.reap();
        tracing::error!(code = end.error.code(), "{} Last output: {}", end.error.message(), end.last_words);
        for id in self.flights.models() {
            self.say(WorkerEvent::Model { id, state: LoadState::Unloaded });
        }
        let (again, told) = self.flights.worker_ended(&end.error);
        told.into_iter().for_each(|event| self.say(event));
        if !again.is_empty() {
            self.pass_on(again);
        }
    }

    fn fail_all(&mut self, error: &Error) {
        let told = self.flights.fail_all(error);
        told.into_iter().for_each(|event| self.say(event));
    }

    /// Tells the process to stop and hears what it still says; one that doesn't stop is killed.
    fn stop(&mut self, inputs: &Receiver<Input>) {
        let Some(mut child) = self.child.take() else { return };
        child.ask(WorkerRequest::Stop);
        let end = self.clock.monotonic() + STOPPING;
        while let Some(left) = end.checked_sub(self.clock.monotonic()) {
            match inputs.recv_timeout(left) {
                Ok(Input::Event(of, event)) if of == self.n_children => self.event(*event),
                Ok(Input::Ended(of)) if of == self.n_children => break,
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
}

fn not_started(error: &std::io::Error) -> Error {
    Error::new(
        ErrorKind::Limit,
        "worker.start",
        format!("Inglenook's inference process could not be started: {error}."),
        "Close other programs and try again. If that doesn't help, reinstall Inglenook.",
    )
}

#[cfg(all(test, unix))]
mod tests;

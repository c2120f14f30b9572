//! The supervisor with processes of a shell line: they speak or are silent as they like.

use std::sync::mpsc::channel;
use std::time::Instant;

use contract::protocol::Location;
use contract::protocol::WorkerEvent;

use super::*;

/// Asked for a sign of life so often here.
const INTERVAL: Duration = Duration::from_millis(100);
const FOREVER: Duration = Duration::from_secs(600);

/// The errors that a question ends with, asked of a process that runs this line.
fn outcome(script: &str, patience: Duration, within: Duration) -> Option<String> {
    let (send, requests) = channel();
    let program = WorkerProgram { path: "/bin/sh".into(), args: vec!["-c".into(), script.into()], patience };
    send.send(WorkerRequest::Inspect { request: 1, location: Location::BuiltIn })
        .expect("the supervisor listens");
    let (say, heard) = channel();
    // ends with its requests
    let supervising = std::thread::spawn(move || {
        run_beating(requests, &program, INTERVAL, &RealClock::new(), &mut |event| say.send(event).is_ok())
    });
    let start = Instant::now();
    let mut code = None;
    while let Some(left) = within.checked_sub(start.elapsed())
        && code.is_none()
    {
        match heard.recv_timeout(left) {
            Ok(WorkerEvent::Inspected { outcome, .. }) => {
                code = outcome.err().map(|error| error.code().to_owned())
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    drop((send, heard));
    supervising.join().expect("the supervisor ends");
    code
}

#[test]
fn a_process_without_a_sign_of_life_is_replaced_soon() {
    // Twice: the question is asked again of another process.
    let stopped = outcome("kill -STOP $$", FOREVER, Duration::from_secs(20));
    assert_eq!(stopped.as_deref(), Some("worker.hung"));
}

/// Answers each question for a sign of life, and ends when it is asked to.
const BEATS: &str = r#"while read -r line; do case "$line" in "") echo;; *stop*) exit;; esac; done"#;

#[test]
fn a_process_that_gives_signs_of_life_may_take_its_time() {
    assert_eq!(outcome(BEATS, INTERVAL, INTERVAL * 10), None, "it beats, though it says nothing");
    // It never speaks, but computes.
    let busy = r#"while read -r line; do case "$line" in *stop*) kill $$; exit;; esac; done <&0 & while :; do :; done"#;
    assert_eq!(outcome(busy, FOREVER, INTERVAL * 10), None);
}

#[test]
fn a_process_that_only_beats_is_ended_at_last() {
    let ended = outcome(BEATS, INTERVAL, Duration::from_secs(30));
    assert_eq!(ended.as_deref(), Some("worker.hung"), "no progress in so long a time");
}

#[test]
fn linux_starts_a_replaced_program_and_others_the_file_of_its_name() {
    use OperatingSystem::{Linux, MacOs, Windows};
    for (system, is_there, expected) in [
        (Linux, true, "/opt/nook"),
        (Linux, false, "/proc/self/exe"),
        (MacOs, false, "/opt/nook"),
        (Windows, false, "/opt/nook"),
    ] {
        let path = worker_path(system, "/opt/nook".into(), is_there);
        assert_eq!(path, PathBuf::from(expected), "{system:?} {is_there}");
    }
}

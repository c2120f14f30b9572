//! The worker in its own process: whatever kills it, the application lives, and the answer goes on where it
//! stood, word for word.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use app::App;
use app::AppConfig;
use app::GenerateArgs;
use app::Overrides;
use app::SamplingArgs;
use contract::protocol::{Backend, Prompt};
use contract::types::{ErrorInfo, Finish, SendArgs, TurnEventKind};
use contract::{GpuFaultKind, PlannedGpuFault};
use inference::supervisor::{ARGUMENT, WorkerPlacement, WorkerProgram};
use inglenook_tests::nook;
use test_support::{Missing, skip};

/// Longer than any test takes.
const FOREVER: Duration = Duration::from_secs(600);

/// Tokens of an answer: enough that a kill after the first ones comes midway.
const N_TOKENS: usize = 300;

/// A temporary data folder, removed when dropped.
struct WorkerHome(PathBuf);

impl WorkerHome {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("inglenook-worker-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn open(&self, worker: WorkerPlacement) -> App {
        let config = AppConfig { data_dir: Some(self.0.clone()), worker, ..AppConfig::default() };
        let app = App::open(config).expect("it opens");
        app.settings_set("threads", &1.into()).expect("a number of threads");
        app.settings_set("guide_answers", &false.into()).expect("a switch");
        app
    }

    /// `nook` as the worker, its process id written down first, `before` it whatever a shell can do.
    fn worker(&self, before: &str, patience: Duration) -> WorkerPlacement {
        let script = format!(
            "{before} echo $$ > '{}'; exec '{}' {ARGUMENT}",
            self.pid_file().display(),
            nook().display()
        );
        WorkerPlacement::Process(WorkerProgram {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            patience,
        })
    }

    fn pid_file(&self) -> PathBuf {
        self.0.join("worker.pid")
    }

    fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.pid_file()).expect("the worker runs");
        let status = Command::new("kill").args([signal, pid.trim()]).status().expect("there is a kill");
        assert!(status.success(), "the worker runs");
    }
}

impl Drop for WorkerHome {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ask(app: &App, model: Option<&Path>, sampling: SamplingArgs) -> String {
    let args = GenerateArgs {
        model: model.map(|path| path.display().to_string()),
        prompt: Prompt::Raw("Once upon a time".into()),
        sampling,
        max_tokens: Some(N_TOKENS),
        stop: Vec::new(),
        ignore_eos: true,
        chat: Default::default(),
        constraint: None,
        logprobs: None,
    };
    app.generate(args).expect("it is taken")
}

fn greedy() -> SamplingArgs {
    SamplingArgs { temperature: Some(0.0), ..SamplingArgs::default() }
}

fn drawn() -> SamplingArgs {
    SamplingArgs {
        temperature: Some(0.8),
        seed: Some(7),
        repeat_penalty: Some(1.1),
        ..SamplingArgs::default()
    }
}

/// A turn as a watcher saw it.
#[derive(Default)]
struct WatchedTurn {
    text: String,
    ids: Vec<u32>,
    notices: Vec<ErrorInfo>,
    end: Option<Result<(Finish, u32), ErrorInfo>>,
}

/// Follows a turn; `act` may act on what was seen, after every piece of text.
fn follow(app: &App, turn: &str, act: &mut dyn FnMut(&WatchedTurn)) -> WatchedTurn {
    let mut seen = WatchedTurn::default();
    for event in app.watch_turn(turn, 0).expect("it is known").flatten() {
        assert!(seen.end.is_none(), "nothing follows the end");
        match event.kind {
            TurnEventKind::Text { text, ids } => {
                seen.text.push_str(&text);
                seen.ids.extend(ids);
                act(&seen);
            }
            TurnEventKind::Notice { error } => seen.notices.push(error),
            TurnEventKind::Done { stats } => seen.end = Some(Ok((stats.finish, stats.generated_tokens))),
            TurnEventKind::Failed { error } => seen.end = Some(Err(error)),
            _ => {}
        }
    }
    seen
}

fn whole(app: &App, sampling: SamplingArgs) -> WatchedTurn {
    let turn = ask(app, None, sampling);
    follow(app, &turn, &mut |_| {})
}

#[test]
fn f51_a_killed_worker_costs_no_word() {
    let home = WorkerHome::new("killed");
    let here = home.open(WorkerPlacement::Thread);
    let expected = [whole(&here, greedy()), whole(&here, drawn())];
    drop(here);
    let app = home.open(home.worker("", FOREVER));
    for (round, sampling) in [greedy(), drawn(), greedy(), drawn()].into_iter().enumerate() {
        let (expected, mut kill_after) = (&expected[round % 2], [1, 40, 130, 220][round]);
        loop {
            let turn = ask(&app, None, sampling.clone());
            let mut is_killed = false;
            let seen = follow(&app, &turn, &mut |seen| {
                if !is_killed && seen.ids.len() >= kill_after {
                    is_killed = true;
                    home.signal("-KILL");
                }
            });
            assert!(is_killed);
            assert_eq!((&seen.ids, &seen.text), (&expected.ids, &expected.text), "round {round}");
            assert_eq!(seen.end, Some(Ok((Finish::Length, N_TOKENS as u32))), "round {round}");
            let codes: Vec<_> = seen.notices.iter().map(|notice| notice.code.as_str()).collect();
            if codes == ["worker.restarted"] {
                break;
            }
            // On a busy machine the answer may have been complete before the signal came.
            assert!(codes.is_empty() && kill_after > 1, "round {round}: {codes:?}");
            kill_after /= 2;
        }
    }
    let turn = ask(&app, None, greedy());
    let mut n_kills = 0;
    let seen = follow(&app, &turn, &mut |seen| {
        if n_kills < 2 && seen.ids.len() > 60 * n_kills {
            n_kills += 1;
            home.signal("-KILL");
        }
    });
    let error = seen.end.expect("an end").expect_err("twice is too often");
    assert_eq!((error.code.as_str(), n_kills), ("worker.killed", 2));
    assert_eq!(whole(&app, greedy()).text, expected[0].text, "the next one is answered");
}

#[test]
fn f61_a_worker_that_hangs_is_ended_and_the_answer_goes_on() {
    let home = WorkerHome::new("hangs");
    let expected = whole(&home.open(WorkerPlacement::Thread), greedy());
    let app = home.open(home.worker("", Duration::from_millis(700)));
    let turn = ask(&app, None, greedy());
    let mut is_stopped = false;
    let seen = follow(&app, &turn, &mut |seen| {
        if !is_stopped && seen.ids.len() >= 20 {
            is_stopped = true;
            home.signal("-STOP");
        }
    });
    assert_eq!(seen.text, expected.text);
    assert_eq!(seen.notices.len(), 1, "{:?}", seen.notices);
    assert!(seen.notices[0].message.contains("stopped responding"), "{:?}", seen.notices);
}

#[test]
fn f12_a_model_file_that_is_cut_short_ends_the_turn_only() {
    let home = WorkerHome::new("cut");
    let model = home.0.join("endless.gguf");
    crate::kill9::write_model(&model);
    let whole = std::fs::read(&model).expect("it was written");
    let app = home.open(home.worker("", FOREVER));
    let turn = ask(&app, Some(&model), greedy());
    let mut is_cut = false;
    let seen = follow(&app, &turn, &mut |_| {
        if !std::mem::replace(&mut is_cut, true) {
            let file = OpenOptions::new().write(true).open(&model).expect("it is there");
            file.set_len(100_000).expect("it can be cut");
        }
    });
    let error = seen.end.expect("an end").expect_err("there is no model any more");
    assert!(error.code.starts_with("weights."), "{error:?}");
    assert!(seen.notices[0].message.contains("truncated"), "{:?}", seen.notices);
    std::fs::write(&model, whole).expect("it is whole again");
    let turn = ask(&app, Some(&model), greedy());
    assert_eq!(follow(&app, &turn, &mut |_| {}).end, Some(Ok((Finish::Length, N_TOKENS as u32))));
}

#[test]
fn a_model_file_that_is_cut_short_ends_an_answer_of_the_terminal_with_its_reason() {
    let home = WorkerHome::new("terminal");
    let model = home.0.join("endless.gguf");
    crate::kill9::write_model(&model);
    let mut command = Command::new(nook());
    command.args([
        "run",
        "--raw",
        "--prompt",
        "Once",
        "--max-tokens",
        "2000",
        "--ignore-eos",
        "--temperature",
        "0",
    ]);
    command.arg("--model").arg(&model).arg("--data-dir").arg(&home.0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("nook starts");
    let mut stdout = running.stdout.take().expect("piped");
    stdout.read_exact(&mut [0; 1]).expect("the answer begins");
    let file = OpenOptions::new().write(true).open(&model).expect("it is there");
    file.set_len(100_000).expect("it can be cut");
    let reading = std::thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
    let output = running.wait_with_output().expect("nook ends");
    reading.join().expect("no panic").expect("it ends with nook");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(2..=5)), "{:?}: {said}", output.status);
    assert!(said.contains("truncated"), "{said}");
}

/// A worker that dies of a segmentation fault where a request has `mark`, and writes that down before. The first time it
/// takes as many more PDFs before as there are `n_neighbours`.
fn falls_over(home: &WorkerHome, mark: &str, n_neighbours: usize) -> WorkerPlacement {
    let deaths = home.0.join("deaths");
    let script = format!(
        "while IFS= read -r line; do case \"$line\" in *'{mark}'*) echo dead >> '{deaths}'; \
         [ $(wc -l < '{deaths}') -gt 1 ] || for i in $(seq {n_neighbours}); do \
         while IFS= read -r line; do case \"$line\" in *render_pages*) break;; esac; done; done; \
         kill -SEGV $$; exit;; esac; printf '%s\\n' \"$line\"; done | '{}' {ARGUMENT}",
        nook().display(),
        deaths = deaths.display(),
    );
    WorkerPlacement::Process(WorkerProgram {
        path: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        patience: FOREVER,
    })
}

#[test]
fn a_file_that_ends_the_worker_is_refused_once_and_costs_its_neighbours_nothing() {
    let home = WorkerHome::new("file");
    let files = inglenook_tests::workspace_root().join("src-tauri/crates/pdf-pages/tests/files");
    let read = |name: &str| std::fs::read(files.join(name)).expect("it is in the repository");
    let bad = read("fax.pdf");
    // Bytes of this file alone: multiples of three are whole digits of base64.
    let app = home.open(falls_over(&home, &documents::base64::encode(&bad[1200..1290]), 3));
    let turn = ask(&app, None, greedy());
    let mut outcomes = Vec::new();
    let seen = follow(&app, &turn, &mut |seen| {
        if seen.ids.len() >= 5 && outcomes.is_empty() {
            outcomes = std::thread::scope(|scope| {
                let attach = |name: &'static str| (name, scope.spawn(|| app.attach(name, &read(name))));
                let first = attach("fax.pdf");
                while !home.0.join("deaths").exists() {
                    std::thread::yield_now();
                }
                let [a, b, c] = ["jpeg.pdf", "strips.pdf", "mixed.pdf"].map(attach);
                [first, a, b, c].map(|(name, thread)| (name, thread.join().expect("no panic"))).into()
            });
        }
    });
    let n_deaths = || std::fs::read_to_string(home.0.join("deaths")).expect("it died").lines().count();
    assert_eq!(n_deaths(), 1, "it was not tried again");
    for (name, outcome) in &outcomes {
        match outcome {
            Ok(file) => assert!(file.scanned.is_some_and(|it| it.images > 0) && *name != "fax.pdf", "{name}"),
            Err(error) => {
                assert_eq!((*name, error.code()), ("fax.pdf", "attachment.refused"), "{error}");
                assert!(error.message().contains("ended unexpectedly"), "{error}");
                assert!(!error.remedy().is_empty());
            }
        }
    }
    assert_eq!(outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).count(), 3);
    // The answer went on, and is none the poorer.
    assert_eq!(seen.end, Some(Ok((Finish::Length, N_TOKENS as u32))), "{:?}", seen.notices);
    let again = app.attach("fax.pdf", &bad).expect_err("as before");
    assert_eq!((again.code(), n_deaths()), ("attachment.refused", 2), "once for each time that it is chosen");
    assert_eq!(whole(&app, greedy()).text, seen.text, "the next answer is as usual");
}

#[test]
fn a_stopped_worker_is_replaced_within_seconds_though_patience_is_long() {
    let home = WorkerHome::new("stopped");
    let expected = whole(&home.open(WorkerPlacement::Thread), greedy());
    let app = home.open(home.worker("", FOREVER));
    let turn = ask(&app, None, greedy());
    let mut stopped = None;
    let seen = follow(&app, &turn, &mut |seen| {
        if stopped.is_none() && seen.ids.len() >= 20 {
            home.signal("-STOP");
            stopped = Some(Instant::now());
        }
    });
    assert_eq!(seen.text, expected.text);
    assert!(seen.notices[0].message.contains("stopped responding"), "{:?}", seen.notices);
    // ten seconds to replace it, the others to write the rest on a busy machine
    assert!(stopped.expect("it was stopped").elapsed() < Duration::from_secs(40));
}

#[test]
fn f51_a_worker_that_does_not_start_or_has_no_memory_fails_the_turn() {
    let home = WorkerHome::new("start");
    let program = |path: &str| WorkerProgram { path: path.into(), args: vec![], patience: FOREVER };
    let little = home.worker("ulimit -v 30000;", FOREVER);
    for (worker, code) in [
        (WorkerPlacement::Process(program("/nowhere/at/all")), "worker.start"),
        (WorkerPlacement::Process(program("/bin/false")), "worker.crashed"),
        // It can't even be loaded, or fails where it first needs memory.
        (little, "worker.crashed"),
    ] {
        let app = home.open(worker);
        let error = whole(&app, greedy()).end.expect("an end").expect_err(code);
        assert_eq!(error.code, code, "{error:?}");
        assert!(!error.remedy.is_empty());
        assert_eq!(app.models_list().expect("the application lives").len(), 1);
    }
}

#[test]
fn a_worker_ends_with_its_application() {
    let home = WorkerHome::new("ends");
    let app = home.open(home.worker("", FOREVER));
    let turn = ask(&app, None, greedy());
    follow(&app, &turn, &mut |_| {});
    let pid = std::fs::read_to_string(home.pid_file()).expect("the worker ran");
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    assert!(process.exists() || !cfg!(target_os = "linux"), "it stays for the next question");
    drop(app);
    assert!(!process.exists(), "it is gone, and no zombie");

    // A worker whose application is killed gets no more requests.
    let mut serving = crate::kill9::NookServer::start(&home.0);
    let counted = serving.call("draft_count", &serde_json::json!({ "text": "Hello" }));
    assert!(counted["tokens"].as_u64().is_some_and(|n| n > 0), "{counted}");
    let id = serving.child.id();
    let children = File::open(format!("/proc/{id}/task/{id}/children"));
    let all_children = |id| -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
        let files = tasks.map(|task| task.expect("a thread").path().join("children"));
        files
            .flat_map(|file| {
                std::fs::read_to_string(file)
                    .unwrap_or_default()
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    if children.is_err() {
        skip!(Missing::Platform, "this system does not list the children of a process");
    }
    let workers = all_children(id);
    assert_eq!(workers.len(), 1, "{workers:?}");
    serving.child.kill().expect("it can be killed");
    serving.child.wait().expect("it ends");
    let worker = PathBuf::from(format!("/proc/{}", workers[0]));
    let start = Instant::now();
    while worker.exists()
        && std::fs::read_to_string(worker.join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
    {
        assert!(start.elapsed() < Duration::from_secs(20), "the worker outlives its application");
        std::thread::yield_now();
    }
}

/// The same application with this failure of its GPU to come, in the process that computes.
fn with_fault(home: &WorkerHome, worker: WorkerPlacement, fault: Option<PlannedGpuFault>) -> App {
    let overrides = Overrides { backend: Some(Backend::Gpu), gpu_fault: fault, ..Overrides::default() };
    let config = AppConfig { data_dir: Some(home.0.clone()), worker, overrides, ..AppConfig::default() };
    let app = App::open(config).expect("it opens");
    app.settings_set("guide_answers", &false.into()).expect("a switch");
    app
}

/// A message in a new chat, and its answer.
fn chat(app: &App) -> WatchedTurn {
    let args = SendArgs { text: "How do I add a model?".into(), ..SendArgs::default() };
    let started = app.send(args).expect("it is taken");
    follow(app, &started.turn, &mut |_| {})
}

#[test]
fn a_gpu_that_fails_in_the_worker_costs_no_text() {
    let home = WorkerHome::new("card");
    let app = with_fault(&home, home.worker("", FOREVER), None);
    for (key, value) in [("max_tokens", 40), ("temperature", 0), ("threads", 1)] {
        app.settings_set(key, &value.into()).expect("a number");
    }
    app.settings_set("titles", &false.into()).expect("a switch");
    let expected = chat(&app);
    assert!(expected.notices.is_empty() && expected.ids.len() > 10, "{:?}", expected.notices);
    drop(app);
    // after one more the processor goes on, whose roundings may lead to other words
    for (kind, code) in [
        (GpuFaultKind::Lost, "kernels.gpu_lost"),
        (GpuFaultKind::Memory, "kernels.gpu_memory"),
        (GpuFaultKind::TimeOut, "kernels.gpu_time_out"),
        (GpuFaultKind::Wrong, "kernels.gpu_subgroups"),
    ] {
        let fault = PlannedGpuFault { kind, before: 4, n_times: 1 };
        let app = with_fault(&home, home.worker("", FOREVER), Some(fault));
        let seen = chat(&app);
        assert_eq!((&seen.ids, &seen.text), (&expected.ids, &expected.text), "{kind:?}");
        assert!(matches!(seen.end, Some(Ok(_))), "{kind:?}: {:?}", seen.end);
        let told: Vec<&str> = seen.notices.iter().map(|notice| &*notice.code).collect();
        assert_eq!(told, [code], "{kind:?}: said once");
        // the next answer knows nothing of it
        let next = chat(&app);
        assert_eq!((&next.text, next.notices.len()), (&expected.text, 0), "{kind:?}: {:?}", next.notices);
    }
}

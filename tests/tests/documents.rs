//! Runs every `nook` command that a document shows in a block of `sh` or `console`, unchanged.
//!
//! A block that cannot run here has `<!-- not run: REASON -->` on the line before it: such blocks are counted and
//! printed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use inglenook_tests::{nook, workspace_root};

/// Of one command, on a computer that builds something else meanwhile.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, PartialEq, Eq)]
struct DocumentedCommand {
    line: usize,
    text: String,
    /// Why its block is not run.
    not_run: Option<String>,
}

/// The commands of one document that begin with `nook`, continued lines joined.
fn commands(document: &str) -> Vec<DocumentedCommand> {
    let (mut found, mut before, mut block) = (Vec::new(), "", None);
    let mut open: Option<DocumentedCommand> = None;
    for (i, line) in document.lines().enumerate() {
        let text = line.trim();
        if let Some(language) = text.strip_prefix("```") {
            let is_shell = ["sh", "console"].contains(&language);
            let reason =
                before.trim().strip_prefix("<!-- not run:").map(|it| it.trim_end_matches("-->").trim());
            block = (block.is_none()).then(|| is_shell.then(|| reason.map(str::to_owned)));
        } else if let Some(Some(not_run)) = &block {
            let text = text.strip_prefix("$ ").unwrap_or(text);
            let mut command = open.take().unwrap_or(DocumentedCommand {
                line: i + 1,
                text: String::new(),
                not_run: not_run.clone(),
            });
            command.text.push_str(text.trim_end_matches('\\'));
            match text.ends_with('\\') {
                true => open = Some(command),
                false if command.text.starts_with("nook ") => found.push(command),
                false => {}
            }
        }
        if !text.is_empty() {
            before = line;
        }
    }
    found
}

fn documents() -> Vec<PathBuf> {
    let root = workspace_root();
    let folders = [root.clone(), root.join("docs")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let mut found: Vec<PathBuf> = files.map(|file| file.path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    found.sort();
    found
}

/// Runs a command line in the project's folder; what it printed if it failed.
fn run(command: &str, data: &Path) -> Result<(), String> {
    // As if `nook` lay in PATH.
    let script = format!("nook() {{ \"$NOOK\" --data-dir \"$DATA\" \"$@\"; }}\n{command}");
    let output = data.join("output.txt");
    std::fs::create_dir_all(data).map_err(|e| e.to_string())?;
    let file = std::fs::File::create(&output).map_err(|e| e.to_string())?;
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", data)
        .env("NOOK", workspace_root().join(nook()))
        .env("DATA", data.join("data"))
        .current_dir(workspace_root())
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(|e| e.to_string())?)
        .stderr(file)
        .spawn()
        .map_err(|e| format!("bash: {e}"))?;
    let began = Instant::now();
    loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(format!("{status}: {}", std::fs::read_to_string(output).unwrap_or_default()));
            }
            None if began.elapsed() > COMMAND_TIMEOUT => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no end after {COMMAND_TIMEOUT:?}"));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[test]
fn documented_commands_run() {
    let (mut wrong, mut not_run, mut n_run) = (Vec::new(), Vec::new(), 0);
    for path in documents() {
        let name = path.strip_prefix(workspace_root()).unwrap().display().to_string();
        let data = std::env::temp_dir().join(format!(
            "inglenook-documents-{}-{}",
            std::process::id(),
            name.replace('/', "-")
        ));
        for command in commands(&std::fs::read_to_string(&path).unwrap()) {
            let place = format!("{name}:{}: {}", command.line, command.text);
            if let Some(reason) = command.not_run {
                not_run.push(format!("{place}: {reason}"));
                continue;
            }
            n_run += 1;
            if let Err(error) = run(&command.text, &data) {
                wrong.push(format!("{place}: {error}"));
            }
        }
        let _ = std::fs::remove_dir_all(data);
    }
    // Past the harness, which shows nothing of a test that passes.
    let report =
        format!("\n{n_run} documented commands run; {} do not:\n  {}\n", not_run.len(), not_run.join("\n  "));
    let _ = std::io::stderr().lock().write_all(report.as_bytes());
    assert!(n_run > 10, "only {n_run} commands: looking in the wrong place");
    assert!(wrong.is_empty(), "{} commands fail:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn commands_are_found_in_blocks_of_shell() {
    let document = "nook not here\n```sh\nnook a --b \\\n  c\nmake x\n```\n<!-- not run: needs a network -->\n\
        ```console\n$ nook d\noutput\n```\n```json\nnook e\n```\n```sh\nnook f\n```\n";
    let command = |line, text: &str, not_run: Option<&str>| DocumentedCommand {
        line,
        text: text.into(),
        not_run: not_run.map(str::to_owned),
    };
    let expected = [
        command(3, "nook a --b c", None),
        command(9, "nook d", Some("needs a network")),
        command(16, "nook f", None),
    ];
    assert_eq!(commands(document), expected);
    let data = std::env::temp_dir().join(format!("inglenook-documents-{}", std::process::id()));
    assert!(run("nook settings get no-such-setting", &data).is_err(), "this check cannot fail");
    std::fs::remove_dir_all(data).unwrap();
}

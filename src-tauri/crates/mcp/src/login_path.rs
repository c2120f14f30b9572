//! The PATH of the login shell. A program that a desktop starts has a short one, which lacks what
//! the user's profile adds: Homebrew, nvm, uv.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use io::OperatingSystem;

use super::descendants;

/// A profile that takes longer is not waited for.
const SHELL_TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes that are read of what a profile prints.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

const BEGINS: &str = "__inglenook_path_begins__";
const ENDS: &str = "__inglenook_path_ends__";

/// The shell that a terminal of macOS starts where nothing else is set.
const MACOS_SHELL: &str = "/bin/zsh";

/// Returns `path` with the folders that the login shell adds behind it; as it is where no shell
/// answers in time. `shell` is the value of `SHELL`.
pub fn login_shell_path(shell: Option<&str>, path: &str) -> String {
    let Some(shell) = login_shell(OperatingSystem::HERE, shell) else { return path.to_owned() };
    // An interactive shell reads the file that most installers write to.
    let asked = ask_shell(shell, &["-i", "-l", "-c"]).or_else(|| ask_shell(shell, &["-l", "-c"]));
    asked.map_or_else(|| path.to_owned(), |asked| joined(path, &asked))
}

/// The shell to ask. None: the system starts every program with the same PATH, or no shell is known.
fn login_shell(system: OperatingSystem, shell: Option<&str>) -> Option<&str> {
    let shell = shell.filter(|shell| !shell.is_empty());
    let known = match system {
        OperatingSystem::Windows => None,
        OperatingSystem::MacOs => shell.or(Some(MACOS_SHELL)),
        OperatingSystem::Linux => shell,
    };
    known.filter(|shell| shell.starts_with('/'))
}

fn ask_shell(shell: &str, flags: &[&str]) -> Option<String> {
    let mut command = Command::new(shell);
    command.args(flags).arg(format!("echo {BEGINS}; printenv PATH; echo {ENDS}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Tools such as tmux starters in a profile can see that no terminal is there.
    command.env("TERM", "dumb");
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().ok()?;
    let output = output_of(&mut child);
    // A background process of the profile may live on: it is not the shell's answer.
    descendants::kill(child.id());
    let _ = child.wait();
    path_in(&output?)
}

fn output_of(child: &mut Child) -> Option<String> {
    let stdout = child.stdout.take()?;
    let (send, output) = sync_channel(1);
    platform::spawn("tools-shell", move || {
        // Ends at our mark: another process may hold the pipe open.
        let (mut bytes, mut stdout) = (Vec::new(), stdout.take(MAX_OUTPUT_BYTES));
        let mut buffer = [0; 4096];
        while let Ok(n) = stdout.read(&mut buffer) {
            bytes.extend_from_slice(&buffer[..n]);
            if n == 0 || String::from_utf8_lossy(&bytes).contains(ENDS) {
                break;
            }
        }
        // the waiter may have gone
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    })
    .ok()?;
    output.recv_timeout(SHELL_TIMEOUT).ok()
}

/// The line between our marks.
fn path_in(output: &str) -> Option<String> {
    let (_, after) = output.split_once(BEGINS)?;
    let (path, _) = after.split_once(ENDS)?;
    let path = path.trim();
    (!path.is_empty() && !path.contains('\n')).then(|| path.to_owned())
}

/// Own folders first: what was found until now is still found.
fn joined(own: &str, more: &str) -> String {
    let mut folders: Vec<&str> = Vec::new();
    for folder in own.split(':').chain(more.split(':')).filter(|folder| !folder.is_empty()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_between_the_marks_is_the_path() {
        let output = format!("Welcome!\n{BEGINS}\n/a:/b c\n{ENDS}\nBye\n");
        assert_eq!(path_in(&output).as_deref(), Some("/a:/b c"));
        for output in ["", "/a:/b", BEGINS, &format!("{BEGINS}\n{ENDS}")] {
            assert_eq!(path_in(output), None, "{output}");
        }
    }

    #[test]
    fn folders_of_the_shell_follow_the_own_ones() {
        for (own, more, expected) in [
            ("/usr/bin:/bin", "/opt/brew/bin:/bin:/usr/bin", "/usr/bin:/bin:/opt/brew/bin"),
            ("", "/a", "/a"),
            ("/a", "", "/a"),
        ] {
            assert_eq!(joined(own, more), expected);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_is_asked_and_one_that_is_none_is_not() {
        let path = login_shell_path(Some("/bin/sh"), "/own/bin");
        assert!(path.starts_with("/own/bin:/"), "{path}");
        for shell in ["sh", "", "/no/such/shell", "/bin/false"] {
            assert_eq!(login_shell_path(Some(shell), "/own/bin"), "/own/bin", "{shell}");
        }
    }

    #[test]
    fn windows_has_no_login_shell_and_macos_always_one() {
        use OperatingSystem::{Linux, MacOs, Windows};
        for (system, shell, expected) in [
            (Linux, Some("/usr/bin/fish"), Some("/usr/bin/fish")),
            (Linux, Some("fish"), None),
            (Linux, Some(""), None),
            (Linux, None, None),
            (MacOs, Some("/opt/homebrew/bin/fish"), Some("/opt/homebrew/bin/fish")),
            (MacOs, Some(""), Some("/bin/zsh")),
            (MacOs, None, Some("/bin/zsh")),
            (Windows, Some("/usr/bin/bash"), None),
            (Windows, None, None),
        ] {
            assert_eq!(login_shell(system, shell), expected, "{system:?} {shell:?}");
        }
    }
}

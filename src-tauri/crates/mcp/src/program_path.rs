//! Finds the file of a command. On Windows `npx` is `npx.cmd`, which the system does not find by
//! itself; elsewhere only `~` is written out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use io::OperatingSystem;

/// Endings of programs where the system does not say.
const DEFAULT_ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// Returns the program of a command, in this environment. What is not found stays as it is: the error then names it.
pub fn find_program(command: &str, env: &[(String, String)]) -> OsString {
    find_program_on(OperatingSystem::HERE, command, env, &|path| path.is_file())
}

fn find_program_on(
    system: OperatingSystem,
    command: &str,
    env: &[(String, String)],
    is_file: &dyn Fn(&Path) -> bool,
) -> OsString {
    let variable = |name: &str| {
        let found = env.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    };
    match system {
        OperatingSystem::Linux | OperatingSystem::MacOs => {
            match (command.strip_prefix("~/"), variable("HOME")) {
                (Some(below), Some(home)) => format!("{}/{below}", home.trim_end_matches('/')).into(),
                _ => command.into(),
            }
        }
        OperatingSystem::Windows => {
            let below = command.strip_prefix("~/").or_else(|| command.strip_prefix(r"~\"));
            let command = match (below, variable("HOME").or_else(|| variable("USERPROFILE"))) {
                (Some(below), Some(home)) => format!(r"{}\{below}", home.trim_end_matches('\\')),
                _ => command.to_owned(),
            };
            let endings = variable("PATHEXT").unwrap_or(DEFAULT_ENDINGS);
            let found = find_windows(&command, variable("PATH").unwrap_or_default(), endings, is_file);
            found.map_or_else(|| command.into(), OsString::from)
        }
    }
}

/// Looks a command up as the Windows command line does: with each ending, in each folder.
fn find_windows(
    command: &str,
    path: &str,
    endings: &str,
    is_file: &dyn Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let endings = || endings.split(';').filter(|ending| ending.starts_with('.'));
    let last = command.rsplit(['/', '\\']).next().unwrap_or(command).to_ascii_lowercase();
    let has_ending = endings().any(|ending| last.ends_with(&ending.to_ascii_lowercase()));
    let names = || {
        let bare = has_ending.then(|| command.to_owned());
        bare.into_iter().chain(endings().map(|ending| format!("{command}{}", ending.to_ascii_lowercase())))
    };
    if command.contains(['/', '\\', ':']) {
        return names().map(PathBuf::from).find(|path| is_file(path));
    }
    let folders = path.split(';').map(|folder| folder.trim().trim_matches('"')).filter(|it| !it.is_empty());
    folders
        .flat_map(|folder| {
            names().map(move |name| PathBuf::from(format!("{}\\{name}", folder.trim_end_matches('\\'))))
        })
        .find(|path| is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_as_the_command_line_finds_them() {
        let files = [
            r"C:\node\npx",
            r"C:\node\npx.cmd",
            r"C:\node\node.exe",
            r"D:\py\uvx.exe",
            r"D:\py\npx.cmd",
            r"D:\my tools\serve.bat",
        ];
        let is_file = |path: &Path| files.contains(&path.to_str().unwrap());
        let path = r#"C:\none;C:\node\;"D:\my tools";D:\py"#;
        let find = |command: &str| {
            find_windows(command, path, DEFAULT_ENDINGS, &is_file).map(|it| it.display().to_string())
        };
        for (command, expected) in [
            ("npx", Some(r"C:\node\npx.cmd")),
            ("npx.cmd", Some(r"C:\node\npx.cmd")),
            ("node", Some(r"C:\node\node.exe")),
            ("NODE.EXE", None),
            ("uvx", Some(r"D:\py\uvx.exe")),
            ("serve", Some(r"D:\my tools\serve.bat")),
            (r"D:\py\npx", Some(r"D:\py\npx.cmd")),
            (r"D:\py\uvx.exe", Some(r"D:\py\uvx.exe")),
            ("deno", None),
            ("", None),
        ] {
            assert_eq!(find(command).as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn each_system_finds_a_command_by_its_own_rules() {
        use OperatingSystem::{Linux, MacOs, Windows};
        let check = |system, command: &str, env: &[(&str, &str)], expected: &str| {
            let env: Vec<_> = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            let files = [r"C:\node\npx.cmd", r"C:\Users\a\bin\serve.exe", r"C:\node\npx.ps1"];
            let is_file = |path: &Path| files.contains(&path.to_str().unwrap());
            assert_eq!(find_program_on(system, command, &env, &is_file), expected, "{system:?} {command}");
        };
        let unix = [("HOME", "/home/a"), ("PATH", "/usr/bin")];
        check(Linux, "~/bin/serve", &unix, "/home/a/bin/serve");
        check(MacOs, "~/bin/serve", &[("HOME", "/Users/a/")], "/Users/a/bin/serve");
        check(Linux, "npx", &unix, "npx");
        check(Linux, "~/bin/serve", &[], "~/bin/serve");
        check(Linux, r"~\bin", &unix, r"~\bin");
        let windows = [("USERPROFILE", r"C:\Users\a"), ("Path", r"C:\node")];
        check(Windows, "npx", &windows, r"C:\node\npx.cmd");
        check(Windows, r"~\bin\serve", &windows, r"C:\Users\a\bin\serve.exe");
        check(Windows, "~/none", &windows, r"C:\Users\a\none");
        check(Windows, "npx", &[("PATH", r"C:\node"), ("PATHEXT", ".PS1")], r"C:\node\npx.ps1");
        check(Windows, "npx", &[("PATH", r"C:\node"), ("PATHEXT", "")], r"C:\node\npx.cmd");
        check(Windows, "deno", &windows, "deno");
    }
}

//! The desktop shell: opens the application, shows the page and forwards its calls. Contains no application logic.

#![forbid(unsafe_code)]
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod background;
mod clipboard;
mod commands;
mod error_dialog;
mod focus;
mod global_keys;
mod notify;
mod quick;
mod shutdown;
mod state;
mod tray;
mod update_source;
mod updates;
mod webkit_env;
mod webview;
mod window;
mod window_state;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use desktop::DeepLink;
use io::OperatingSystem;

const USAGE: &str = "usage: inglenook [--data-dir DIR] [MODEL.gguf | inglenook://… ]…\n\
    DIR (or INGLENOOK_DATA_DIR) holds everything the program keeps.";

fn main() -> ExitCode {
    if let Some(ended) = inference::supervisor::serve_if_asked() {
        return ended;
    }
    let ShellArgs { data_dir, links } =
        match ShellArgs::read(std::env::args_os().skip(1), std::env::var_os(platform::DATA_DIR_VARIABLE)) {
            Ok(arguments) => arguments,
            Err(wrong) => {
                eprintln!("{wrong}");
                return ExitCode::from(2);
            }
        };
    if !has_display() {
        eprintln!("No display was found. Use `nook chat` in a terminal instead.");
        return ExitCode::from(2);
    }
    webkit_env::restart_if_useful(std::env::args_os());
    let opened = desktop::SingleInstance::take(data_dir.clone(), &links).and_then(|taken| match taken {
        desktop::InstanceClaim::First(only) => Ok(Some((only, open(data_dir)?))),
        desktop::InstanceClaim::Raised => Ok(None),
    });
    let shown = opened.map(|opened| match opened {
        Some((only, app)) => window::run(app, only, links),
        None => Ok(()),
    });
    match shown {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("The window could not be opened: {error}. Use `nook chat` in a terminal instead.");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{} {}", error.message(), error.remedy());
            error_dialog::show(error.message(), error.remedy());
            ExitCode::from(error.kind.exit_code())
        }
    }
}

fn open(data_dir: Option<PathBuf>) -> contract::Result<app::App> {
    let worker =
        inference::supervisor::WorkerPlacement::Process(inference::supervisor::WorkerProgram::this()?);
    let hub = app::HubAccess::read(&|name| std::env::var(name).ok());
    let environment = app::Environment(|name| std::env::var(name).ok());
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let others = app::models::model_dirs::known(std::env::home_dir().as_deref(), &variable);
    let log = app::LogTo::StderrAndFile;
    let keychain = app::has_keychain(&|name| std::env::var(name).ok());
    let config = app::AppConfig {
        data_dir,
        log,
        worker,
        hub,
        environment,
        others,
        keychain,
        interface: app::Interface::Window,
        ..Default::default()
    };
    let app = app::App::open(config)?;
    app.downloads_go_on()?;
    Ok(app)
}

fn has_display() -> bool {
    has_display_on(OperatingSystem::HERE, &|name| std::env::var_os(name))
}

/// macOS and Windows always have one. Elsewhere the session names it.
fn has_display_on(system: OperatingSystem, variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
    let is_named = |name| variable(name).is_some_and(|value| !value.is_empty());
    match system {
        OperatingSystem::MacOs | OperatingSystem::Windows => true,
        OperatingSystem::Linux => is_named("DISPLAY") || is_named("WAYLAND_DISPLAY"),
    }
}

/// Parsed command line.
#[derive(Debug, PartialEq, Eq)]
struct ShellArgs {
    /// From the flag, else the environment variable; `None` uses the system's folders.
    data_dir: Option<PathBuf>,
    links: Vec<DeepLink>,
}

impl ShellArgs {
    fn read(mut args: impl Iterator<Item = OsString>, variable: Option<OsString>) -> Result<Self, String> {
        let mut data_dir = variable.filter(|v| !v.is_empty());
        let mut links = Vec::new();
        while let Some(arg) = args.next() {
            let text = arg.to_string_lossy();
            if text == "--data-dir" {
                data_dir = Some(args.next().ok_or(USAGE)?);
            } else if let Some(value) = text.strip_prefix("--data-dir=") {
                data_dir = Some(value.into());
            } else if text.starts_with("--") {
                return Err(USAGE.into());
            } else {
                links.push(
                    DeepLink::parse(&arg)
                        .map_err(|error| format!("{} {}\n{USAGE}", error.message(), error.remedy()))?,
                );
            }
        }
        Ok(Self { data_dir: data_dir.map(PathBuf::from), links })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str], variable: Option<&str>) -> Result<ShellArgs, String> {
        ShellArgs::read(args.iter().map(OsString::from), variable.map(OsString::from))
    }

    #[test]
    fn the_data_folder_comes_from_flag_variable_or_default() {
        let check = |args: &[&str], variable, dir: Option<&str>| {
            let expected = ShellArgs { data_dir: dir.map(PathBuf::from), links: Vec::new() };
            assert_eq!(read(args, variable), Ok(expected), "{args:?} {variable:?}");
        };
        check(&[], None, None);
        check(&[], Some("/v"), Some("/v"));
        check(&[], Some(""), None);
        check(&["--data-dir", "/f"], Some("/v"), Some("/f"));
        check(&["--data-dir=/f"], None, Some("/f"));
        assert_eq!(read(&["--data-dir"], None), Err(USAGE.into()));
        assert_eq!(read(&["--else"], None), Err(USAGE.into()));
    }

    #[test]
    fn only_linux_may_be_without_a_display() {
        use OperatingSystem::{Linux, MacOs, Windows};
        let check = |system, name: &str, value: &str, expected| {
            let variable = |asked: &str| (asked == name).then(|| OsString::from(value));
            assert_eq!(has_display_on(system, &variable), expected, "{system:?} {name}={value}");
        };
        check(Linux, "DISPLAY", ":0", true);
        check(Linux, "WAYLAND_DISPLAY", "wayland-0", true);
        check(Linux, "DISPLAY", "", false);
        check(Linux, "", "", false);
        check(MacOs, "", "", true);
        check(Windows, "", "", true);
    }

    #[test]
    fn files_and_links_are_for_the_window() {
        let links =
            vec![DeepLink::NewChat { text: "hi".into() }, DeepLink::FindModel { query: "a/b".into() }];
        let args = ["inglenook://new?text=hi", "--data-dir=/f", "inglenook://models/a/b"];
        assert_eq!(read(&args, None), Ok(ShellArgs { data_dir: Some("/f".into()), links }));
        assert!(read(&["notes.txt"], None).unwrap_err().starts_with("notes.txt can't be opened."));
    }
}

//! The desktop window. It opens the application, shows the page, and passes calls on; it decides nothing.

#![forbid(unsafe_code)]
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod commands;
mod window;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: inglenook [--data-dir DIR]\n\
    DIR (or INGLENOOK_DATA_DIR) holds everything the program keeps.";

fn main() -> ExitCode {
    if let Some(ended) = api::process::serve_if_asked() {
        return ended;
    }
    let data_dir = match data_dir(std::env::args_os().skip(1), std::env::var_os(api::DATA_DIR_VARIABLE)) {
        Ok(dir) => dir,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    if !has_display() {
        eprintln!("There is no display here. In a terminal, `nook chat` needs none.");
        return ExitCode::from(2);
    }
    let opened = api::OneWindow::take(data_dir.clone()).and_then(|only| Ok((only, open(data_dir)?)));
    // held for as long as there is a window
    match opened.map(|(_only, app)| window::run(app)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("The window could not be opened: {error}. In a terminal, `nook chat` needs none.");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{} {}", error.message(), error.remedy());
            window::say(error.message(), error.remedy());
            ExitCode::from(error.kind.exit_code())
        }
    }
}

fn open(data_dir: Option<PathBuf>) -> api::Result<api::App> {
    let worker = api::process::Place::Process(api::process::Program::this()?);
    api::App::open(api::AppConfig { data_dir, log: api::LogTo::StderrAndFile, worker, ..Default::default() })
}

fn has_display() -> bool {
    let named = |variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || named("DISPLAY") || named("WAYLAND_DISPLAY")
}

/// The flag before the variable; none: the system's own folders.
fn data_dir(
    mut args: impl Iterator<Item = OsString>,
    variable: Option<OsString>,
) -> Result<Option<PathBuf>, &'static str> {
    let mut dir = variable.filter(|v| !v.is_empty());
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy();
        if text == "--data-dir" {
            dir = Some(args.next().ok_or(USAGE)?);
        } else if let Some(value) = text.strip_prefix("--data-dir=") {
            dir = Some(value.into());
        } else {
            return Err(USAGE);
        }
    }
    Ok(dir.map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str], variable: Option<&str>, expected: Result<Option<&str>, &'static str>) {
        let got = data_dir(args.iter().map(OsString::from), variable.map(OsString::from));
        assert_eq!(got, expected.map(|dir| dir.map(PathBuf::from)), "{args:?} {variable:?}");
    }

    #[test]
    fn the_data_folder_is_named_by_flag_variable_or_nobody() {
        check(&[], None, Ok(None));
        check(&[], Some("/v"), Ok(Some("/v")));
        check(&[], Some(""), Ok(None));
        check(&["--data-dir", "/f"], Some("/v"), Ok(Some("/f")));
        check(&["--data-dir=/f"], None, Ok(Some("/f")));
        check(&["--data-dir"], None, Err(USAGE));
        check(&["file.gguf"], None, Err(USAGE));
    }
}

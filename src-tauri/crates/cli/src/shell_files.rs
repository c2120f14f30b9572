//! `nook completions` and `nook man`: files that a shell or `man` reads, made from the command line's own definition.

use std::path::{Path, PathBuf};

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use contract::Result;
use io::{Io, IoError, RealIo};
use serde_json::json;

use crate::args::Global;
use crate::out;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_enum)]
    pub shell: ShellArg,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShellArg {
    Bash,
    Zsh,
    Fish,
    Elvish,
    #[value(name = "powershell")]
    PowerShell,
}

impl From<ShellArg> for Shell {
    fn from(shell: ShellArg) -> Self {
        match shell {
            ShellArg::Bash => Self::Bash,
            ShellArg::Zsh => Self::Zsh,
            ShellArg::Fish => Self::Fish,
            ShellArg::Elvish => Self::Elvish,
            ShellArg::PowerShell => Self::PowerShell,
        }
    }
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages; it is created
    pub folder: PathBuf,
}

/// Prints the script that completes the commands and options of `program`.
pub fn completions(global: &Global, args: &CompletionsArgs, mut program: Command) {
    let mut script = Vec::new();
    clap_complete::generate(Shell::from(args.shell), &mut program, "nook", &mut script);
    let script = String::from_utf8_lossy(&script);
    match global.json {
        true => out::json(&json!({ "script": script })),
        false => out::bytes(script.as_bytes()),
    }
}

/// Writes a page for each command of `program`.
pub fn man(global: &Global, args: &ManArgs, program: Command) -> Result<()> {
    RealIo.create_dir_all(&args.folder)?;
    let pages = write_pages(&args.folder, program)?;
    match global.json {
        true => out::json(&json!({ "folder": args.folder, "pages": pages })),
        false => out::line(&format!("{} pages in {}", pages.len(), args.folder.display())),
    }
    Ok(())
}

/// Returns the names of the pages in order.
fn write_pages(folder: &Path, program: Command) -> Result<Vec<String>> {
    let unwritten = |error| IoError::new("write", folder, error);
    clap_mangen::generate_to(program, folder).map_err(unwritten)?;
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    let names = RealIo.list(folder)?.iter().filter_map(name).collect::<Vec<_>>();
    let is_page = |name: &String| name.starts_with("nook") && name.ends_with(".1");
    let mut pages: Vec<String> = names.into_iter().filter(is_page).collect();
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let folder = std::env::temp_dir().join(format!("nook-man-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("other.1"), "").unwrap();
        let run = Command::new("run").about("Answer a prompt").arg(clap::Arg::new("max").long("max-tokens"));
        let pages = write_pages(&folder, Command::new("nook").subcommand(run)).unwrap();
        assert!(
            pages.contains(&"nook.1".to_owned()) && pages.contains(&"nook-run.1".to_owned()),
            "{pages:?}"
        );
        assert!(!pages.contains(&"other.1".to_owned()));
        let page = std::fs::read_to_string(folder.join("nook-run.1")).unwrap();
        assert!(page.contains("Answer a prompt") && page.contains(r"\-\-max\-tokens"), "{page}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

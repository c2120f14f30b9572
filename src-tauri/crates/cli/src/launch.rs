//! `nook launch`: starts a coding agent whose model is one of this computer.
//!
//! The agent gets a separate key, which permits answers and nothing else and is revoked when the agent ends.

mod agent;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use app::{ApiKeyArgs, App, KeyScope, ServedModel};
use clap::Args;
use contract::types::ServerState;
use contract::{Error, ErrorKind, Result};
use io::OperatingSystem;
use serde_json::{Map, json};

use crate::args::Global;
use crate::{interrupt, local_http, out};
use agent::{Agent, AgentServer, LaunchPlan};

#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// The agent to start
    #[arg(value_enum)]
    pub agent: Agent,
    /// Library id of the model that answers [default: the default model from the settings]
    #[arg(long)]
    pub model: Option<String>,
    /// Print the command and its environment instead of starting it
    #[arg(long)]
    pub dry_run: bool,
    /// Arguments for the agent, after --
    #[arg(last = true, value_name = "ARGS")]
    pub rest: Vec<OsString>,
}

/// Exit code of an agent that a signal ended.
const EXIT_SIGNALLED: i32 = 1;

pub fn launch(global: &Global, args: &LaunchArgs) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = find_program(args.agent.program(), &path);
    let status = {
        let app = App::open(global.app_config_apart()?)?;
        let model = app.model_for_request(args.model.as_deref())?;
        if args.dry_run {
            print_plan(global, &plan(args, &model, "http://127.0.0.1:PORT", "KEY"));
            return Ok(());
        }
        // Before anything is started or added.
        let program = program.ok_or_else(|| no_program(args.agent))?;
        let running = running_url(&app)?;
        let own = match &running {
            Some(_) => None,
            None => Some(server::serve(app.clone(), server::Options { port: 0, ..Default::default() })?),
        };
        let url = running.or_else(|| own.as_ref().map(|server| server.url.clone())).unwrap_or_default();
        run_agent(&app, args, &model, &url, &program)?
    };
    // The application and its server have ended here.
    std::process::exit(status.code().unwrap_or(EXIT_SIGNALLED));
}

fn plan(args: &LaunchArgs, model: &ServedModel, url: &str, key: &str) -> LaunchPlan {
    let server = AgentServer { url, key, model: &model.id, context: model.context };
    args.agent.plan(&server, &args.rest)
}

/// The server of this data folder that listens on this computer's own address already.
fn running_url(app: &App) -> Result<Option<String>> {
    let ServerState::Running { ports } = app.server_state()? else { return Ok(None) };
    let answers = |port: &u16| local_http::get_json(*port, "/health", None).is_ok();
    Ok(ports.into_iter().find(answers).map(|port| format!("http://127.0.0.1:{port}")))
}

/// Runs the agent with a separate key.
fn run_agent(
    app: &App,
    args: &LaunchArgs,
    model: &ServedModel,
    url: &str,
    program: &PathBuf,
) -> Result<ExitStatus> {
    let name = format!("{} (nook launch {})", args.agent.program(), std::process::id());
    let key = app.api_key_add(ApiKeyArgs { name, scopes: vec![KeyScope::Chat], ..ApiKeyArgs::default() })?;
    let plan = plan(args, model, url, &key.key);
    let mut command = Command::new(program);
    command.args(&plan.args).envs(plan.environment.iter().map(|(name, value)| (name, value)));
    plan.removed.iter().for_each(|name| _ = command.env_remove(name));
    out::log(&format!("{} answers at {url}", model.id));
    // Ctrl+C is the agent's.
    interrupt::ignore();
    let ended = command.status();
    app.api_key_revoke(&key.info.id)?;
    ended.map_err(|error| {
        Error::input(
            "launch.not_started",
            format!("{} could not be started: {error}.", program.display()),
            "Check that the file may be run.",
        )
    })
}

fn print_plan(global: &Global, plan: &LaunchPlan) {
    let words: Vec<String> = plan.args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if global.json {
        let environment: Map<String, serde_json::Value> =
            plan.environment.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        out::json(&json!({
            "program": plan.program, "args": words, "env": environment, "unset": plan.removed,
        }));
        return;
    }
    plan.environment.iter().for_each(|(name, value)| out::line(&format!("{name}={value}")));
    plan.removed.iter().for_each(|name| out::line(&format!("unset {name}")));
    out::line(&std::iter::once(plan.program.to_owned()).chain(words).collect::<Vec<_>>().join(" "));
}

/// The program of this name in the folders of `path`.
fn find_program(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let names = program_names(OperatingSystem::HERE, name);
    let in_folder =
        |folder: PathBuf| names.iter().map(|name| folder.join(name)).find(|file| is_program(file));
    std::env::split_paths(path).find_map(in_folder)
}

/// File names of a program, the preferred one first. Windows runs by the ending: npm installs `NAME.cmd`.
fn program_names(system: OperatingSystem, name: &str) -> Vec<String> {
    match system {
        OperatingSystem::Windows => [".exe", ".cmd", ".bat"].map(|ending| format!("{name}{ending}")).into(),
        OperatingSystem::Linux | OperatingSystem::MacOs => vec![name.to_owned()],
    }
}

#[cfg(unix)]
fn is_program(file: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &std::path::Path) -> bool {
    file.is_file()
}

fn no_program(agent: Agent) -> Error {
    Error::new(
        ErrorKind::NotFound,
        "launch.no_program",
        format!("The program `{}` is in no folder of PATH.", agent.program()),
        format!("Install it, for example with `{}`.", agent.installation()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_finds_a_program_by_its_ending() {
        use OperatingSystem::{Linux, MacOs, Windows};
        assert_eq!(program_names(Windows, "claude"), ["claude.exe", "claude.cmd", "claude.bat"]);
        for system in [Linux, MacOs] {
            assert_eq!(program_names(system, "claude"), ["claude"], "{system:?}");
        }
    }
}

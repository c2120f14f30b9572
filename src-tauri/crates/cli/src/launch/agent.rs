//! What each agent needs to use this server: arguments and environment variables.

use std::ffi::OsString;

use clap::ValueEnum;
use serde_json::json;

/// An agent that can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    /// Claude Code, over the Messages API
    Claude,
    /// Codex CLI, over the Responses API
    Codex,
    /// OpenCode, over the Chat Completions API
    #[value(name = "opencode")]
    OpenCode,
}

/// Where the agent finds its model.
#[derive(Debug, Clone, Copy)]
pub struct AgentServer<'a> {
    /// Without a path.
    pub url: &'a str,
    pub key: &'a str,
    /// Library id.
    pub model: &'a str,
    /// Tokens, where they are known.
    pub context: Option<u32>,
}

/// A command to run.
#[derive(Debug, PartialEq)]
pub struct LaunchPlan {
    pub program: &'static str,
    pub args: Vec<OsString>,
    pub environment: Vec<(&'static str, String)>,
    /// Variables that would lead the agent elsewhere.
    pub removed: &'static [&'static str],
}

/// Carries the key of agents whose configuration names a variable.
const KEY_VARIABLE: &str = "INGLENOOK_AGENT_KEY";

/// Name of this server in an agent's configuration.
const PROVIDER: &str = "inglenook";

impl Agent {
    /// File name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }

    /// A command that installs it.
    pub fn installation(self) -> &'static str {
        match self {
            Self::Claude => "npm install -g @anthropic-ai/claude-code",
            Self::Codex => "npm install -g @openai/codex",
            Self::OpenCode => "npm install -g opencode-ai",
        }
    }

    /// The command that runs it with a model of this server. `rest`: the user's arguments, which come last.
    pub fn plan(self, server: &AgentServer, rest: &[OsString]) -> LaunchPlan {
        let (args, environment, removed): (Vec<String>, _, &'static [&'static str]) = match self {
            Self::Claude => (Vec::new(), claude_environment(server), &["ANTHROPIC_API_KEY"]),
            Self::Codex => (codex_args(server), vec![(KEY_VARIABLE, server.key.to_owned())], &[]),
            Self::OpenCode => (Vec::new(), opencode_environment(server), &[]),
        };
        let args = args.into_iter().map(OsString::from).chain(rest.iter().cloned()).collect();
        LaunchPlan { program: self.program(), args, environment, removed }
    }
}

/// Claude Code reads its server, its key and its models from variables. It uses a smaller model beside the chosen one:
/// both are the same here, since two would take turns in memory.
fn claude_environment(server: &AgentServer) -> Vec<(&'static str, String)> {
    let model = || server.model.to_owned();
    vec![
        ("ANTHROPIC_BASE_URL", server.url.to_owned()),
        ("ANTHROPIC_AUTH_TOKEN", server.key.to_owned()),
        ("ANTHROPIC_MODEL", model()),
        ("ANTHROPIC_DEFAULT_OPUS_MODEL", model()),
        ("ANTHROPIC_DEFAULT_SONNET_MODEL", model()),
        ("ANTHROPIC_DEFAULT_HAIKU_MODEL", model()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
    ]
}

/// Codex takes values of its configuration file, in TOML, on the command line.
fn codex_args(server: &AgentServer) -> Vec<String> {
    let text = |text: &str| json!(text).to_string();
    let mut values = vec![
        ("model".to_owned(), text(server.model)),
        ("model_provider".to_owned(), text(PROVIDER)),
        (format!("model_providers.{PROVIDER}.name"), text("Inglenook")),
        (format!("model_providers.{PROVIDER}.base_url"), text(&format!("{}/v1", server.url))),
        (format!("model_providers.{PROVIDER}.env_key"), text(KEY_VARIABLE)),
        (format!("model_providers.{PROVIDER}.wire_api"), text("responses")),
    ];
    // Tools that OpenAI's own servers run, or that come in groups: this server takes functions alone.
    values.push(("web_search".to_owned(), text("disabled")));
    values.push(("features.multi_agent".to_owned(), "false".to_owned()));
    if let Some(context) = server.context {
        values.push(("model_context_window".to_owned(), context.to_string()));
    }
    values.into_iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]).collect()
}

/// OpenCode merges a configuration from a variable over that of its files.
fn opencode_environment(server: &AgentServer) -> Vec<(&'static str, String)> {
    let mut model = json!({ "name": server.model });
    if let Some(context) = server.context {
        model["limit"] = json!({ "context": context, "output": context });
    }
    let name = format!("{PROVIDER}/{}", server.model);
    let configuration = json!({
        "model": name,
        "small_model": name,
        "provider": {
            PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Inglenook",
                "options": { "baseURL": format!("{}/v1", server.url), "apiKey": format!("{{env:{KEY_VARIABLE}}}") },
                "models": { server.model: model },
            },
        },
    });
    vec![(KEY_VARIABLE, server.key.to_owned()), ("OPENCODE_CONFIG_CONTENT", configuration.to_string())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: AgentServer =
        AgentServer { url: "http://127.0.0.1:1", key: "secret", model: "a\"b", context: Some(4096) };

    fn variable(plan: &LaunchPlan, name: &str) -> String {
        plan.environment.iter().find(|(it, _)| *it == name).unwrap().1.clone()
    }

    #[test]
    fn agents_find_the_server_the_key_and_the_model() {
        let rest = [OsString::from("-p"), OsString::from("hi")];
        let claude = Agent::Claude.plan(&SERVER, &rest);
        assert_eq!((claude.program, claude.args.as_slice()), ("claude", &rest[..]));
        assert_eq!(variable(&claude, "ANTHROPIC_BASE_URL"), "http://127.0.0.1:1");
        assert_eq!(variable(&claude, "ANTHROPIC_AUTH_TOKEN"), "secret");
        assert_eq!(claude.removed, ["ANTHROPIC_API_KEY"]);

        let codex = Agent::Codex.plan(&SERVER, &rest);
        let args: Vec<&str> = codex.args.iter().map(|arg| arg.to_str().unwrap()).collect();
        assert!(
            args.contains(&"model=\"a\\\"b\"") && args.contains(&"model_context_window=4096"),
            "{args:?}"
        );
        assert!(args.contains(&"model_providers.inglenook.base_url=\"http://127.0.0.1:1/v1\""), "{args:?}");
        assert!(args.contains(&"web_search=\"disabled\"") && args.contains(&"features.multi_agent=false"));
        assert_eq!(args[args.len() - 2..], ["-p", "hi"]);
        assert!(args.iter().all(|arg| !arg.contains("secret")), "arguments are visible to other users");

        let opencode = Agent::OpenCode.plan(&SERVER, &[]);
        let configuration: serde_json::Value =
            serde_json::from_str(&variable(&opencode, "OPENCODE_CONFIG_CONTENT")).unwrap();
        assert_eq!(configuration["model"], "inglenook/a\"b");
        let provider = &configuration["provider"]["inglenook"];
        assert_eq!(provider["options"]["baseURL"], "http://127.0.0.1:1/v1");
        assert_eq!(provider["models"]["a\"b"]["limit"]["context"], 4096);
        assert_eq!(provider["options"]["apiKey"], format!("{{env:{KEY_VARIABLE}}}"));
    }
}

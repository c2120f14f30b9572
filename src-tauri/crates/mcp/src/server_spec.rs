//! How a tool server is reached, as its user wrote it.

use contract::types::ToolServerSpec;
use contract::{Error, Result};

use crate::ServerUrl;

/// Checks how a server is reached.
///
/// Errors: `tools.spec`, `tools.address`.
pub fn check(spec: &mut ToolServerSpec) -> Result<()> {
    let tidy = |text: &mut Option<String>| {
        *text = text.take().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    };
    tidy(&mut spec.command);
    tidy(&mut spec.url);
    tidy(&mut spec.cwd);
    let wrong = |message: &str, remedy: &str| Err(Error::input("tools.spec", message, remedy));
    match (&spec.command, &spec.url) {
        (None, None) => wrong(
            "This server has neither a command nor a URL.",
            "Enter the command that starts it, or its URL.",
        ),
        (Some(_), Some(_)) => wrong("This server has both a command and a URL.", "Keep only one of them."),
        (Some(_), None) if !spec.headers.is_empty() => wrong(
            "A server started by a command can't have headers.",
            "Use environment variables (env) instead.",
        ),
        (None, Some(_)) if !spec.env.is_empty() || !spec.args.is_empty() || spec.cwd.is_some() => {
            wrong("A server with a URL can't have env, args or a working folder.", "Use headers instead.")
        }
        (None, Some(url)) => ServerUrl::parse(url).map(drop),
        (Some(_), None) => match spec.env.keys().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
            true => wrong("An environment variable has no name.", "Use a name such as API_KEY."),
            false => Ok(()),
        },
    }
}

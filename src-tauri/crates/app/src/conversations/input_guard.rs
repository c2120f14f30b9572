//! What the user wants refused before it is sent, and what is detected in texts from tools.

use contract::protocol::Prompt;
use contract::{Error, Finding, Result};
use documents::prompt_injection::{check, patterns, reveal_hidden, scan};
use regex::Regex;

use crate::App;
use crate::settings::TypedSettings;

/// Findings in a sentence for the user.
fn finding_notice(whose: &str, findings: &[Finding]) -> Error {
    let message =
        format!("{whose} contains {}.", findings.iter().map(Finding::told).collect::<Vec<_>>().join("; "));
    Error::input("guard.marked", message, "Check the source before you rely on the answer.")
}

impl App {
    fn guard_patterns(&self) -> Result<Vec<Regex>> {
        patterns(&self.ctx().settings.refusal_patterns()?)
    }

    /// Error: the user wants such texts refused.
    pub(crate) fn guard_text(&self, text: &str) -> Result<()> {
        check(&self.guard_patterns()?, [text])
    }

    /// Refuses what the user wants refused, and makes visible what hides in texts that tools brought. Returns what to
    /// tell of them.
    pub(crate) fn guard_prompt(&self, prompt: &mut Prompt) -> Result<Vec<Error>> {
        let patterns = self.guard_patterns()?;
        let marks = self.ctx().settings.guard_marks()?;
        let messages = match prompt {
            Prompt::Raw(text) => return check(&patterns, [text.as_str()]).map(|()| Vec::new()),
            Prompt::Ids(_) => return Ok(Vec::new()),
            Prompt::Chat(messages) => messages,
        };
        check(&patterns, messages.iter().filter(|it| it.role == "user").map(|it| it.content.as_str()))?;
        let mut notices = Vec::new();
        for message in messages.iter_mut().filter(|it| marks && it.role == "tool") {
            let findings = scan(&message.content);
            if findings.is_empty() {
                continue;
            }
            let whose = message.name.as_ref().map_or("A tool result".into(), |name| {
                format!("The result of the tool {}", reveal_hidden(name))
            });
            notices.push(finding_notice(&whose, &findings));
            message.content = reveal_hidden(&message.content);
        }
        Ok(notices)
    }
}

//! Capabilities of a model according to its chat template: tools and reasoning.
//!
//! Read from the template's text alone. What no template states is not claimed.

use serde::{Deserialize, Serialize};
use weights::WeightFile;

use crate::error::Result;
use crate::reply::ReplyFormat;
use crate::template::ChatTemplate;

/// Capabilities of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCapabilities {
    /// Whether its template accepts tools.
    pub tools: bool,
    /// How reasoning is switched.
    pub thinking: Thinking,
}

/// Whether a model reasons before it answers, and how that is controlled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Thinking {
    /// No reasoning in its template.
    #[default]
    Never,
    /// Its template writes reasoning and has no switch.
    Always,
    /// On or off by `enable_thinking`.
    Switched,
    /// Graded by `reasoning_effort`.
    Graded,
}

impl ModelCapabilities {
    /// Reads the capabilities of a file.
    ///
    /// Errors: a template that is not text or does not compile.
    pub fn of(file: &WeightFile) -> Result<Self> {
        Ok(ChatTemplate::from_weights(file)?
            .map(|template| Self::from_template(&template))
            .unwrap_or_default())
    }

    /// Derives the capabilities from the variables that a template reads.
    pub fn from_template(template: &ChatTemplate) -> Self {
        let variables = template.variables();
        // SmolLM3's template has its own name for them.
        let tools = ["tools", "xml_tools"].iter().any(|name| variables.contains(*name));
        let thinking = if variables.contains("reasoning_effort") {
            Thinking::Graded
        } else if variables.contains("enable_thinking") {
            Thinking::Switched
        } else if ReplyFormat::reasons_in(template.source()) {
            Thinking::Always
        } else {
            Thinking::Never
        };
        Self { tools, thinking }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_determine_capabilities() {
        use Thinking::{Always, Graded, Never, Switched};
        let cases = [
            ("{{ messages[0].content }}", false, Never),
            ("You have no tools. {{ messages }}", false, Never),
            ("{% for tool in tools %}{{ tool.name }}{% endfor %}", true, Never),
            ("{% if not tools is defined %}{% set tools = none %}{% endif %}", true, Never),
            ("{% if xml_tools %}{{ xml_tools }}{% endif %}", true, Never),
            ("{% set has_tools = false %}{{ builtin_tools }}{{ has_tools }}", false, Never),
            ("{{ messages }}<think>\n", false, Always),
            ("{{ messages[0].content.split('</think>')[-1] }}", false, Never),
            ("{% if enable_thinking is false %}<think></think>{% endif %}", false, Switched),
            ("{# enable_thinking #}{{ messages }}", false, Never),
            (
                "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'low' %}{% endif %}",
                false,
                Graded,
            ),
            ("{{ reasoning_effort }}{{ enable_thinking }}{{ tools }}", true, Graded),
        ];
        for (source, tools, thinking) in cases {
            let template = ChatTemplate::from_source(source).unwrap();
            assert_eq!(
                ModelCapabilities::from_template(&template),
                ModelCapabilities { tools, thinking },
                "{source}"
            );
        }
    }
}

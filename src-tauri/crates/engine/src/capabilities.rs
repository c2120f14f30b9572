//! What a model can do beside answering, as its chat template tells: whether it can be told of tools, and whether it
//! thinks. Read off the template's text alone: no weight, no vocabulary. What no template says is not claimed.

use serde::{Deserialize, Serialize};
use weights::WeightFile;

use crate::error::Result;
use crate::reply::ReplyFormat;
use crate::template::ChatTemplate;

/// Of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCapabilities {
    /// Its template has a place for tools.
    pub tools: bool,
    pub thinking: Thinking,
}

/// Whether a model thinks before it answers, and what it can be told of that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Thinking {
    /// As far as its template says.
    #[default]
    Never,
    /// Its template writes reasoning, and can't be told whether.
    Always,
    /// By `enable_thinking`: on or off.
    Switched,
    /// By `reasoning_effort`: how long.
    Graded,
}

impl ModelCapabilities {
    /// Errors: the template is no text, or none that can be read.
    pub fn of(file: &WeightFile) -> Result<Self> {
        Ok(ChatTemplate::from_weights(file)?.map(|template| Self::told_by(&template)).unwrap_or_default())
    }

    pub fn told_by(template: &ChatTemplate) -> Self {
        let asked = template.variables();
        // SmolLM3's template has a name of its own for them.
        let tools = ["tools", "xml_tools"].iter().any(|name| asked.contains(*name));
        let thinking = if asked.contains("reasoning_effort") {
            Thinking::Graded
        } else if asked.contains("enable_thinking") {
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
    fn a_template_tells() {
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
                ModelCapabilities::told_by(&template),
                ModelCapabilities { tools, thinking },
                "{source}"
            );
        }
    }
}

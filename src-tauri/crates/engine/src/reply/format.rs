//! Reply markup of a model, derived from its chat template and vocabulary, never from its name.

use std::ops::Range;

use super::calls::DEEPSEEK_PREFIX;
use super::styles::{CallStyle, STYLES};
use super::{marked, recipients};
use crate::TokenId;
use crate::budget::ReasoningBudget;
use crate::constraint::ReasoningGate;
use crate::tokenizer::{Special, Tokenizer};

/// Opening and closing tag, as they stand in the marked text of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagPair {
    pub open: String,
    /// Empty: ends with the reply or at the next opening tag.
    pub close: String,
    /// Both as plain text.
    pub open_text: String,
    pub close_text: String,
    /// Whether the opening tag is part of the call itself.
    pub keeps_open: bool,
    /// Whether it opens with a token, not with text.
    pub is_token: bool,
}

/// How a model writes its replies.
#[derive(Debug, Clone, Default)]
pub struct ReplyFormat {
    messages: Option<MessageDialect>,
    /// Whether parts are for recipients, named in lines before them.
    pub(super) has_recipients: bool,
    pub(super) reasoning: Vec<TagPair>,
    pub(super) calls: Vec<TagPair>,
    /// Separators without content.
    pub(super) fences: Vec<String>,
    /// Whether a whole reply that is a JSON object with name and parameters is a call.
    pub(super) bare_calls: bool,
    /// Whether the reply has to be a call: nothing of it but reasoning is text.
    pub(super) is_forced: bool,
    /// Sorted.
    markup_tokens: Vec<TokenId>,
    /// Their texts. Other control tokens are meaningless here.
    pub(super) mark_texts: Vec<String>,
}

/// Reasoning tags. `true`: recognized as text if the vocabulary has no token for them.
const REASONING: &[(&str, &str, bool)] = &[
    ("<think>", "</think>", true),
    ("<seed:think>", "</seed:think>", true),
    ("[THINK]", "[/THINK]", true),
    ("<|channel>thought\n", "<channel|>", false),
    ("<|START_THINKING|>", "<|END_THINKING|>", false),
    ("<|inner_prefix|>", "<|inner_suffix|>", false),
    ("<mm:think>", "</mm:think>", false),
    ("<thinking>", "</thinking>", false),
];

/// Call tags: opening, closing, and whether the opening tag is part of the call.
const CALLS: &[(&str, &str, bool)] = &[
    ("<tool_call>", "</tool_call>", false),
    ("<|tool_call|>", "<|/tool_call|>", false),
    ("<|tool_call_start|>", "<|tool_call_end|>", false),
    ("<|tool_call>", "<tool_call|>", false),
    ("[TOOL_CALLS]", "", false),
    ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", false),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", false),
    ("<|START_ACTION|>", "<|END_ACTION|>", false),
    ("<|tools_prefix|>", "<|tools_suffix|>", false),
    ("<TOOLCALL>", "</TOOLCALL>", false),
    ("<tool_calls>", "</tool_calls>", false),
    ("<minimax:tool_call>", "</minimax:tool_call>", false),
    ("<seed:tool_call>", "</seed:tool_call>", false),
    ("<|function_call|>", "", false),
    ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", false),
    ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", false),
    ("<function=", "</function>", true),
    ("<function name=", "</function>", true),
    ("<code>", "</code>", false),
    ("<|python_tag|>", "", false),
    ("```tool_code\n", "```", false),
];

/// Tokens inside a call that are part of its notation.
const INNER: &[&str] = &[
    "<|\"|>",
    "[ARGS]",
    "[CALL_ID]",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "<|tool_call_begin|>",
    "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
];

/// Formats in which a reply is a sequence of messages.
#[derive(Debug, Clone, Copy)]
enum MessageDialect {
    Harmony,
    Muse,
}

impl MessageDialect {
    /// Returns the tokens that identify the format.
    fn tokens(self) -> &'static [&'static str] {
        match self {
            Self::Harmony => &["<|channel|>", "<|message|>", "<|start|>", "<|return|>"],
            Self::Muse => &["<|message|>", "<|start|>", "<|eom|>", "<|eot|>"],
        }
    }

    /// Returns a text that every template of the format contains, where the tokens are not enough.
    fn sign(self) -> &'static str {
        match self {
            Self::Harmony => "",
            Self::Muse => "<atem:function_calls>",
        }
    }

    /// Returns what opens the answer, behind any reasoning.
    fn answer_opening(self) -> &'static str {
        match self {
            Self::Harmony => "<|channel|>final<|message|>",
            Self::Muse => " to=user<|message|>",
        }
    }

    /// Returns how reasoning opens, how it closes, and what closes it and opens the answer.
    fn thinking(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Harmony => (
                "<|channel|>analysis<|message|>",
                "<|end|>",
                "<|end|><|start|>assistant<|channel|>final<|message|>",
            ),
            Self::Muse => (" to=self<|message|>", "<|eom|>", "<|eom|><|start|>assistant to=user<|message|>"),
        }
    }
}

/// Llama's template explains calls to the model with this text.
const BARE: &str = "{\"name\": function name";

/// Gemma 2 and 3 have no call tags; their models are trained to write a code block.
const GEMMA_TURN: &str = "<start_of_turn>";

impl ReplyFormat {
    /// Derives the format. `template` is the source of the chat template in use, or empty.
    pub fn of(template: &str, tokenizer: &Tokenizer) -> Self {
        let vocabulary = MarkupVocabulary { tokenizer };
        let is_it = |it: &MessageDialect| {
            template.contains(it.sign()) && it.tokens().iter().all(|text| vocabulary.is_token(text))
        };
        if let Some(messages) = [MessageDialect::Harmony, MessageDialect::Muse].into_iter().find(is_it) {
            let markup_tokens = vocabulary.tokens(messages.tokens().iter().copied());
            return Self { messages: Some(messages), markup_tokens, ..Self::default() };
        }
        let is_own =
            |style: &&CallStyle| template.contains(style.sign) || vocabulary.has_token(style.calls.0);
        let styles: Vec<&CallStyle> = STYLES.iter().copied().filter(is_own).collect();
        let own = styles.iter().filter_map(|style| style.reasoning);
        let reasoning = REASONING
            .iter()
            .filter(|(open, _, as_text)| {
                *as_text || template.contains(open.trim_end()) || vocabulary.has_token(open)
            })
            .map(|(open, close, _)| (*open, *close))
            .chain(own)
            .map(|(open, close)| vocabulary.tag(open, close, false))
            .collect();
        let in_template = |text: &str| match text {
            "```tool_code\n" => template.contains(GEMMA_TURN),
            // Its template assembles these tags from pieces.
            text if text.contains(DEEPSEEK_PREFIX) => template.contains(DEEPSEEK_PREFIX),
            text => template.contains(text),
        };
        let own = styles.iter().map(|style| vocabulary.tag(style.calls.0, style.calls.1, false));
        let calls = CALLS
            .iter()
            .filter(|(open, _, _)| in_template(open) || vocabulary.has_token(open))
            .map(|(open, close, keeps_open)| {
                let has_end =
                    in_template(close) || vocabulary.has_token(close) || !vocabulary.has_token(open);
                vocabulary.tag(open, if has_end { close } else { "" }, *keeps_open)
            })
            .chain(own)
            .collect();
        let literals = REASONING.iter().chain(CALLS).flat_map(|(open, close, _)| [*open, *close]);
        let own = styles.iter().flat_map(|style| style.literals());
        let markup_tokens = vocabulary.tokens(literals.chain(INNER.iter().copied()).chain(own));
        let text = |id: &TokenId| tokenizer.token_text(*id).unwrap_or_default().to_owned();
        let mark_texts = markup_tokens.iter().map(text).collect();
        Self {
            messages: None,
            has_recipients: template.contains(recipients::SIGN),
            reasoning,
            calls,
            fences: styles.iter().flat_map(|style| style.fences).map(|it| vocabulary.marked(it)).collect(),
            bare_calls: template.contains(BARE),
            is_forced: false,
            markup_tokens,
            mark_texts,
        }
    }

    /// Returns whether a template contains reasoning tags.
    pub(crate) fn reasons_in(template: &str) -> bool {
        let own = STYLES.iter().filter(|style| template.contains(style.sign));
        let own = own.filter_map(|style| style.reasoning).map(|(open, _)| open);
        REASONING.iter().map(|(open, _, _)| *open).chain(own).any(|open| template.contains(open.trim_end()))
    }

    /// Returns whether replies consist of several messages with headers.
    pub fn has_messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Returns the vocabulary's reply markup tokens, whatever their kind. Sorted.
    pub fn markup_tokens(&self) -> &[TokenId] {
        &self.markup_tokens
    }

    /// Returns whether replies are Harmony's messages.
    pub(super) fn is_harmony(&self) -> bool {
        matches!(self.messages, Some(MessageDialect::Harmony))
    }

    /// Reads a reply that has to be a call: also one that is nothing but a JSON object with name and parameters.
    pub fn with_forced_calls(self) -> Self {
        Self { bare_calls: true, is_forced: true, ..self }
    }

    /// Returns what reasoning comes before a constrained text.
    pub fn reasoning_gate(&self, template: &str, prompt: &str, tokenizer: &Tokenizer) -> ReasoningGate {
        if let Some(answer) = self.messages.map(MessageDialect::answer_opening) {
            return match prompt.ends_with(answer) {
                true => ReasoningGate::none(),
                false => ReasoningGate::inside(answer),
            };
        }
        if let Some(tag) = self.reasoning.iter().find(|tag| opens(prompt, tag)) {
            return ReasoningGate::inside(&tag.close_text);
        }
        let is_used = |tag: &&TagPair| tag.is_token && template.contains(tag.open_text.trim_end());
        let is_past = |tag: &TagPair| prompt.trim_end().ends_with(tag.close_text.trim());
        let tag = self.reasoning.iter().find(is_used).filter(|tag| !is_past(tag));
        match tag.and_then(|tag| Some((tokenizer.markup_token(tag.open_text.trim_end())?, tag))) {
            Some((open, tag)) => ReasoningGate::optional(open, &tag.close_text),
            None => ReasoningGate::none(),
        }
    }

    /// Returns a budget of `max_tokens` for reasoning. `None` if the model is not known to reason.
    pub fn budget(
        &self,
        max_tokens: usize,
        template: &str,
        prompt: &str,
        tokenizer: &Tokenizer,
    ) -> Option<ReasoningBudget> {
        let encode = |text: &str| tokenizer.encode(text, Special::Parse);
        if let Some((open, close, ending)) = self.messages.map(MessageDialect::thinking) {
            return Some(ReasoningBudget {
                max_tokens,
                open: open.into(),
                close: close.into(),
                begins_inside: prompt.ends_with(open),
                ending: encode(ending),
            });
        }
        let opened = self.reasoning.iter().find(|tag| opens(prompt, tag));
        let used =
            || self.reasoning.iter().find(|tag| tag.is_token || template.contains(tag.open_text.trim_end()));
        let tag = opened.or_else(used)?;
        Some(ReasoningBudget {
            max_tokens,
            open: tag.open_text.clone(),
            close: tag.close_text.clone(),
            begins_inside: opened.is_some(),
            ending: encode(&format!("\n{}\n\n", tag.close_text)),
        })
    }
}

/// Returns whether the prompt ends inside this block.
pub fn opens(prompt: &str, tag: &TagPair) -> bool {
    prompt.trim_end().ends_with(tag.open_text.trim_end())
}

struct MarkupVocabulary<'a> {
    tokenizer: &'a Tokenizer,
}

impl MarkupVocabulary<'_> {
    fn is_token(&self, text: &str) -> bool {
        self.tokenizer.markup_token(text).is_some()
    }

    /// Returns whether the literal contains a token of the vocabulary.
    fn has_token(&self, literal: &str) -> bool {
        !literal.is_empty() && marked::has_mark(&self.marked(literal))
    }

    fn tag(&self, open: &str, close: &str, keeps_open: bool) -> TagPair {
        let marked = self.marked(open);
        TagPair {
            is_token: marked::has_mark(&marked),
            open: marked,
            close: self.marked(close),
            open_text: open.into(),
            close_text: close.into(),
            keeps_open,
        }
    }

    /// Returns the literal with its tokens marked.
    fn marked(&self, literal: &str) -> String {
        let mut marked = String::new();
        let mut from = 0;
        for (range, id) in self.tokens_in(literal) {
            marked.push_str(&literal[from..range.start]);
            marked.push_str(&marked::enclose(&literal[range.clone()], self.tokenizer.is_control(id)));
            from = range.end;
        }
        marked + &literal[from..]
    }

    /// Returns the tokens of a literal: the literal itself, or those inside it.
    fn tokens_in(&self, literal: &str) -> Vec<(Range<usize>, TokenId)> {
        match self.tokenizer.markup_token(literal) {
            Some(id) if !literal.is_empty() => vec![(0..literal.len(), id)],
            _ => self.tokenizer.marks_in(literal),
        }
    }

    fn tokens<'t>(&self, literals: impl Iterator<Item = &'t str>) -> Vec<TokenId> {
        let mut ids: Vec<TokenId> =
            literals.flat_map(|literal| self.tokens_in(literal)).map(|(_, id)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

//! Renders messages to prompt ids: by the model's chat template, a named one instead, or its
//! family's.

use engine::arch::built_in_template;
use engine::budget::ReasoningBudget;
use engine::constraint::ReasoningGate;
use engine::reply::ReplyFormat;
use engine::template::{ChatTemplate, RenderInput, RenderedPrompt, format_time};
use engine::tokenizer::{IncrementalEncoder, KnownIds, Special, Tokenizer};
use engine::{Interrupt, TokenId};
use serde_json::{Map, Value, json};

use crate::answer_prefix;
use crate::chat_template_input as messages;
use crate::image_runs::{ImageForm, ImageInput, ImageRun};
use crate::images::not_seen;
use contract::protocol::{ChatOptions, Prompt, PromptImage, PromptMessage};
use contract::{Error, Result};

/// Text of more bytes per token of the context than this may be far too long; prose has about four.
const MAX_BYTES_PER_TOKEN: usize = 16;
/// Bytes that are encoded at once for an estimate; each seam adds a token at most.
const ESTIMATE_WINDOW: usize = 4096;
/// Variables with today's date, as in llama.cpp. Llama 3's templates read the first, Firefunction's the second. No time of
/// day: the beginning of a prompt stays the same all day.
const DATE_VARIABLES: [(&str, &str); 2] = [("date_string", "%d %b %Y"), ("datetime", "%b %d %Y")];

/// A prompt ready for the model.
pub struct PreparedPrompt {
    pub ids: Vec<TokenId>,
    /// The text they stand for: tells whether the answer begins inside a reasoning block.
    pub text: String,
    pub format: ReplyFormat,
    pub budget: Option<ReasoningBudget>,
    /// What reasoning comes before a constrained text.
    pub gate: ReasoningGate,
    /// What the user should know though nothing failed.
    pub notices: Vec<Error>,
}

/// What belongs to the model.
pub struct Vocabulary<'a> {
    pub tokenizer: &'a Tokenizer,
    /// An error: the file's template doesn't compile.
    pub template: engine::Result<Option<&'a ChatTemplate>>,
    pub architecture: &'a str,
    pub fingerprint: &'a str,
    /// `2026-01-15T12:00:00`.
    pub now: &'a str,
    /// Ends a rendering early, with `template.cancelled`.
    pub interrupt: Option<&'a Interrupt>,
    /// None: the model can't see images. An error: why it can't, though it has a vision tower.
    pub images: Result<Option<ImageInput<'a>>>,
    /// What the model is called.
    pub model: &'a str,
}

/// Checks that a chat template compiles.
pub fn check_template(source: &str) -> Result<()> {
    ChatTemplate::from_source(source)?;
    Ok(())
}

/// A template to use.
enum ChosenTemplate<'a> {
    /// The model's.
    Own(&'a ChatTemplate),
    /// One that was named instead.
    Named(ChatTemplate),
    /// The family's: it leaves the BOS to us.
    Family(ChatTemplate),
}

impl ChosenTemplate<'_> {
    fn template(&self) -> &ChatTemplate {
        match self {
            Self::Own(template) => template,
            Self::Named(template) | Self::Family(template) => template,
        }
    }
}

/// A rendering and the template that made it.
struct ReplyPiece<'a> {
    chosen: ChosenTemplate<'a>,
    rendered: RenderedPrompt,
    /// Stretches that stand for images.
    runs: Vec<ImageRun>,
    notices: Vec<Error>,
}

impl<'a> Vocabulary<'a> {
    pub fn prepare(&self, prompt: &Prompt, options: &ChatOptions) -> Result<PreparedPrompt> {
        let (ids, text, template, notices) = match prompt {
            Prompt::Chat(messages) => {
                let ReplyPiece { chosen, rendered, runs, notices } = self.render(messages, options)?;
                let ids = self.tokenizer.encode_rendered(&rendered, &self.known(messages, &rendered, &runs));
                // A template says itself whether the text begins with BOS; ours leave it to the vocabulary.
                let ids = if matches!(chosen, ChosenTemplate::Family(_)) { self.with_bos(ids) } else { ids };
                (ids, rendered.text, chosen.template().source().to_owned(), notices)
            }
            Prompt::Raw(text) => {
                let mut ids = self.with_bos(self.tokenizer.encode(text, Special::Parse));
                // Where texts begin with nothing, the end of another comes before them.
                if ids.is_empty() {
                    ids.extend(self.tokenizer.eos());
                }
                (ids, text.clone(), self.own_source(), Vec::new())
            }
            Prompt::Ids(ids) => (ids.clone(), String::new(), self.own_source(), Vec::new()),
        };
        let format = ReplyFormat::of(&template, self.tokenizer);
        let budget = options.reasoning_budget;
        let budget = budget.and_then(|most| format.budget(most, &template, &text, self.tokenizer));
        let gate = format.reasoning_gate(&template, &text, self.tokenizer);
        Ok(PreparedPrompt { ids, text, format, budget, gate, notices })
    }

    /// How many tokens the prompt would have, and the template's source. `encoder` has counted it before, perhaps
    /// with another text at its end.
    pub fn count(
        &self,
        messages: &[PromptMessage],
        options: &ChatOptions,
        encoder: &mut IncrementalEncoder,
    ) -> Result<(usize, String)> {
        let ReplyPiece { chosen, rendered, runs, .. } = self.render(messages, options)?;
        let known = self.known(messages, &rendered, &runs);
        let ids = encoder.encode_rendered(self.tokenizer, &rendered, &known);
        let n = ids.len();
        let adds_bos = match (ids.first(), &chosen) {
            (Some(first), ChosenTemplate::Family(_)) => self.with_bos(vec![*first]).len() - 1,
            _ => 0,
        };
        Ok((n + adds_bos, chosen.template().source().to_owned()))
    }

    /// How many tokens the prompt of these messages has.
    pub fn n_tokens(&self, messages: &[PromptMessage], options: &ChatOptions) -> Result<usize> {
        Ok(self.count(messages, options, &mut IncrementalEncoder::new())?.0)
    }

    /// Estimates the tokens of messages that are far longer than `max_tokens`, from their beginning. None: they are
    /// not, and have to be counted. Reads no more of them than shows that.
    pub fn estimate_overlong(&self, messages: &[PromptMessage], max_tokens: usize) -> Option<usize> {
        // A template leaves out thoughts of former answers, but never what was said to the model.
        let texts =
            messages.iter().filter(|message| message.role != "assistant").map(|it| it.content.as_str());
        let n_bytes: usize = texts.clone().map(str::len).sum();
        if n_bytes / MAX_BYTES_PER_TOKEN <= max_tokens {
            return None;
        }
        let (mut n_tokens, mut n_read) = (0_usize, 0_usize);
        for mut rest in texts {
            while !rest.is_empty() {
                let (part, after) = rest.split_at(rest.floor_char_boundary(ESTIMATE_WINDOW));
                n_tokens += self.tokenizer.encode(part, Special::Plain).len();
                n_read += part.len();
                rest = after;
                if n_tokens > max_tokens.saturating_mul(2) {
                    let scale = n_bytes as f64 / n_read as f64;
                    return Some((n_tokens as f64 * scale) as usize);
                }
            }
        }
        None
    }

    /// The source of the template in use.
    pub fn template_source(&self, options: &ChatOptions) -> Result<String> {
        Ok(self.choose(options)?.template().source().to_owned())
    }

    fn own_source(&self) -> String {
        self.template.as_ref().ok().copied().flatten().map_or_else(String::new, |it| it.source().to_owned())
    }

    fn family(&self) -> ChatTemplate {
        built_in_template(self.architecture, self.tokenizer).1
    }

    fn choose(&self, options: &ChatOptions) -> Result<ChosenTemplate<'a>> {
        if let Some(source) = &options.template {
            return Ok(ChosenTemplate::Named(ChatTemplate::from_source(source)?));
        }
        match &self.template {
            Ok(Some(template)) => Ok(ChosenTemplate::Own(template)),
            Ok(None) => Ok(ChosenTemplate::Family(self.family())),
            Err(error) => Err(unusable(error)),
        }
    }

    /// By the template in use; where that fails and a fallback is allowed, by the family's, with a notice.
    fn render(&self, messages: &[PromptMessage], options: &ChatOptions) -> Result<ReplyPiece<'a>> {
        let shown = self.choose(options).and_then(|chosen| {
            let (rendered, runs) = self.by(chosen.template(), messages, options)?;
            Ok(ReplyPiece { chosen, rendered, runs, notices: Vec::new() })
        });
        let mut shown = match shown {
            Err(error) if options.template_fallback && is_template_failure(&error) => {
                let template = self.family();
                let (rendered, runs) = self.by(&template, messages, options)?;
                let message = format!(
                    "{} The template of the model family was used instead.",
                    sentence(error.message())
                );
                let notice = Error::input("template.fallback", message, error.remedy());
                ReplyPiece { chosen: ChosenTemplate::Family(template), rendered, runs, notices: vec![notice] }
            }
            shown => shown?,
        };
        let has_tools = options.tools.as_array().is_some_and(|tools| !tools.is_empty());
        if has_tools && !shown.chosen.template().source().contains("tools") {
            shown.notices.push(Error::input(
                "template.no_tools",
                "This model's chat template doesn't support tools, so the model can't use them.",
                "Choose a model trained to call tools, or set a template with --chat-template.",
            ));
        }
        Ok(shown)
    }

    /// Rendered by a template, with its images as the stretches that stand for them.
    fn by(
        &self,
        template: &ChatTemplate,
        messages: &[PromptMessage],
        options: &ChatOptions,
    ) -> Result<(RenderedPrompt, Vec<ImageRun>)> {
        let images: Vec<&PromptImage> = messages.iter().flat_map(|message| &message.images).collect();
        if images.is_empty() {
            return Ok((self.in_form(template, messages, options, ImageForm::Parts)?, Vec::new()));
        }
        let input = self.images.clone()?.ok_or_else(|| not_seen(self.model))?;
        let mut failed = None;
        for form in [Some(ImageForm::Parts), ImageForm::marked(messages)].into_iter().flatten() {
            match self.in_form(template, messages, options, form) {
                Ok(rendered) => {
                    if let Some(expanded) = input.expand(rendered, form, &images)? {
                        return Ok(expanded);
                    }
                }
                Err(error) if error.code() == "template.cancelled" => return Err(error),
                Err(error) => _ = failed.get_or_insert(error),
            }
        }
        Err(failed.unwrap_or_else(|| {
            Error::input(
                "template.no_images",
                "This model's chat template leaves out images.",
                "Set another template with --chat-template or in the settings, or choose another model.",
            )
        }))
    }

    fn in_form(
        &self,
        template: &ChatTemplate,
        messages: &[PromptMessage],
        options: &ChatOptions,
        images: ImageForm,
    ) -> Result<RenderedPrompt> {
        let kwargs = self.variables(template, options);
        let name = |id: Option<TokenId>| id.and_then(|id| self.tokenizer.token_text(id)).unwrap_or_default();
        let render = |values: &[Value]| {
            let input = RenderInput {
                messages: values,
                tools: &options.tools,
                kwargs: &kwargs,
                bos_token: name(self.tokenizer.bos()),
                eos_token: name(self.tokenizer.eos()),
                now: Some(self.now),
            };
            match self.interrupt {
                Some(interrupt) => template.render_until(&input, interrupt),
                None => template.render(&input),
            }
        };
        let rendered = messages::render(messages, template.source(), images, &render);
        let rendered = rendered.map_err(|error| match error.code() {
            "template.failed" | "template.limit" => unusable(&error),
            _ => error.into(),
        })?;
        match answer_prefix::is_wanted(&options.kwargs) {
            true => answer_prefix::cut_after_last(rendered, messages),
            false => Ok(rendered),
        }
    }

    /// Variables for a template: those of the request over ours.
    fn variables(&self, template: &ChatTemplate, options: &ChatOptions) -> Map<String, Value> {
        let begins_answer = !answer_prefix::is_wanted(&options.kwargs);
        let mut kwargs = Map::from_iter([("add_generation_prompt".to_owned(), json!(begins_answer))]);
        // SmolLM3's own name for the tools.
        if template.source().contains("xml_tools") && !options.tools.is_null() {
            kwargs.insert("xml_tools".into(), options.tools.clone());
        }
        // Templates without them name a day in the past.
        for (name, format) in DATE_VARIABLES {
            if template.source().contains(name)
                && let Some(date) = format_time(self.now, format)
            {
                kwargs.insert(name.into(), date.into());
            }
        }
        // Firefunction's own name for them, as text.
        if template.source().contains("datetime") && template.source().contains("functions") {
            let tools = options.tools.as_array().filter(|tools| !tools.is_empty());
            let text = tools.and_then(|tools| serde_json::to_string_pretty(tools).ok()).unwrap_or_default();
            kwargs.insert("functions".into(), text.into());
        }
        kwargs.extend(options.kwargs.clone());
        kwargs
    }

    /// Stretches whose ids this model generated, or that stand for images.
    fn known<'r>(
        &self,
        messages: &'r [PromptMessage],
        rendered: &'r RenderedPrompt,
        runs: &'r [ImageRun],
    ) -> Vec<KnownIds<'r>> {
        let logged = rendered.content_spans.iter().filter(|span| span.is_content).filter_map(|span| {
            let ids = self.logged(messages.get(span.message?)?, rendered.text.get(span.range.clone())?)?;
            Some(KnownIds { range: &span.range, ids })
        });
        let runs = runs.iter().map(|run| KnownIds { range: &run.range, ids: &run.ids });
        let mut known: Vec<KnownIds> = logged.chain(runs).collect();
        known.sort_by_key(|known| known.range.start);
        known
    }

    /// The ids that this model generated for a message, if they spell the text that the template made of it.
    fn logged<'m>(&self, message: &'m PromptMessage, text: &str) -> Option<&'m [TokenId]> {
        let log = message.logs.iter().find(|log| log.fingerprint == self.fingerprint)?;
        let in_vocabulary = log.ids.iter().all(|id| (*id as usize) < self.tokenizer.n_vocab());
        (in_vocabulary && self.tokenizer.decode(&log.ids) == text).then_some(log.ids.as_slice())
    }

    /// With the BOS that the model wants before a text. Not its EOS: the text goes on.
    fn with_bos(&self, mut ids: Vec<TokenId>) -> Vec<TokenId> {
        let around = self.tokenizer.add_special(Vec::new());
        if let (Some(bos), Some(first)) = (self.tokenizer.bos(), around.first())
            && bos == *first
            && ids.first() != Some(&bos)
        {
            ids.insert(0, bos);
        }
        ids
    }
}

fn is_template_failure(error: &Error) -> bool {
    ["template.syntax", "template.failed", "template.limit"].contains(&error.code())
}

/// The model's template can't be used: what can be done about it.
fn unusable(error: &engine::EngineError) -> Error {
    let remedy = "Use the template of the model family (--template-fallback, or \"Replace broken chat templates\" in the settings), set another file with --chat-template, or choose another model.";
    Error::input(error.code(), error.to_string(), remedy)
}

fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// The error for a file without vocabulary.
pub fn no_vocabulary(model: &str) -> Error {
    Error::input(
        "model.no_tokenizer",
        format!("The model {model} contains no vocabulary, so it can't process text."),
        "Open the folder that contains the weights and tokenizer.json, or a GGUF file.",
    )
}

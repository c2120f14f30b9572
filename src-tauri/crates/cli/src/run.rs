//! `nook run`: answers one prompt without saving it.

use std::path::PathBuf;

use app::App;
use app::GenerateArgs;
use app::OfferedTools;
use app::SamplingArgs;
use contract::Error;
use contract::Result;
use contract::protocol::{ChatOptions, Constraint, ImageDetail, Prompt, PromptMessage};
use contract::types::{Citation, Finish, SamplerOptions, TurnStats};
use prompt::openai_messages;
use serde_json::{Value, json};

use crate::args::{Global, PromptArgs, RunArgs, SamplerFlags, SamplingFlags};
use crate::input::InputLines;
use crate::interrupt::Interrupt;
use crate::prompt_images::PromptImages;
use crate::schema::read_schema;
use crate::tool_approval::{self, ApprovalContext, ToolApproval, offered_tools};
use crate::turn::{AnswerOutput, TurnAnswer, follow, format_sources};
use crate::{open_model, out};

/// Exit code after Ctrl+C before an answer runs.
const EXIT_INTERRUPTED: i32 = 130;

/// `--detail`, whose words are checked.
fn detail(word: &str) -> ImageDetail {
    match word {
        "low" => ImageDetail::Low,
        "balanced" => ImageDetail::Balanced,
        _ => ImageDetail::Full,
    }
}

pub fn run(global: &Global, args: RunArgs) -> Result<()> {
    let constraint = args.schema.as_deref().map(read_schema).transpose()?.map(Constraint::JsonSchema);
    let mut chat = ChatOptions { reasoning_budget: args.reasoning_budget, ..ChatOptions::default() };
    let mut images = PromptImages::read(&args.image)?;
    let mut prompt = prompt(&args.prompt, args.raw, &mut chat, &mut images)?;
    // Flags override the file.
    if let Some(thinking) = &args.thinking {
        chat.kwargs.insert("enable_thinking".into(), json!(thinking == "on"));
    }
    if let Some(effort) = &args.reasoning_effort {
        chat.kwargs.insert("reasoning_effort".into(), json!(effort));
    }
    chat.image_detail = args.detail.as_deref().map(detail);
    let mut config = global.app_config_apart()?;
    config.overrides.mmproj = args.mmproj.map(|path| path.display().to_string());
    let app = App::open(config)?;
    let model = args.model.map_or_else(|| app.default_model(), Ok)?;
    let sources = attach(&app, &model, &args.file, &mut prompt)?;
    if let Prompt::Chat(messages) = &mut prompt {
        images.add_to_question(messages)?;
    }
    let offer = if args.tools { offered_tools(&app)? } else { OfferedTools::default() };
    if args.tools {
        if !chat.tools.is_null() {
            let message = "The file defines tools, and --tools adds others.";
            return Err(Error::input("tools.two", message, "Use only one of them."));
        }
        chat.tools = offer.definitions();
    }
    let approval = ToolApproval::of(args.approval);
    let show = if global.json { AnswerOutput::Hidden } else { AnswerOutput::Live };
    let interrupt = Interrupt::listen(EXIT_INTERRUPTED);
    let rounds = app.max_tool_rounds()?;
    let generate_args = GenerateArgs {
        model: Some(model),
        prompt,
        sampling: args.sampling.into(),
        max_tokens: args.max_tokens,
        stop: args.stop,
        ignore_eos: args.ignore_eos,
        chat,
        constraint,
        logprobs: None,
    };
    let lines = InputLines::new(None)?;
    let context = ApprovalContext { app: &app, lines: &lines, interrupt: &interrupt };
    let answer = answer_with_tools(&context, generate_args, &offer, approval, rounds, |turn| {
        follow(&app, turn, &interrupt, show)
    })?;
    if global.json {
        let mut report = report(&answer);
        if !args.file.is_empty() {
            report["sources"] = json!(sources);
        }
        out::json(&report);
    } else if !sources.is_empty() {
        out::log(&format_sources(&sources));
    }
    Ok(())
}

/// Generates an answer; runs its tool calls and continues with their results, at most `max_rounds` times.
fn answer_with_tools(
    context: &ApprovalContext<'_>,
    mut generate_args: GenerateArgs,
    offer: &OfferedTools,
    approval: ToolApproval,
    max_rounds: u64,
    follow: impl Fn(&str) -> Result<TurnAnswer>,
) -> Result<TurnAnswer> {
    for round in 0.. {
        let answer = follow(&context.app.generate(generate_args.clone())?)?;
        let called = answer.finish() == Some(Finish::ToolCalls) && !offer.tools.is_empty();
        let Prompt::Chat(messages) = &mut generate_args.prompt else { return Ok(answer) };
        if !called {
            return Ok(answer);
        }
        if round == max_rounds {
            out::log(&format!("stopped after {max_rounds} rounds of tool calls (setting tool_rounds)"));
            return Ok(answer);
        }
        let Some(results) = approval.run_calls(context, offer, &answer.calls)? else { return Ok(answer) };
        messages.push(tool_approval::call_message(&answer.text, &answer.reasoning, &answer.calls));
        messages.extend(results);
    }
    unreachable!("rounds have a limit")
}

/// Adds files to the prompt before the question. Returns the passages used.
fn attach(app: &App, model: &str, files: &[PathBuf], prompt: &mut Prompt) -> Result<Vec<Citation>> {
    let Prompt::Chat(messages) = prompt else { return Ok(Vec::new()) };
    let Some(question) = messages.last_mut().filter(|_| !files.is_empty()) else { return Ok(Vec::new()) };
    let mut ids = Vec::new();
    for file in files {
        let attached = app.attachment_add_path(&file.display().to_string())?;
        for finding in &attached.findings {
            out::log(&format!("{}: {}", attached.name, finding.told()));
        }
        if let Some(scanned) = attached.scanned {
            out::log(&format!("{}: {}", attached.name, scanned.told()));
        }
        ids.push(attached.id);
    }
    let attached = app.attached_prompt(Some(model), &question.content, &ids)?;
    question.content = attached.text;
    question.images = attached.images;
    Ok(attached.sources)
}

impl From<SamplingFlags> for SamplingArgs {
    fn from(flags: SamplingFlags) -> Self {
        let SamplingFlags { temperature, top_k, top_p, min_p, repeat_penalty, seed, samplers } = flags;
        let samplers = Some(samplers.into());
        Self { temperature, top_k, top_p, min_p, repeat_penalty, seed, samplers, ..Self::default() }
    }
}

impl From<SamplerFlags> for SamplerOptions {
    fn from(flags: SamplerFlags) -> Self {
        let breakers = flags.dry_sequence_breaker;
        Self {
            dry_multiplier: flags.dry_multiplier,
            dry_base: flags.dry_base,
            dry_allowed_length: flags.dry_allowed_length,
            dry_penalty_last_n: flags.dry_penalty_last_n,
            dry_sequence_breakers: Some(breakers).filter(|breakers| !breakers.is_empty()),
            xtc_probability: flags.xtc_probability,
            xtc_threshold: flags.xtc_threshold,
        }
    }
}

fn prompt(args: &PromptArgs, raw: bool, chat: &mut ChatOptions, images: &mut PromptImages) -> Result<Prompt> {
    if let Some(ids) = &args.ids {
        let ids = open_model::ids(ids)?;
        if ids.is_empty() {
            return Err(Error::input("request.empty", "There are no token ids.", "Give at least one."));
        }
        return Ok(Prompt::Ids(ids));
    }
    if let Some(path) = &args.messages {
        let text = open_model::read_text(path)?;
        let file: Value = serde_json::from_str(&text).map_err(|error| {
            let message = format!("{} is not JSON: {error}.", path.display());
            Error::input("input.not_json", message, "Write a list of messages.")
        })?;
        images.folder = path.parent().map(Into::into).unwrap_or_default();
        return messages(&file, chat, images).map(Prompt::Chat);
    }
    let text = match (args.text.as_ref().or(args.prompt.as_ref()), &args.prompt_file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => open_model::read_text(path)?,
        (None, None) => unreachable!("the command line demands one of them"),
    };
    Ok(match raw {
        true => Prompt::Raw(text),
        false => {
            Prompt::Chat(vec![PromptMessage { role: "user".into(), content: text, ..Default::default() }])
        }
    })
}

/// Parses a list of messages, or an object with messages, tools and template arguments.
fn messages(file: &Value, chat: &mut ChatOptions, images: &mut PromptImages) -> Result<Vec<PromptMessage>> {
    let bad = |message: String| {
        Error::input("input.messages", message, "Write [{\"role\": \"user\", \"content\": \"…\"}, …].")
    };
    let list = file.as_array().or_else(|| file["messages"].as_array());
    let list = list.ok_or_else(|| bad("The file contains no list of messages.".into()))?;
    chat.tools = openai_messages::tools(&file["tools"]).map_err(|what| bad(format!("The file: {what}")))?;
    for key in ["kwargs", "chat_template_kwargs"] {
        match &file[key] {
            Value::Null => {}
            Value::Object(kwargs) => chat.kwargs.extend(kwargs.clone()),
            _ => return Err(bad(format!("`{key}` must be an object."))),
        }
    }
    if let Some(word) = file["reasoning_effort"].as_str() {
        openai_messages::effort(word, &mut chat.kwargs).map_err(bad)?;
    }
    let message = |(at, message): (usize, &Value)| {
        openai_messages::message_with(message, &mut |part| images.part(part))
            .map_err(|what| bad(format!("Message {at}: {what}")))
    };
    let messages = list.iter().enumerate().map(message).collect::<Result<Vec<_>>>()?;
    if messages.is_empty() {
        return Err(bad("The list of messages is empty.".into()));
    }
    Ok(messages)
}

fn report(answer: &TurnAnswer) -> Value {
    let mut report = json!({
        "text": answer.text,
        "reasoning": answer.reasoning,
        "tool_calls": answer.calls,
        "ids": answer.ids,
    });
    if let Some(stats) = &answer.stats {
        report["finish"] = json!(finish(stats.finish));
        report["usage"] = usage(stats);
        report["timings"] = json!({
            "load_ms": stats.load_ms,
            "prefill_tok_s": stats.prefill_tok_s,
            "decode_tok_s": stats.decode_tok_s,
            "ttft_ms": stats.ttft_ms,
            "drafted_tokens": stats.drafted_tokens,
            "accepted_tokens": stats.accepted_tokens,
        });
    }
    report
}

fn finish(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Cancelled => "cancelled",
        Finish::ContextFull => "context_full",
        Finish::TimeUp => "time_up",
    }
}

fn usage(stats: &TurnStats) -> Value {
    json!({
        "prompt_tokens": stats.prompt_tokens,
        "reused_tokens": stats.reused_tokens,
        "completion_tokens": stats.generated_tokens,
        "total_tokens": stats.prompt_tokens.saturating_add(stats.generated_tokens),
        "context_limit": stats.context_limit,
    })
}

//! What the tools do: each call is one use case of `app`.

use app::{App, GenerateArgs, SamplingArgs};
use contract::protocol::{ChatOptions, Prompt, PromptMessage, PromptPart, SpecialTokens};
use contract::types::{ConversationOptions, SendArgs};
use contract::{Error, Result};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{ProgressText, TurnGuard, follow};
use crate::arguments::{
    ChatArgs, ChatMessage, CountTokensArgs, GenerateTextArgs, ListModelsArgs, ListSessionsArgs,
    ModelInfoArgs, parse,
};
use crate::notifier::CallNotifiers;
use crate::results::{ChatAnswer, GeneratedText, ModelInfo, ModelList, SessionList, TokenCount};
use crate::tools::ToolName;

/// Calls a tool. Dropping the future cancels the call.
pub async fn call(
    app: &App,
    tool: ToolName,
    arguments: Value,
    notifiers: CallNotifiers,
) -> Result<CallToolResult> {
    let name = tool.name();
    match tool {
        ToolName::GenerateText => generate_text(app, parse(name, arguments)?, notifiers).await,
        ToolName::Chat => chat(app, parse(name, arguments)?, notifiers).await,
        ToolName::CountTokens => {
            let CountTokensArgs { text, model } = parse(name, arguments)?;
            let count = on_app(app, move |app| token_count(app, model, text)).await?;
            structured(TokenCount { count })
        }
        ToolName::GetModelInfo => {
            let ModelInfoArgs { model } = parse(name, arguments)?;
            structured(on_app(app, move |app| model_info(app, model)).await?)
        }
        ToolName::ListModels => {
            let ListModelsArgs {} = parse(name, arguments)?;
            let models = on_app(app, |app| app.models_list()).await?;
            let local = models.into_iter().filter(|entry| entry.remote.is_none() && !entry.only_drafts);
            structured(ModelList { models: local.map(Into::into).collect() })
        }
        ToolName::ListSessions => {
            let ListSessionsArgs { limit } = parse(name, arguments)?;
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let chats = on_app(app, |app| app.conversations_list()).await?;
            structured(SessionList { sessions: chats.into_iter().take(limit).map(Into::into).collect() })
        }
    }
}

/// Runs a use case away from the threads of the network.
async fn on_app<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&App) -> Result<T> + Send + 'static,
) -> Result<T> {
    let app = app.clone();
    match tokio::task::spawn_blocking(move || work(&app)).await {
        Ok(outcome) => outcome,
        Err(panic) => Err(Error::bug(panic)),
    }
}

async fn generate_text(
    app: &App,
    args: GenerateTextArgs,
    notifiers: CallNotifiers,
) -> Result<CallToolResult> {
    let prompt = match args.raw {
        true => Prompt::Raw(args.prompt),
        false => Prompt::Chat(vec![PromptMessage {
            role: "user".into(),
            content: args.prompt,
            ..PromptMessage::default()
        }]),
    };
    let sampling =
        SamplingArgs { temperature: Some(args.temperature), seed: args.seed, ..SamplingArgs::default() };
    let most = args.max_tokens.get();
    let (model, guard) = start_unsaved(app, args.model, prompt, sampling, Some(most), args.stop).await?;
    let answer = follow(guard, notifiers, ProgressText::of(args.stream), Some(most)).await?;
    let result = GeneratedText::of(answer, model);
    answered(&result.text, &result)
}

async fn chat(app: &App, args: ChatArgs, notifiers: CallNotifiers) -> Result<CallToolResult> {
    let stream = ProgressText::of(args.stream);
    let most = args.max_tokens.map(std::num::NonZeroU32::get);
    match (args.messages, args.message) {
        (Some(messages), None) if args.session.is_none() => {
            let system = args.system.map(ChatMessage::system);
            let messages: Vec<PromptMessage> =
                system.into_iter().chain(messages).map(ChatMessage::into_prompt).collect();
            let sampling =
                SamplingArgs { temperature: args.temperature, seed: args.seed, ..SamplingArgs::default() };
            let prompt = Prompt::Chat(messages);
            let (model, guard) = start_unsaved(app, args.model, prompt, sampling, most, Vec::new()).await?;
            let answer = follow(guard, notifiers, stream, most).await?;
            let result = ChatAnswer { answer: GeneratedText::of(answer, model), session: None };
            answered(&result.answer.text, &result)
        }
        (None, Some(message)) => {
            let options = ConversationOptions {
                system_prompt: args.system,
                temperature: args.temperature,
                seed: args.seed,
                max_tokens: most,
                ..ConversationOptions::default()
            };
            let (session, model) = (args.session, args.model);
            let (guard, session, model) =
                on_app(app, move |app| start_saved(app, message, session, model, options)).await?;
            let answer = follow(guard, notifiers, stream, most).await?;
            let result = ChatAnswer { answer: GeneratedText::of(answer, model), session: Some(session) };
            answered(&result.answer.text, &result)
        }
        (Some(_), _) | (None, None) => Err(Error::input(
            "mcp.chat_arguments",
            "chat needs either `messages` or `message`; `session` goes with `message`.",
            "Send `messages` for a chat that is not saved, or `message` for one that is.",
        )),
    }
}

/// Starts an answer that is not saved. Returns its model with the turn.
async fn start_unsaved(
    app: &App,
    model: Option<String>,
    prompt: Prompt,
    sampling: SamplingArgs,
    most: Option<u32>,
    stop: Vec<String>,
) -> Result<(String, TurnGuard)> {
    on_app(app, move |app| {
        let model = app.model_served(&model.map_or_else(|| app.default_model(), Ok)?)?.id;
        let turn = app.generate(GenerateArgs {
            model: Some(model.clone()),
            prompt,
            sampling,
            max_tokens: most.and_then(|n| usize::try_from(n).ok()),
            stop,
            ignore_eos: false,
            chat: ChatOptions::default(),
            constraint: None,
            logprobs: None,
        })?;
        Ok((model, TurnGuard::new(app, turn)))
    })
    .await
}

/// Sends a message of a saved chat. Returns the turn, the chat and its model.
fn start_saved(
    app: &App,
    text: String,
    session: Option<String>,
    model: Option<String>,
    options: ConversationOptions,
) -> Result<(TurnGuard, String, String)> {
    let is_new = session.is_none();
    if !is_new && options != ConversationOptions::default() {
        return Err(Error::input(
            "mcp.chat_options",
            "A saved chat keeps its own system prompt, temperature, seed and answer length.",
            "Leave them out, or start a new chat without `session`.",
        ));
    }
    let named = match (model, &session) {
        (Some(model), _) => model,
        (None, Some(session)) => app.conversation_get(session)?.summary.model,
        (None, None) => app.default_model()?,
    };
    let model = app.model_served(&named)?.id;
    // No user is there to permit a tool call.
    // An empty system prompt: the default instructions are for the user's own chats.
    let options = is_new.then(|| ConversationOptions {
        tools: Some(Vec::new()),
        system_prompt: Some(options.system_prompt.unwrap_or_default()),
        ..options
    });
    let started = app.send(SendArgs {
        conversation: session,
        text,
        model: Some(model.clone()),
        options,
        ..SendArgs::default()
    })?;
    Ok((TurnGuard::new(app, started.turn), started.conversation, model))
}

/// The answer as text for a model, and as fields for a program.
fn answered(text: &str, fields: &impl Serialize) -> Result<CallToolResult> {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(serde_json::to_value(fields).map_err(Error::bug)?);
    Ok(result)
}

/// Fields for a program, and the same as text.
fn structured(fields: impl Serialize) -> Result<CallToolResult> {
    Ok(CallToolResult::structured(serde_json::to_value(fields).map_err(Error::bug)?))
}

fn token_count(app: &App, model: Option<String>, text: String) -> Result<usize> {
    let model = app.model_served(&model.map_or_else(|| app.default_model(), Ok)?)?.id;
    Ok(app.tokenize(&model, vec![PromptPart::Text(text)], SpecialTokens::Without, false)?.len())
}

fn model_info(app: &App, model: Option<String>) -> Result<ModelInfo> {
    let id = app.model_served(&model.map_or_else(|| app.default_model(), Ok)?)?.id;
    let entry = app.model_get(&id)?;
    let backend = app.backend_name(&entry)?;
    Ok(ModelInfo {
        id: entry.id,
        name: entry.name,
        parameters: entry.parameters,
        architecture: entry.architecture,
        max_context: entry.context_length,
        backend,
    })
}

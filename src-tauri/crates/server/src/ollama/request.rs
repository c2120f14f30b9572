//! Parses requests to Ollama's `/api/chat` and `/api/generate`.

use app::{GenerateArgs, SamplingArgs};
use contract::Result;
use contract::protocol::{ChatOptions, Constraint, ProbabilityReport, Prompt, PromptImage, PromptMessage};
use prompt::images::from_base64;
use prompt::{answer_prefix, openai_messages};
use serde_json::{Map, Value, json};

use super::context_window::ContextWindow;
use super::keep_alive::KeepAlive;
use crate::request_fields::{RequestFields, invalid, object};

/// Largest number of stop texts.
const MAX_STOPS: usize = 64;

/// Largest number of messages; far beyond any conversation.
const MAX_MESSAGES: usize = 10_000;

/// Largest number of alternatives for a token, as in Ollama.
const MAX_TOP_LOGPROBS: usize = 20;

/// Largest number of images of one message; their rows alone fill the contexts of most models.
const MAX_IMAGES: usize = 64;

/// What an answer consists of: a message, or the continuation of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    Chat,
    Generate,
}

/// A request for an answer.
#[derive(Debug)]
pub struct OllamaRequest {
    /// Name of the model as the client gives it.
    pub model: String,
    pub args: GenerateArgs,
    pub stream: bool,
    /// The client sent no prompt: the model is only to be loaded or unloaded.
    pub is_empty: bool,
    pub keep_alive: KeepAlive,
    pub window: ContextWindow,
    /// Text after the gap that a raw prompt is continued into.
    pub suffix: Option<String>,
}

impl OllamaRequest {
    pub fn parse(kind: AnswerKind, body: &[u8]) -> Result<Self> {
        let object = object(body)?;
        let fields = RequestFields(&object);
        let options = fields.object("options")?;
        let mut kwargs = Map::new();
        think(fields, &mut kwargs)?;
        let (prompt, is_empty) = match kind {
            AnswerKind::Chat => chat_prompt(fields)?,
            AnswerKind::Generate => generate_prompt(fields)?,
        };
        if let Prompt::Chat(messages) = &prompt {
            let is_continued = answer_prefix::is_continued(messages, None, None).map_err(invalid)?;
            answer_prefix::set(&mut kwargs, None, is_continued);
        }
        let tools = fields.get("tools").unwrap_or(&Value::Null);
        let tools = openai_messages::tools(tools).map_err(|what| invalid(format!("tools: {what}")))?;
        Ok(Self {
            model: model(fields)?,
            args: GenerateArgs {
                model: None,
                prompt,
                sampling: options.map(sampling).transpose()?.unwrap_or_default(),
                max_tokens: options.map(max_tokens).transpose()?.flatten(),
                stop: options
                    .map(|options| options.texts("stop", MAX_STOPS))
                    .transpose()?
                    .unwrap_or_default(),
                ignore_eos: false,
                chat: ChatOptions { tools, kwargs, ..ChatOptions::default() },
                constraint: constraint(fields)?,
                logprobs: logprobs(fields)?.map(ProbabilityReport::before_sampling),
            },
            stream: fields.boolean("stream")?.unwrap_or(true),
            is_empty,
            keep_alive: KeepAlive::parse(fields)?,
            window: ContextWindow::parse(fields, options)?,
            suffix: fields.text("suffix")?.filter(|suffix| !suffix.is_empty()).map(str::to_owned),
        })
    }
}

/// The name of the model that a request is about.
pub fn model(fields: RequestFields) -> Result<String> {
    let name = match fields.text("model")? {
        Some(model) => Some(model),
        None => fields.text("name")?,
    };
    match name.map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => Ok(name.to_owned()),
        None => Err(invalid("`model` is required.")),
    }
}

fn chat_prompt(fields: RequestFields) -> Result<(Prompt, bool)> {
    let list = fields.list("messages")?.map(Vec::as_slice).unwrap_or_default();
    if list.len() > MAX_MESSAGES {
        return Err(invalid(format!("There are more than {MAX_MESSAGES} messages.")));
    }
    let messages = list.iter().enumerate().map(|(index, message)| {
        let images =
            images(message.get("images")).map_err(|what| invalid(format!("messages[{index}]: {what}")))?;
        let mut message = message.clone();
        if let Some(object) = message.as_object_mut() {
            object.remove("images");
            // Ollama names the tool where OpenAI names the call.
            if let Some(name) = object.remove("tool_name") {
                object.entry("name").or_insert(name);
            }
            if object.get("role").is_some_and(|role| role == "assistant") {
                object.entry("content").or_insert(Value::Null);
            }
        }
        let read = openai_messages::message(&message);
        let read = read.map_err(|what| invalid(format!("messages[{index}]: {what}")))?;
        Ok(PromptMessage { images, ..read })
    });
    let messages: Vec<PromptMessage> = messages.collect::<Result<_>>()?;
    let is_empty = messages.is_empty();
    Ok((Prompt::Chat(messages), is_empty))
}

fn generate_prompt(fields: RequestFields) -> Result<(Prompt, bool)> {
    let images = images(fields.get("images")).map_err(invalid)?;
    if fields.text("template")?.is_some_and(|template| !template.is_empty()) {
        return Err(invalid("`template` is not supported: the model's own chat template is used."));
    }
    if fields.list("context")?.is_some_and(|context| !context.is_empty()) {
        return Err(invalid("`context` is not supported. Send the conversation to /api/chat instead."));
    }
    let text = fields.text("prompt")?.unwrap_or_default().to_owned();
    let is_empty = text.is_empty();
    let has_suffix = fields.text("suffix")?.is_some_and(|suffix| !suffix.is_empty());
    if fields.boolean("raw")?.unwrap_or(false) || has_suffix {
        if !images.is_empty() {
            return Err(invalid("`images` need the chat template: leave out `raw` and `suffix`."));
        }
        return Ok((Prompt::Raw(text), is_empty && !has_suffix));
    }
    let message = |role: &str, content: String| PromptMessage {
        role: role.into(),
        content,
        ..PromptMessage::default()
    };
    let system = fields.text("system")?.filter(|system| !system.is_empty());
    let messages = system.map(|system| message("system", system.into())).into_iter();
    let is_empty = is_empty && images.is_empty();
    let question = PromptMessage { images, ..message("user", text) };
    Ok((Prompt::Chat(messages.chain([question]).collect()), is_empty))
}

/// Images as base64, which stand before the text. Error: a sentence.
fn images(list: Option<&Value>) -> std::result::Result<Vec<PromptImage>, String> {
    let list = match list {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_IMAGES => list,
        Some(_) => return Err(format!("`images` must be a list of at most {MAX_IMAGES} images as base64.")),
    };
    let image = |(index, image): (usize, &Value)| {
        let text = image.as_str().ok_or_else(|| format!("`images[{index}]` must be base64."))?;
        from_base64(text).map_err(|error| format!("`images[{index}]`: {error} {}", error.remedy()))
    };
    list.iter().enumerate().map(image).collect()
}

fn think(fields: RequestFields, kwargs: &mut Map<String, Value>) -> Result<()> {
    match fields.get("think") {
        None => Ok(()),
        Some(Value::Bool(on)) => {
            kwargs.insert("enable_thinking".into(), json!(on));
            Ok(())
        }
        Some(Value::String(word)) if matches!(word.as_str(), "low" | "medium" | "high") => {
            openai_messages::effort(word, kwargs).map_err(|what| invalid(format!("think: {what}")))
        }
        Some(_) => Err(invalid("`think` must be true, false, \"low\", \"medium\" or \"high\".")),
    }
}

fn constraint(fields: RequestFields) -> Result<Option<Constraint>> {
    match fields.get("format") {
        None => Ok(None),
        Some(Value::String(word)) if word.is_empty() => Ok(None),
        Some(Value::String(word)) if word == "json" => Ok(Some(Constraint::JsonObject)),
        Some(schema @ Value::Object(_)) => Ok(Some(Constraint::JsonSchema(schema.clone()))),
        Some(_) => Err(invalid("`format` must be \"json\" or a JSON schema.")),
    }
}

/// Alternatives for each token. None: no probabilities.
fn logprobs(fields: RequestFields) -> Result<Option<u32>> {
    let n_alternatives = match fields.count("top_logprobs")? {
        Some(n) if n > MAX_TOP_LOGPROBS => {
            return Err(invalid(format!("`top_logprobs` must be from 0 to {MAX_TOP_LOGPROBS}.")));
        }
        n => u32::try_from(n.unwrap_or(0)).unwrap_or(0),
    };
    Ok(fields.boolean("logprobs")?.unwrap_or(false).then_some(n_alternatives))
}

/// Ollama's names.
fn sampling(options: RequestFields) -> Result<SamplingArgs> {
    let seed = options.integer("seed")?.map(i64::cast_unsigned);
    Ok(SamplingArgs {
        temperature: options.number("temperature")?,
        top_k: options.count("top_k")?.map(|k| u32::try_from(k).unwrap_or(u32::MAX)),
        top_p: options.number("top_p")?,
        min_p: options.number("min_p")?,
        repeat_penalty: options.number("repeat_penalty")?,
        presence_penalty: options.number("presence_penalty")?,
        frequency_penalty: options.number("frequency_penalty")?,
        seed,
        ..SamplingArgs::default()
    })
}

/// -1 and -2 stand for no limit but the context.
fn max_tokens(options: RequestFields) -> Result<Option<usize>> {
    match options.integer("num_predict")? {
        None | Some(-1 | -2) => Ok(None),
        Some(n) => match usize::try_from(n).ok().filter(|n| *n > 0) {
            Some(n) => Ok(Some(n)),
            None => Err(invalid("`options.num_predict` must be at least 1, or -1 for no limit.")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: AnswerKind, body: Value) -> Result<OllamaRequest> {
        OllamaRequest::parse(kind, body.to_string().as_bytes())
    }

    #[test]
    fn chats_are_read() {
        let tool = json!({"type": "function", "function": {"name": "look", "parameters": {}}});
        let call = json!({"function": {"name": "look", "arguments": {"city": "Bern"}}});
        let request = parse(
            AnswerKind::Chat,
            json!({
                "model": "m:latest", "think": "low", "format": "json", "tools": [tool], "keep_alive": "5m",
                "options": {"num_predict": 5, "temperature": 0, "top_k": 3, "seed": -1, "stop": "END", "num_ctx": 64},
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "tool_calls": [call], "thinking": "Hm."},
                    {"role": "tool", "tool_name": "look", "content": "Sun"},
                ],
            }),
        )
        .unwrap();
        let Prompt::Chat(messages) = &request.args.prompt else { panic!() };
        assert_eq!((messages[1].reasoning.as_str(), messages[1].tool_calls.len()), ("Hm.", 1));
        assert_eq!(messages[2].name.as_deref(), Some("look"));
        let args = &request.args;
        assert_eq!((request.stream, request.is_empty), (true, false));
        assert_eq!(request.keep_alive, KeepAlive::For(std::time::Duration::from_secs(300)));
        assert_eq!((args.max_tokens, args.stop.as_slice()), (Some(5), &["END".to_owned()][..]));
        assert_eq!((args.sampling.seed, args.sampling.top_k), (Some(u64::MAX), Some(3)));
        assert_eq!(args.chat.kwargs["reasoning_effort"], "low");
        assert_eq!(args.constraint, Some(Constraint::JsonObject));
    }

    #[test]
    fn images_stand_before_the_text() {
        const PNG: &str =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";
        let said = json!([{"role": "user", "content": "What?", "images": [PNG, PNG]}]);
        let chat = parse(AnswerKind::Chat, json!({"model": "m", "messages": said})).unwrap();
        let Prompt::Chat(messages) = &chat.args.prompt else { panic!() };
        assert_eq!((messages[0].images.len(), messages[0].images[1].at), (2, 0));
        let one = parse(AnswerKind::Generate, json!({"model": "m", "images": [PNG]})).unwrap();
        assert!(!one.is_empty && one.args.prompt.messages()[0].images.len() == 1);
        let raw = json!({"model": "m", "prompt": "a", "raw": true, "images": [PNG]});
        assert!(parse(AnswerKind::Generate, raw).unwrap_err().message().contains("raw"));
    }

    #[test]
    fn prompts_are_read() {
        let of = |body: Value| parse(AnswerKind::Generate, body).unwrap();
        let chat =
            of(json!({"model": "m", "prompt": "Hi", "system": "Be brief.", "options": {"num_predict": -1}}));
        let Prompt::Chat(messages) = &chat.args.prompt else { panic!() };
        let said: Vec<_> = messages.iter().map(|it| (it.role.as_str(), it.content.as_str())).collect();
        assert_eq!((said, chat.args.max_tokens), (vec![("system", "Be brief."), ("user", "Hi")], None));
        let raw = of(json!({"model": "m", "prompt": "Once", "raw": true, "stream": false}));
        assert_eq!((raw.args.prompt, raw.stream), (Prompt::Raw("Once".into()), false));
        let load = of(json!({"name": "m", "keep_alive": 0}));
        assert!(load.is_empty && load.keep_alive.is_unload());
        assert_eq!(of(json!({"model": "m", "prompt": "a", "suffix": "b"})).suffix.as_deref(), Some("b"));
    }

    #[test]
    fn what_is_refused_names_its_field() {
        for (extra, field) in [
            (json!({"model": ""}), "model"),
            (json!({"options": 7}), "options"),
            (json!({"options": {"num_predict": 0}}), "num_predict"),
            (json!({"options": {"stop": [7]}}), "stop"),
            (json!({"format": 7}), "format"),
            (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs"),
            (json!({"think": "utmost"}), "think"),
            (json!({"keep_alive": "soon"}), "keep_alive"),
            (json!({"messages": [{"role": "user", "content": "x", "images": ["aa"]}]}), "image"),
            (json!({"messages": [{"role": "king", "content": "x"}]}), "role"),
            (json!({"tools": [{"type": "web"}]}), "tools"),
        ] {
            let mut body = json!({"model": "m", "messages": []});
            for (name, value) in extra.as_object().unwrap() {
                body[name] = value.clone();
            }
            let error = parse(AnswerKind::Chat, body).err().unwrap_or_else(|| panic!("{extra} was taken"));
            assert!(error.message().contains(field), "{extra}: {error}");
        }
        for body in [json!({"model": "m", "context": [1]}), json!({"model": "m", "template": "x"})] {
            assert!(parse(AnswerKind::Generate, body).is_err());
        }
    }
}

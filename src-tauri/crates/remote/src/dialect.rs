//! What each kind of server supports beyond the common interface, recognised by the name in its
//! list of models.

use serde_json::{Map, Value, json};

use contract::Sampling;
use contract::protocol::{ChatOptions, Constraint, GenerateRequest, ImageDetail, PromptMessage};
use contract::types::{EndpointModel, ServerKind};
use prompt::images;

/// Most models of one server that are kept.
const MAX_MODELS: usize = 1000;

/// How a server counts tokens, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountRoute {
    /// `/tokenize` takes messages.
    Messages,
    /// `/apply-template`, then `/tokenize` takes text.
    Text,
    None,
}

/// How an answer is gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContinuationStyle {
    /// It is the last message, and two fields say so.
    Marked,
    /// It is the last message.
    Placed,
    /// It is asked for in words.
    Asked,
}

/// How a kind of server is spoken to.
#[derive(Debug, Clone, Copy)]
pub struct Dialect(pub ServerKind);

impl Dialect {
    pub fn counting(self) -> CountRoute {
        match self.0 {
            ServerKind::Inglenook | ServerKind::Vllm => CountRoute::Messages,
            ServerKind::LlamaCpp => CountRoute::Text,
            ServerKind::Sglang | ServerKind::Ollama | ServerKind::OpenAi | ServerKind::Other => {
                CountRoute::None
            }
        }
    }

    pub fn continuing(self) -> ContinuationStyle {
        match self.0 {
            ServerKind::Vllm | ServerKind::Sglang => ContinuationStyle::Marked,
            ServerKind::LlamaCpp | ServerKind::Ollama => ContinuationStyle::Placed,
            ServerKind::Inglenook | ServerKind::OpenAi | ServerKind::Other => ContinuationStyle::Asked,
        }
    }

    /// Variables of the chat template can be set.
    pub fn takes_kwargs(self) -> bool {
        match self.0 {
            ServerKind::Inglenook | ServerKind::Vllm | ServerKind::Sglang | ServerKind::LlamaCpp => true,
            ServerKind::Ollama | ServerKind::OpenAi | ServerKind::Other => false,
        }
    }

    /// The field that an assistant's reasoning goes back in. Others refuse fields that they don't know.
    fn reasoning_field(self) -> Option<&'static str> {
        match self.0 {
            ServerKind::Inglenook | ServerKind::Sglang | ServerKind::LlamaCpp => Some("reasoning_content"),
            ServerKind::Vllm | ServerKind::Ollama => Some("reasoning"),
            ServerKind::OpenAi | ServerKind::Other => None,
        }
    }

    /// The request's fields, the stream's among them.
    pub fn body(
        self,
        model: &str,
        messages: &[PromptMessage],
        request: &GenerateRequest,
    ) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |key: &str, value: Value| _ = body.insert(key.into(), value);
        put("model", model.into());
        put("messages", self.messages(messages));
        put("stream", true.into());
        put("stream_options", json!({ "include_usage": true }));
        let (sampling, default) = (&request.sampling, Sampling::default());
        // Servers know better what suits their models, and some refuse a field that is set at all.
        for (key, value, default) in [
            ("temperature", sampling.temperature, default.temperature),
            ("top_p", sampling.top_p, default.top_p),
        ] {
            if value != default {
                put(key, number(value));
            }
        }
        if let Some(seed) = sampling.seed {
            // Some servers keep it in a signed number.
            put("seed", (seed & (i64::MAX as u64)).into());
        }
        if !request.stop.is_empty() {
            put("stop", json!(request.stop));
        }
        if let Some(most) = request.max_tokens {
            let key = if self.0 == ServerKind::OpenAi { "max_completion_tokens" } else { "max_tokens" };
            put(key, most.into());
        }
        if !request.chat.tools.is_null() {
            put("tools", request.chat.tools.clone());
        }
        match self.0 {
            ServerKind::Inglenook | ServerKind::Vllm | ServerKind::Sglang | ServerKind::LlamaCpp => {
                // vLLM and SGLang write "all of them" as -1.
                let all = matches!(self.0, ServerKind::Vllm | ServerKind::Sglang) && sampling.top_k == 0;
                put("top_k", if all { json!(-1) } else { json!(sampling.top_k) });
                put("min_p", number(sampling.min_p));
                let key = match self.0 {
                    ServerKind::Vllm | ServerKind::Sglang => "repetition_penalty",
                    _ => "repeat_penalty",
                };
                put(key, number(sampling.repeat_penalty));
                if matches!(self.0, ServerKind::Inglenook | ServerKind::LlamaCpp) {
                    dry_and_xtc(sampling).into_iter().for_each(|(key, value)| put(key, value));
                }
                if request.ignore_eos {
                    put("ignore_eos", true.into());
                }
            }
            ServerKind::Ollama | ServerKind::OpenAi | ServerKind::Other => {}
        }
        demand(request, &mut body);
        self.thinking(&request.chat, &mut body);
        body
    }

    /// Whether and how long the model thinks.
    fn thinking(self, chat: &ChatOptions, body: &mut Map<String, Value>) {
        let mut kwargs = chat.kwargs.clone();
        let is_not_to_think = chat.reasoning_budget == Some(0);
        if is_not_to_think {
            kwargs.entry("enable_thinking").or_insert(false.into());
        }
        let effort = kwargs.remove("reasoning_effort");
        match self.0 {
            ServerKind::Inglenook => {
                if let Some(budget) = chat.reasoning_budget {
                    body.insert("reasoning_budget".into(), budget.into());
                }
            }
            ServerKind::Ollama if kwargs.get("enable_thinking") == Some(&Value::Bool(false)) => {
                body.insert("reasoning_effort".into(), "none".into());
            }
            ServerKind::Ollama
            | ServerKind::Vllm
            | ServerKind::Sglang
            | ServerKind::LlamaCpp
            | ServerKind::OpenAi
            | ServerKind::Other => {}
        }
        if let Some(effort) = effort {
            body.entry("reasoning_effort").or_insert(effort);
        }
        if self.takes_kwargs() && !kwargs.is_empty() {
            body.insert("chat_template_kwargs".into(), kwargs.into());
        }
    }

    pub fn messages(self, messages: &[PromptMessage]) -> Value {
        messages.iter().map(|message| self.message(message)).collect()
    }

    fn message(self, message: &PromptMessage) -> Value {
        let mut value = json!({ "role": message.role, "content": content(message) });
        if !message.tool_calls.is_empty() {
            value["tool_calls"] = message.tool_calls.iter().map(with_text).collect();
        }
        if let Some(id) = &message.tool_call_id {
            value["tool_call_id"] = json!(id);
        }
        if let Some(name) = &message.name {
            value["name"] = json!(name);
        }
        if let Some(field) = self.reasoning_field().filter(|_| !message.reasoning.is_empty()) {
            value[field] = json!(message.reasoning);
        }
        value
    }
}

/// A message's text, or its text and images as parts.
fn content(message: &PromptMessage) -> Value {
    if message.images.is_empty() {
        return json!(message.content);
    }
    let mut parts = Vec::new();
    let mut shown = message.images.iter().filter_map(|image| Some((images::data_url(image)?, image.detail)));
    for text in images::texts_between(message) {
        if !text.is_empty() {
            parts.push(json!({ "type": "text", "text": text }));
        }
        let part = |(url, detail)| match detail {
            ImageDetail::Low => json!({ "type": "image_url", "image_url": { "url": url, "detail": "low" } }),
            // OpenAI's interface has no word for it.
            ImageDetail::Balanced | ImageDetail::Full => {
                json!({ "type": "image_url", "image_url": { "url": url } })
            }
        };
        parts.extend(shown.next().map(part));
    }
    json!(parts)
}

/// Penalties, biases and the form of the answer.
fn demand(request: &GenerateRequest, body: &mut Map<String, Value>) {
    let sampling = &request.sampling;
    let mut put = |key: &str, value: Value| _ = body.insert(key.into(), value);
    for (key, value) in
        [("presence_penalty", sampling.presence_penalty), ("frequency_penalty", sampling.frequency_penalty)]
    {
        if value != 0.0 {
            put(key, number(value));
        }
    }
    if !sampling.logit_bias.is_empty() {
        let biases = sampling.logit_bias.iter();
        let biases: Map<_, _> = biases.map(|it| (it.token.to_string(), number(it.bias))).collect();
        put("logit_bias", biases.into());
    }
    match &request.constraint {
        Some(Constraint::JsonObject) => put("response_format", json!({ "type": "json_object" })),
        Some(Constraint::JsonSchema(schema)) => {
            let schema = json!({ "name": "answer", "schema": schema });
            put("response_format", json!({ "type": "json_schema", "json_schema": schema }));
        }
        Some(Constraint::ToolCall { name: Some(name) }) => {
            put("tool_choice", json!({ "type": "function", "function": { "name": name } }));
        }
        Some(Constraint::ToolCall { name: None }) => put("tool_choice", "required".into()),
        // Refused before.
        Some(Constraint::Regex(_) | Constraint::Lark(_)) | None => {}
    }
}

/// By `owned_by` of a model.
fn server_kind(owner: &str) -> ServerKind {
    match owner {
        "inglenook" => ServerKind::Inglenook,
        "vllm" => ServerKind::Vllm,
        "sglang" => ServerKind::Sglang,
        "llamacpp" => ServerKind::LlamaCpp,
        "library" => ServerKind::Ollama,
        "openai" | "openai-internal" | "system" => ServerKind::OpenAi,
        _ => ServerKind::Other,
    }
}

/// A call whose arguments are a text, as OpenAI has them.
fn with_text(call: &Value) -> Value {
    let mut call = call.clone();
    if let Some(arguments) = call.pointer_mut("/function/arguments")
        && !arguments.is_string()
    {
        *arguments = arguments.to_string().into();
    }
    call
}

/// `0.7`, not `0.699999988079071`.
fn number(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// The models that a server lists, and what kind of server it is. None: this is no such list.
pub fn models(list: &Value) -> Option<(ServerKind, Vec<EndpointModel>)> {
    let lists = [Some(list), list.get("data"), list.get("models"), list.get("result")];
    let entries = lists.into_iter().flatten().find_map(Value::as_array)?;
    let id_of = |entry: &Value| {
        let names = ["id", "name", "model"];
        let name = entry.as_str().or_else(|| names.iter().find_map(|key| entry.get(*key)?.as_str()))?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    };
    let model = |entry: &Value| {
        let length =
            ["/max_model_len", "/meta/n_ctx", "/context_length", "/context_window", "/max_context_length"];
        let length = length.iter().find_map(|path| entry.pointer(path)?.as_u64());
        let context_length = length.map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX));
        Some(EndpointModel { id: id_of(entry)?, context_length })
    };
    let models: Vec<_> = entries.iter().filter_map(model).take(MAX_MODELS).collect();
    if models.is_empty() && !entries.is_empty() {
        return None;
    }
    let owner = entries.iter().find_map(|entry| entry.get("owned_by")?.as_str()).unwrap_or_default();
    Some((server_kind(owner), models))
}

/// The fields of DRY and XTC, where they are on.
fn dry_and_xtc(sampling: &Sampling) -> Vec<(&'static str, Value)> {
    let (dry, xtc) = (&sampling.dry, &sampling.xtc);
    let mut fields = Vec::new();
    if dry.multiplier > 0.0 {
        fields.extend([
            ("dry_multiplier", number(dry.multiplier)),
            ("dry_base", number(dry.base)),
            ("dry_allowed_length", json!(dry.allowed_length)),
            ("dry_penalty_last_n", dry.last_n.map_or(json!(-1), |n| json!(n))),
            ("dry_sequence_breakers", json!(dry.sequence_breakers)),
        ]);
    }
    if xtc.probability > 0.0 {
        fields
            .extend([("xtc_probability", number(xtc.probability)), ("xtc_threshold", number(xtc.threshold))]);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::protocol::{Location, ModelRef, Prompt};

    fn request(chat: ChatOptions) -> GenerateRequest {
        GenerateRequest {
            turn: "t".into(),
            model: ModelRef { id: "x".into(), location: Location::BuiltIn },
            load: Default::default(),
            conversation: None,
            prompt: Prompt::Chat(Vec::new()),
            sampling: Sampling { temperature: 0.8, top_k: 0, seed: Some(u64::MAX), ..Sampling::default() },
            max_tokens: Some(9),
            stop: vec!["x".into()],
            ignore_eos: false,
            chat,
            constraint: None,
            logprobs: None,
            speculation: None,
            compression: None,
            had: None,
            resume: None,
            bounds: Default::default(),
            keeping: None,
            profile: false,
        }
    }

    #[test]
    fn each_kind_is_spoken_to_in_its_own_way() {
        let mut kwargs = Map::new();
        kwargs.insert("enable_thinking".into(), false.into());
        kwargs.insert("reasoning_effort".into(), "low".into());
        let asked = request(ChatOptions { kwargs, ..ChatOptions::default() });
        let body = |kind: ServerKind| Value::Object(Dialect(kind).body("m", &[], &asked));
        for kind in ServerKind::ALL {
            let body = body(kind);
            assert_eq!((&body["temperature"], &body["stream"]), (&json!(0.8), &json!(true)));
            assert_eq!(body.get("top_p"), None, "the default is the server's");
            assert_eq!((&body["seed"], &body["stop"]), (&json!(i64::MAX), &json!(["x"])));
            assert!(body.get("max_tokens").is_some() != body.get("max_completion_tokens").is_some());
            assert_eq!(body.get("chat_template_kwargs").is_some(), Dialect(kind).takes_kwargs());
        }
        assert_eq!(body(ServerKind::Vllm)["top_k"], -1);
        assert_eq!(body(ServerKind::LlamaCpp)["top_k"], 0);
        assert_eq!(body(ServerKind::Other)["reasoning_effort"], "low");
        assert_eq!(body(ServerKind::Ollama)["reasoning_effort"], "none");
        assert_eq!(body(ServerKind::OpenAi).get("top_k"), None, "it refuses what it doesn't know");
    }

    #[test]
    fn messages_keep_what_belongs_to_them() {
        let call =
            json!({ "id": "a", "type": "function", "function": { "name": "f", "arguments": { "x": 1 } } });
        let message = PromptMessage {
            role: "assistant".into(),
            reasoning: "Hm".into(),
            tool_calls: vec![call],
            ..PromptMessage::default()
        };
        let other = Dialect(ServerKind::Other).messages(std::slice::from_ref(&message));
        assert_eq!(other[0]["tool_calls"][0]["function"]["arguments"], "{\"x\":1}");
        assert_eq!(other[0].get("reasoning"), None);
        assert_eq!(Dialect(ServerKind::LlamaCpp).messages(&[message])[0]["reasoning_content"], "Hm");
    }

    #[test]
    fn images_are_parts_of_messages() {
        const PNG: &str =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";
        let image = images::from_base64(PNG).unwrap();
        let at = |at: usize| contract::protocol::PromptImage { at, ..image.clone() };
        let low = contract::protocol::PromptImage { detail: ImageDetail::Low, ..at(1) };
        let message = PromptMessage {
            role: "user".into(),
            content: "ab".into(),
            images: vec![at(0), low],
            ..PromptMessage::default()
        };
        let url =
            json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{PNG}") } });
        let text = |text: &str| json!({ "type": "text", "text": text });
        let said = Dialect(ServerKind::Other).messages(&[message]);
        let mut low = url.clone();
        low["image_url"]["detail"] = json!("low");
        assert_eq!(said[0]["content"], json!([url, text("a"), low, text("b")]));
    }

    #[test]
    fn lists_of_models_are_read() {
        let read = |list: Value| models(&list);
        let one = |kind, id: &str, context_length| {
            Some((kind, vec![EndpointModel { id: id.into(), context_length }]))
        };
        let vllm = json!({ "data": [{ "id": "a/b", "owned_by": "vllm", "max_model_len": 4096 }] });
        assert_eq!(read(vllm), one(ServerKind::Vllm, "a/b", 4096));
        let meta = json!({ "n_ctx": 8192, "n_ctx_train": 131_072 });
        let llama = json!({ "data": [{ "id": "x.gguf", "owned_by": "llamacpp", "meta": meta }] });
        assert_eq!(read(llama), one(ServerKind::LlamaCpp, "x.gguf", 8192));
        let ollama = json!({ "data": [{ "id": "llama3.2:1b", "owned_by": "library" }, { "no": "id" }, 7] });
        assert_eq!(read(ollama), one(ServerKind::Ollama, "llama3.2:1b", 0));
        assert_eq!(read(json!({ "data": [] })), Some((ServerKind::Other, Vec::new())));
        assert_eq!(read(json!([{ "id": "m" }, { "no": "id" }])), one(ServerKind::Other, "m", 0));
        assert_eq!(read(json!({ "models": [{ "name": "m" }] })), one(ServerKind::Other, "m", 0));
        assert_eq!(read(json!(["m"])), one(ServerKind::Other, "m", 0));
        assert_eq!(read(json!([])), Some((ServerKind::Other, Vec::new())));
        assert_eq!([json!([1, 2]), json!({ "data": 1 }), json!(null)].map(read), [None, None, None]);
    }
}

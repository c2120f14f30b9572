//! An application in a temporary folder, with other servers added to it.

use std::path::PathBuf;

use app::App;
use app::AppConfig;
use app::Environment;
use app::GenerateArgs;
use app::SamplingArgs;
use contract::protocol::{ChatOptions, Prompt, PromptMessage};
use contract::types::{EndpointAddArgs, EndpointInfo, SendArgs, TurnEventKind, TurnStats};
use serde_json::json;

use super::fake::Fake;

pub struct Home {
    pub folder: PathBuf,
    pub app: App,
}

impl Home {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("inglenook-remote-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let environment = Environment(|name| (name == "LAB_KEY").then(|| "sk-from-environment".into()));
        let config = AppConfig { data_dir: Some(folder.clone()), environment, ..AppConfig::default() };
        let app = App::open(config).unwrap();
        app.settings_set("titles", &json!(false)).unwrap();
        Self { folder, app }
    }

    pub fn add(&self, name: &str, fake: &Fake) -> EndpointInfo {
        let args = EndpointAddArgs { name: name.into(), url: fake.url.clone(), ..EndpointAddArgs::default() };
        self.app.endpoint_add(args).unwrap()
    }

    /// The answer to a message in a new conversation: its id, and how it ended.
    pub fn send(&self, model: &str, text: &str) -> (String, Outcome) {
        let args = SendArgs { text: text.into(), model: Some(model.into()), ..SendArgs::default() };
        let started = self.app.send(args).unwrap();
        (started.conversation, self.follow(&started.turn))
    }

    pub fn follow(&self, turn: &str) -> Outcome {
        let mut outcome = Outcome::default();
        for event in self.app.watch_turn(turn, 0).unwrap().flatten() {
            match event.kind {
                TurnEventKind::Text { text, .. } => outcome.text.push_str(&text),
                TurnEventKind::Reasoning { text, .. } => outcome.reasoning.push_str(&text),
                TurnEventKind::Revised { text, reasoning } => {
                    (outcome.text, outcome.reasoning) = (text, reasoning);
                }
                TurnEventKind::ToolCall { call } => outcome.calls.push((call.id, call.name, call.arguments)),
                TurnEventKind::Notice { error } => outcome.notices.push(error.code),
                TurnEventKind::Compacted { .. } => outcome.is_compacted = true,
                TurnEventKind::Done { stats } => outcome.stats = Some(stats),
                TurnEventKind::Failed { error } => outcome.error = Some(error.code),
                TurnEventKind::Queued { .. }
                | TurnEventKind::Loading { .. }
                | TurnEventKind::Prefill { .. }
                | TurnEventKind::Compacting { .. }
                | TurnEventKind::Logprobs { .. } => {}
            }
        }
        outcome
    }

    pub fn generate(&self, model: &str, chat: ChatOptions) -> Outcome {
        let message = PromptMessage { role: "user".into(), content: "Hi".into(), ..PromptMessage::default() };
        let args = GenerateArgs {
            model: Some(model.into()),
            prompt: Prompt::Chat(vec![message]),
            sampling: SamplingArgs::default(),
            max_tokens: Some(9),
            stop: Vec::new(),
            ignore_eos: false,
            chat,
            constraint: None,
            logprobs: None,
        };
        self.follow(&self.app.generate(args).unwrap())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a turn told.
#[derive(Debug, Default)]
pub struct Outcome {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<(String, String, String)>,
    pub notices: Vec<String>,
    pub is_compacted: bool,
    pub stats: Option<TurnStats>,
    pub error: Option<String>,
}

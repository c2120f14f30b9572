//! What a turn carries from its request to its end: how its conversation is summarised, and how
//! tool calls continue.

use std::sync::Arc;

use contract::Sampling;
use contract::protocol::{ChatOptions, GenerateRequest, LoadSpec, ModelRef, Prompt, PromptMessage};
use contract::types::{CompactionStrategy, OneOffOptions, ToolCall, ToolRun, ToolRunState};

use crate::tools::offered_tools::{OfferedTool, OfferedTools};

/// The result of a stopped call, as the model sees it.
pub(crate) const STOPPED: &str = "The user stopped this call.";

/// What summaries and titles of a turn's conversation are made with, and what its tool calls go on with.
#[derive(Debug, Clone)]
pub(crate) struct TurnPlan {
    pub conversation: String,
    pub model: ModelRef,
    pub load: LoadSpec,
    pub chat: ChatOptions,
    pub system: Option<String>,
    pub max_tokens: Option<usize>,
    /// Compaction where the conversation chooses none.
    pub default: CompactionStrategy,
    /// Options of this answer alone.
    pub one_off: Option<OneOffOptions>,
    /// How the results of tool calls are answered. None: no tools are offered.
    pub next: Option<Box<NextAnswer>>,
}

impl TurnPlan {
    /// A request of the application itself, such as for a title. It leaves the conversation's context alone, and always
    /// has the same answer. The model does not reason.
    pub fn side_request(
        &self,
        turn: String,
        messages: Vec<PromptMessage>,
        max_tokens: usize,
        chat: ChatOptions,
    ) -> GenerateRequest {
        GenerateRequest {
            turn,
            model: self.model.clone(),
            load: self.load.clone(),
            conversation: None,
            prompt: Prompt::Chat(messages),
            sampling: Sampling { temperature: 0.0, ..Sampling::default() },
            max_tokens: Some(max_tokens),
            stop: Vec::new(),
            ignore_eos: false,
            chat: ChatOptions { reasoning_budget: Some(0), ..chat },
            constraint: None,
            logprobs: None,
            speculation: None,
            had: None,
            resume: None,
            compression: None,
            bounds: Default::default(),
            keeping: None,
            profile: false,
        }
    }
}

/// What the next answer of a conversation is requested with.
#[derive(Debug, Clone)]
pub(crate) struct NextAnswer {
    pub offer: Arc<OfferedTools>,
    /// Without its turn. It has the messages only where they are kept nowhere else.
    pub request: GenerateRequest,
    pub system: Option<String>,
    /// Compaction where the conversation chooses none.
    pub default: CompactionStrategy,
    /// Tool rounds since the user's last message.
    pub round: u32,
    /// Options of these answers alone.
    pub one_off: Option<OneOffOptions>,
}

impl NextAnswer {
    /// What goes with a turn until its end.
    pub fn plan(&self, conversation: &str) -> TurnPlan {
        TurnPlan {
            conversation: conversation.into(),
            model: self.request.model.clone(),
            load: self.request.load.clone(),
            chat: self.request.chat.clone(),
            system: self.system.clone(),
            max_tokens: self.request.max_tokens,
            default: self.default,
            one_off: self.one_off.clone(),
            next: (!self.offer.tools.is_empty()).then(|| Box::new(self.clone())),
        }
    }

    /// Calls before any of them is allowed or run.
    pub fn waiting(&self, calls: Vec<ToolCall>, ended_well: bool) -> Vec<ToolCall> {
        let (state, result) = match ended_well {
            true => (ToolRunState::Asking, ""),
            false => (ToolRunState::Stopped, STOPPED),
        };
        let run = |call: &ToolCall| new_run(&self.offer, call, state, result);
        calls.into_iter().map(|call| ToolCall { run: Some(run(&call)), ..call }).collect()
    }
}

/// The run of a call that has not begun.
pub(crate) fn new_run(offer: &OfferedTools, call: &ToolCall, state: ToolRunState, result: &str) -> ToolRun {
    let offered = offer.find(&call.name);
    let named = |name: fn(&OfferedTool) -> &String| offered.map(name).cloned().unwrap_or_default();
    ToolRun {
        server: named(|it| &it.server),
        server_name: named(|it| &it.server_name),
        tool: offered.map_or_else(|| call.name.clone(), |it| it.tool.clone()),
        state,
        result: result.into(),
        cut: 0,
        duration_ms: 0,
        findings: Vec::new(),
        at_limit: false,
    }
}

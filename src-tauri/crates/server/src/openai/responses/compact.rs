//! `POST /v1/responses/compact`: a summary in place of the items so far.

use app::GenerateArgs;
use axum::body::Body;
use axum::response::Response;
use contract::protocol::{Prompt, PromptMessage};
use contract::types::{TurnEventKind, TurnStats};
use serde_json::{Value, json};

use super::summary_item::summary_item;
use super::writer::usage;
use super::{PreparedRequest, about_input, prepared};
use crate::fault::OpenAiFault;
use crate::guard::CallerState;
use crate::openai::answer_values::fault_of_turn;
use crate::openai::fields::Result;
use crate::openai::turn_set::TurnSet;
use crate::openai::{answered, new_id, now_s, ok};
use crate::owner::ObjectOwner;

/// What the model is asked for.
const INSTRUCTION: &str = "Summarize our conversation so far for yourself: names, numbers, facts, decisions and what is \
still open. Write only the summary.";

/// Handles `POST /v1/responses/compact`.
pub async fn compact(CallerState(shared): CallerState, owner: ObjectOwner, body: Body) -> Response {
    answered(body, |body| async move {
        let PreparedRequest { request, args, .. } = prepared(&shared, &owner, &body).await?;
        let Prompt::Chat(mut messages) = args.prompt else {
            return Err(contract::Error::bug("a response without messages").into());
        };
        let (role, content) = ("user".into(), INSTRUCTION.into());
        messages.push(PromptMessage { role, content, ..PromptMessage::default() });
        let args = GenerateArgs { prompt: Prompt::Chat(messages), ..args };
        let turns = TurnSet::start(shared.app.clone(), vec![args]).await.map_err(about_input)?;
        let (summary, stats) = whole(turns).await.map_err(about_input)?;
        let is_kept = |item: &&Value| item["type"] == "message" && item["role"] == "user";
        let mut output: Vec<Value> = request.input.iter().filter(is_kept).cloned().collect();
        output.push(summary_item(&summary));
        Ok(ok(&json!({
            "id": new_id("resp"), "object": "response.compaction", "created_at": now_s(), "output": output,
            "usage": usage(&stats, 0),
        })))
    })
    .await
}

/// The text of an answer.
async fn whole(mut turns: TurnSet) -> Result<(String, TurnStats)> {
    let (mut summary, mut end) = (String::new(), None);
    while let Some(events) = turns.next().await {
        for event in events {
            match event.kind {
                TurnEventKind::Text { text, .. } => summary.push_str(&text),
                TurnEventKind::Revised { text, .. } => summary = text,
                TurnEventKind::Done { stats } => end = Some(stats),
                TurnEventKind::Failed { error } => return Err(fault_of_turn(&error)),
                TurnEventKind::Queued { .. }
                | TurnEventKind::Loading { .. }
                | TurnEventKind::Prefill { .. }
                | TurnEventKind::Compacting { .. }
                | TurnEventKind::Compacted { .. }
                | TurnEventKind::Logprobs { .. }
                | TurnEventKind::Reasoning { .. }
                | TurnEventKind::ToolCall { .. }
                | TurnEventKind::Notice { .. } => {}
            }
        }
    }
    let stats =
        end.ok_or_else(|| OpenAiFault::from(contract::Error::bug("an answer ended without an end")))?;
    Ok((summary, stats))
}

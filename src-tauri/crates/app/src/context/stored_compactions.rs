//! The compactions of a conversation as stored in the database, and the requests built from them.

use contract::Result;
use contract::protocol::{CompactedRange, Compression, CountRequest, FitRequest, Strategy, SummaryText};
use contract::types::{CompactionInfo, CompactionStrategy};
use prompt::history::{history, with_system};
use session::{Branch, BranchMessage, CompactionRow, Session};

use crate::retrieval::images::can_see;
use crate::turns::turn_plan::TurnPlan;
use file_search::injected::with_files;
use records::conversations::history_messages;

/// The conversation's own choice.
pub(crate) fn own_choice(session: &Session, conversation: &str) -> Result<Option<CompactionStrategy>> {
    let name = session.compaction_strategy(conversation)?;
    Ok(name.and_then(|name| CompactionStrategy::of_name(&name)))
}

pub(crate) fn compactions(
    session: &Session,
    conversation: &str,
    branch: &[BranchMessage],
) -> Result<Vec<CompactionRow>> {
    let ids: Vec<&str> = branch.iter().map(|message| message.row.id.as_str()).collect();
    Ok(session.compactions(conversation, &ids)?)
}

/// How a branch is made to fit. `default`: where the conversation says nothing. None: not at all.
pub(crate) fn compression_of(
    session: &Session,
    conversation: &str,
    branch: &[BranchMessage],
    default: CompactionStrategy,
) -> Result<Option<Compression>> {
    let own = own_choice(session, conversation)?;
    let Some(strategy) = own.unwrap_or(default).strategy() else { return Ok(None) };
    let compactions = compactions(session, conversation, branch)?;
    let compacted_until = last_used(&compactions, branch, |row| row.strategy != Strategy::Attention.name());
    let compacted_until = compacted_until.map(|row| row.message.clone());
    let summaries = compactions.into_iter().filter(|row| !row.is_used).filter_map(|row| {
        let CompactionRow { first, message: until, level, summary, .. } = row;
        summary.map(|text| SummaryText { first, until, level, text })
    });
    Ok(Some(Compression { strategy, compacted_until, summaries: summaries.collect() }))
}

/// What a reader is shown of it.
pub(crate) fn compaction_info(
    session: &Session,
    conversation: &str,
    branch: &[BranchMessage],
) -> Result<Option<CompactionInfo>> {
    Ok(last_used(&compactions(session, conversation, branch)?, branch, |_| true).map(info))
}

/// Keeps the place up to which prompts leave messages out.
pub(crate) fn keep_compaction(
    session: &mut Session,
    range: &CompactedRange,
    now_ms: i64,
) -> Result<CompactionInfo> {
    let row = CompactionRow {
        id: session.new_id(),
        first: range.first.clone(),
        message: range.until.clone(),
        strategy: range.strategy.name().into(),
        level: 0,
        summary: range.summary.clone(),
        is_used: true,
        tokens_before: range.tokens_before,
        tokens_after: range.tokens_after,
        created_ms: now_ms,
    };
    session.add_compaction(&row)?;
    Ok(info(&row))
}

/// The place that lies furthest down the branch; of several the newest.
fn last_used<'a>(
    compactions: &'a [CompactionRow],
    branch: &[BranchMessage],
    counts: impl Fn(&CompactionRow) -> bool,
) -> Option<&'a CompactionRow> {
    let place = |row: &&CompactionRow| branch.iter().position(|message| message.row.id == row.message);
    compactions.iter().filter(|row| row.is_used && counts(row)).max_by_key(place)
}

fn info(row: &CompactionRow) -> CompactionInfo {
    CompactionInfo {
        until: row.message.clone(),
        strategy: CompactionStrategy::of_name(&row.strategy).unwrap_or(CompactionStrategy::Window),
        summary: row.summary.clone(),
        tokens_before: row.tokens_before,
        tokens_after: row.tokens_after,
        created_ms: row.created_ms,
    }
}

/// The conversation as it is now, for the worker to make fit.
pub(crate) fn fit_request(session: &Session, setup: &TurnPlan, ahead: bool) -> Result<FitRequest> {
    let Branch { messages: branch, .. } = session.branch(&setup.conversation)?;
    let compaction_strategy = compression_of(session, &setup.conversation, &branch, setup.default)?;
    let mut compaction_strategy = compaction_strategy.unwrap_or(Compression {
        strategy: Strategy::Window,
        compacted_until: None,
        summaries: Vec::new(),
    });
    if compaction_strategy.strategy == Strategy::Attention {
        compaction_strategy.strategy = Strategy::Window;
    }
    let sees = || can_see(&setup.model, &setup.load);
    let count = CountRequest {
        model: setup.model.clone(),
        load: setup.load.clone(),
        conversation: Some(setup.conversation.clone()),
        messages: with_system(
            history(history_messages(with_files(session, branch, &sees)?)),
            setup.system.clone(),
        ),
        chat: setup.chat.clone(),
        compression: Some(compaction_strategy),
        texts: Vec::new(),
    };
    Ok(FitRequest { count, max_tokens: setup.max_tokens, ahead })
}

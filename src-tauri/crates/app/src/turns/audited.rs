//! The audit log: the one place where the end of a turn is recorded and counted for its key, and where refused files are.

use std::sync::Arc;

use audit::{AuditEntry, AuditRecord, AuditTokens, RefusalRecord, Verification};
use contract::types::{ErrorInfo, Finish, TurnEventKind};
use contract::{Error, Result};
use platform::calendar;

use super::AUDIT_FOLDER;
use super::turn::{Turn, TurnOrigin};
use crate::network::callers::Caller;
use crate::settings::TypedSettings;
use crate::{App, Services};

/// Codes of refusals: something was not what it should be, and somebody may have wanted that.
const REFUSALS: &[&str] = &[
    "download.damaged",
    "hub.file_name",
    "hub.manifest",
    "hub.redirect",
    "hub.signature",
    "hub.signed_mismatch",
    "model.hash_mismatch",
    "server.foreign",
];

impl Services {
    /// Who requested a turn that begins now.
    pub(crate) fn origin(&self, caller: Arc<Caller>, model: &str) -> TurnOrigin {
        TurnOrigin { caller, model: model.into(), began_ms: self.ctx.clock.now_utc_ms() }
    }

    /// Records how a turn ended. Where the log can't be written the user gets a notice; the answer stays.
    pub(crate) fn audit_end(&self, turn: &Turn, last: &TurnEventKind, text: &str) {
        let (outcome, error, tokens) = ending(last);
        self.turn_metrics.count(outcome, last);
        let caller = &turn.origin.caller;
        if let Some(key) = &caller.key {
            let used = u64::from(tokens.prompt) + u64::from(tokens.answer);
            self.api_keys.usages.count_tokens(&key.id, used);
        }
        let settings = &self.ctx.settings;
        let record = AuditRecord {
            began: time(turn.origin.began_ms),
            ended: time(self.ctx.clock.now_utc_ms()),
            interface: caller.interface,
            key: caller.key.as_ref().map(|key| key.name.clone()),
            route: caller.route.clone(),
            turn: turn.id.clone(),
            model: turn.origin.model.clone(),
            tokens,
            outcome: outcome.into(),
            error,
            text: settings.audit_text().unwrap_or(false).then(|| text.to_owned()),
        };
        self.append_audit(record.into());
    }

    /// Records that a file, an address or a signature was refused. Other errors are not recorded.
    pub(crate) fn audit_refusal(&self, subject: &str, error: &ErrorInfo) {
        if REFUSALS.contains(&error.code.as_str()) {
            let record = RefusalRecord {
                at: time(self.ctx.clock.now_utc_ms()),
                refused: error.code.clone(),
                subject: subject.into(),
                message: error.message.clone(),
            };
            self.append_audit(record.into());
        }
    }

    fn append_audit(&self, entry: AuditEntry) {
        // Settings that can't be read leave the log on: it is there to be complete.
        if !self.ctx.settings.audit_log().unwrap_or(true) {
            return;
        }
        if let Err(error) = self.audit.append(entry) {
            tracing::warn!(code = error.code(), "an entry is missing in the audit log: {error}");
            self.ctx.events.notice(error.info);
        }
    }
}

fn ending(last: &TurnEventKind) -> (&'static str, Option<String>, AuditTokens) {
    match last {
        TurnEventKind::Done { stats } => {
            let outcome = match stats.finish {
                Finish::Stop => "stop",
                Finish::ToolCalls => "tool_calls",
                Finish::Length => "length",
                Finish::Cancelled => "cancelled",
                Finish::ContextFull => "context_full",
                Finish::TimeUp => "time_up",
            };
            let tokens = AuditTokens {
                prompt: stats.prompt_tokens,
                reused: stats.reused_tokens,
                answer: stats.generated_tokens,
            };
            (outcome, None, tokens)
        }
        TurnEventKind::Failed { error } => ("failed", Some(error.code.clone()), AuditTokens::default()),
        _ => ("unknown", None, AuditTokens::default()),
    }
}

fn time(utc_ms: i64) -> String {
    format!("{}Z", calendar::date_time(utc_ms))
}

impl App {
    /// Who requests a turn that begins now.
    pub(crate) fn origin(&self, model: &str) -> TurnOrigin {
        self.services().origin(Arc::clone(&self.caller), model)
    }

    /// Records a request that came from elsewhere than it may.
    pub fn audit_foreign(&self, source: &str, message: &str) {
        self.services().audit_refusal(source, &Error::input("server.foreign", message, "").info);
    }

    /// Checks the hash chain of the audit log.
    pub fn audit_verify(&self) -> Result<Verification> {
        audit::verify(&self.dirs().data.join(AUDIT_FOLDER), &*self.ctx().io)
    }
}

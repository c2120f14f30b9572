//! Turns: answers in progress, and those that ended recently, so that their events can be replayed.

pub mod audited;
pub mod event_pump;
pub mod guide_responder;
pub mod latency_histogram;
pub mod turn;
pub mod turn_metrics;
pub mod turn_plan;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::types::{OneOffOptions, TurnEventKind};
use platform::EventLog;
use session::{MessageRow, Session};

use event_pump::UnsavedEnding;
use turn::{AnswerPlace, ContinuedFrom, Turn, TurnOrigin};
use turn_plan::TurnPlan;

/// Folder of the audit log, in the data folder.
pub(crate) const AUDIT_FOLDER: &str = "audit";

/// Ended turns whose events can still be replayed.
const MAX_ENDED_TURNS: usize = 64;

/// All turns that are known.
#[derive(Default)]
pub(crate) struct Turns {
    table: Mutex<TurnTable>,
}

#[derive(Default)]
struct TurnTable {
    turns: HashMap<String, Arc<Turn>>,
    /// Turns that ended, oldest first.
    ended: VecDeque<String>,
    /// What goes with a turn until its end, by turn.
    plans: HashMap<String, Box<TurnPlan>>,
    /// Ends of answers that could not be saved yet, by message.
    unsaved: HashMap<String, UnsavedEnding>,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, TurnTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns that have not ended.
    pub fn n_open(&self) -> usize {
        self.lock().turns.values().filter(|turn| !turn.feed.is_closed()).count()
    }

    pub fn open_turns(&self) -> Vec<Arc<Turn>> {
        self.lock().turns.values().filter(|turn| !turn.feed.is_closed()).cloned().collect()
    }

    pub fn get(&self, id: &str) -> Option<Arc<Turn>> {
        self.lock().turns.get(id).cloned()
    }

    /// A turn that waits to be answered. `place`: the message it writes, if that is kept.
    pub fn add(
        &self,
        id: String,
        place: Option<AnswerPlace>,
        continued: Option<ContinuedFrom>,
        origin: TurnOrigin,
    ) -> Arc<Turn> {
        let turn =
            Arc::new(Turn { id: id.clone(), feed: EventLog::new(usize::MAX), place, continued, origin });
        turn.publish(TurnEventKind::Queued { position: 0 });
        self.lock().turns.insert(id, Arc::clone(&turn));
        turn
    }

    /// A turn's last event is about to be published.
    pub fn end(&self, id: &str) {
        let mut table = self.lock();
        table.ended.push_back(id.to_owned());
        if table.ended.len() > MAX_ENDED_TURNS
            && let Some(oldest) = table.ended.pop_front()
        {
            table.turns.remove(&oldest);
        }
    }

    pub fn set_plan(&self, turn: &str, plan: TurnPlan) {
        self.lock().plans.insert(turn.to_owned(), Box::new(plan));
    }

    pub fn take_plan(&self, turn: &str) -> Option<Box<TurnPlan>> {
        self.lock().plans.remove(turn)
    }

    /// The one-off options of a turn's answer.
    pub fn one_off_options(&self, turn: &str) -> Option<OneOffOptions> {
        self.lock().plans.get(turn).and_then(|plan| plan.one_off.clone())
    }

    pub fn keep_unsaved(&self, message: &str, ending: UnsavedEnding) {
        self.lock().unsaved.insert(message.to_owned(), ending);
    }

    pub fn has_unsaved(&self) -> bool {
        !self.lock().unsaved.is_empty()
    }

    /// Shows a message with its ending, though that could not be saved yet.
    pub fn show_unsaved(&self, row: &mut MessageRow) {
        if let Some(ending) = self.lock().unsaved.get(&row.id) {
            ending.show_in(row);
        }
    }

    /// Tries again to save what could not be saved.
    pub fn retry_unsaved(&self, session: &mut Session) {
        self.lock().unsaved.retain(|_, ending| ending.save(session).is_err());
    }
}

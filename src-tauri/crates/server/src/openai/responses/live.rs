//! Responses that run, and those that ended recently: their events for any number of watchers.
//!
//! Guarantees that a response is stored before its last event is sent.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use app::App;
use platform::{EventLog, Watch};
use serde_json::Value;

use super::context::ResponseRecord;
use super::writer::ResponseWriter;
use crate::fault::OpenAiFault;
use crate::openai::blocking;
use crate::openai::turn_set::{ChoiceEvent, TurnSet};

/// Ended responses whose events can still be replayed as they came.
const MAX_ENDED_RESPONSES: usize = 64;

/// All responses that run or ended recently.
#[derive(Default)]
pub struct Responses {
    table: Mutex<ResponseTable>,
}

#[derive(Default)]
struct ResponseTable {
    live: HashMap<String, Arc<LiveResponse>>,
    /// Ended ones, oldest first.
    ended: VecDeque<String>,
}

/// A response that runs.
pub struct LiveResponse {
    pub owner: String,
    pub turn: String,
    writer: Mutex<ResponseWriter>,
    log: Arc<EventLog<Arc<Value>>>,
}

impl LiveResponse {
    fn writer(&self) -> MutexGuard<'_, ResponseWriter> {
        // The response is whole after every event.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response so far.
    pub fn snapshot(&self) -> Value {
        self.writer().snapshot()
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.log.is_closed()
    }

    /// Why it failed.
    pub fn fault(&self) -> Option<OpenAiFault> {
        self.writer().fault().cloned()
    }

    /// Its events after the first `n_seen`.
    pub fn watch(&self, n_seen: u64) -> Watch<Arc<Value>> {
        Watch::new(&self.log, n_seen)
    }

    /// Waits for the end.
    pub async fn ended(&self) {
        let mut watch = self.watch(self.log.count());
        while std::future::poll_fn(|context| watch.poll_next(context)).await.is_some() {}
    }
}

impl Responses {
    fn table(&self) -> MutexGuard<'_, ResponseTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner's response, if it runs or ended recently.
    pub fn get(&self, owner: &str, id: &str) -> Option<Arc<LiveResponse>> {
        self.table().live.get(id).filter(|live| live.owner == owner).cloned()
    }

    /// Forgets an ended response.
    pub fn forget(&self, id: &str) {
        self.table().live.remove(id);
    }

    /// Follows the turn of a response to its end. `begun` has its first events.
    pub fn run(
        self: &Arc<Self>,
        app: App,
        turns: TurnSet,
        begun: Vec<ChoiceEvent>,
        mut writer: ResponseWriter,
        record: ResponseRecord,
    ) -> Arc<LiveResponse> {
        let id = writer.snapshot()["id"].as_str().unwrap_or_default().to_owned();
        let log = EventLog::new(usize::MAX);
        for event in writer.begin() {
            log.push(|_| Arc::new(event));
        }
        let live = Arc::new(LiveResponse {
            owner: record.owner.clone(),
            turn: turns.first_turn().to_owned(),
            writer: Mutex::new(writer),
            log,
        });
        self.table().live.insert(id.clone(), Arc::clone(&live));
        let (responses, response) = (Arc::clone(self), Arc::clone(&live));
        tokio::spawn(async move {
            follow(app, turns, begun, &response, record).await;
            responses.end(id);
        });
        live
    }

    fn end(&self, id: String) {
        let mut table = self.table();
        table.ended.push_back(id);
        if table.ended.len() > MAX_ENDED_RESPONSES
            && let Some(oldest) = table.ended.pop_front()
        {
            table.live.remove(&oldest);
        }
    }
}

async fn follow(
    app: App,
    mut turns: TurnSet,
    begun: Vec<ChoiceEvent>,
    live: &LiveResponse,
    record: ResponseRecord,
) {
    let mut next = Some(begun);
    while let Some(events) = next {
        let (written, is_over) = {
            let mut writer = live.writer();
            let written: Vec<Value> = events.into_iter().flat_map(|event| writer.write(event.kind)).collect();
            (written, writer.is_over())
        };
        if is_over {
            save(&app, record.clone(), live.snapshot()).await;
        }
        for event in written {
            live.log.push(|_| Arc::new(event));
        }
        if is_over {
            break;
        }
        next = turns.next().await;
    }
    live.log.close();
}

async fn save(app: &App, record: ResponseRecord, response: Value) {
    let app = app.clone();
    if let Err(fault) = blocking(move || record.save(&app, &response)).await {
        tracing::warn!("a response could not be stored: {}", fault.message);
    }
}

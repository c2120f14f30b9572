//! Runs a single request to its end.

use crate::TokenId;
use crate::error::Result;
use crate::model::Model;
use crate::scheduler::{GenEvent, GenerationStats, Request, Scheduler};

/// A complete answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Every sampled token, including the end-of-generation token.
    pub ids: Vec<TokenId>,
    /// Text of the answer, without stop texts.
    pub text: String,
    /// Counts, and why the answer ended.
    pub done: GenerationStats,
}

/// Runs one request. `sink` receives every event and returns whether to continue; false cancels.
pub fn generate(
    model: &mut Model,
    request: Request,
    sink: &mut dyn FnMut(&GenEvent) -> bool,
) -> Result<Generation> {
    let id = request.id;
    let mut scheduler = Scheduler::new();
    scheduler.submit(request)?;
    let (mut ids, mut text, mut ended) = (Vec::new(), String::new(), None);
    let mut go_on = true;
    loop {
        if !go_on {
            scheduler.cancel(id);
        }
        let work_left = scheduler.step(model, &mut |_, event| {
            go_on &= sink(&event);
            match event {
                GenEvent::Prefill { .. } => {}
                GenEvent::Token { id, text: piece, .. } => {
                    ids.push(id);
                    text.push_str(&piece);
                }
                GenEvent::Done(done) => ended = Some(Ok(done)),
                GenEvent::Failed(error) => ended = Some(Err(error)),
            }
        });
        if let Some(ended) = ended {
            return ended.map(|done| Generation { ids, text, done });
        }
        assert!(work_left, "a request ends with an event");
    }
}

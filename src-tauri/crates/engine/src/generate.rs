//! One request to its end, for callers that have only one.

use crate::TokenId;
use crate::error::Result;
use crate::model::Model;
use crate::scheduler::{GenEvent, GenerationStats, Request, Scheduler};

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// Every sampled token, the end-of-generation token included.
    pub ids: Vec<TokenId>,
    /// The answer's text, without stop texts.
    pub text: String,
    pub done: GenerationStats,
}

/// Runs one request. `sink` sees every event as it happens; it returns whether to go on (false cancels).
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
                GenEvent::Token { id, text: piece } => {
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

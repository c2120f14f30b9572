//! What the renderings of one prompt may take together.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use io::{Clock, RealClock};
use jinja::{Limits, Stop};
use kernels::Interrupt;
use serde_json::Value;

use super::RenderInput;

/// Time for a prompt. Published templates take a millisecond.
pub const DEADLINE: Duration = Duration::from_millis(200);

/// Memory of values and output, beside what the conversation itself needs.
pub const MAX_BYTES: usize = 32 << 20;

/// How often a conversation may lie in memory: as values, in a text that the template builds, and as output.
const COPIES_OF_INPUT: usize = 4;

/// Bytes of a JSON value beside its text.
const VALUE_BYTES: usize = 160;

/// Work below which no rendering is stopped for its time: some 30 ms, a hundred times what published templates need for
/// a long conversation. A machine that sleeps or is overloaded fails none of those.
const MIN_WORK: u64 = 500_000;

/// Work at which any rendering ends, whatever the clock says: about a second.
const MAX_WORK: u64 = 64_000_000;

/// Time and work of the renderings so far.
pub struct RenderBudget {
    interrupt: Option<Interrupt>,
    clock: Arc<RealClock>,
    work: Cell<u64>,
}

impl RenderBudget {
    /// A budget that begins now. `interrupt` ends it early.
    pub fn new(interrupt: Option<&Interrupt>) -> Self {
        Self { interrupt: interrupt.cloned(), clock: Arc::new(RealClock::new()), work: Cell::new(0) }
    }

    /// Counts the work of a rendering that ended well.
    pub fn note(&self, work: u64) {
        self.work.set(self.work.get().saturating_add(work));
    }

    /// Bounds of the next rendering.
    pub fn limits(&self, input: &RenderInput<'_>, messages: &[Value], tools: &Value) -> Limits {
        let kwargs = input.kwargs.values().map(size).sum::<usize>();
        let given = messages.iter().map(size).sum::<usize>() + size(tools) + kwargs;
        let before = self.work.get();
        let clock = Arc::clone(&self.clock);
        let interrupt = self.interrupt.clone();
        let stop = move |work: u64| {
            if interrupt.as_ref().is_some_and(Interrupt::is_requested) {
                return Some(Stop::Cancelled);
            }
            let is_much = before.saturating_add(work) >= MIN_WORK;
            (is_much && clock.monotonic() >= DEADLINE).then_some(Stop::Deadline)
        };
        Limits {
            max_bytes: MAX_BYTES.saturating_add(given.saturating_mul(COPIES_OF_INPUT)),
            max_work: MAX_WORK.saturating_add(given as u64),
            stop: Arc::new(stop),
        }
    }
}

/// Bytes that a JSON value has as a template's value, about.
fn size(json: &Value) -> usize {
    VALUE_BYTES
        + match json {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size).sum(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| 2 * key.len() + VALUE_BYTES + size(value)).sum()
            }
        }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::template::ChatTemplate;

    fn render(source: &str, content: &str, interrupt: &Interrupt) -> Result<String, (&'static str, String)> {
        let template = ChatTemplate::from_source(source).expect("compiles");
        let messages = [json!({"role": "user", "content": content})];
        let (kwargs, tools) = (Map::new(), Value::Null);
        let input = RenderInput {
            messages: &messages,
            tools: &tools,
            kwargs: &kwargs,
            bos_token: "",
            eos_token: "",
            now: None,
        };
        let rendered = template.render_until(&input, interrupt);
        rendered.map(|it| it.text).map_err(|error| {
            assert!(!error.remedy().is_empty());
            (error.code(), error.to_string())
        })
    }

    const QUADRATIC: &str =
        "{% set x = namespace(a=[]) %}{% for i in range(100000) %}{% set x.a = x.a + [i] %}{% endfor %}";

    #[test]
    fn what_takes_too_long_or_too_much_is_stopped() {
        let free = Interrupt::default();
        let (code, message) = render(QUADRATIC, "hi", &free).expect_err("too slow");
        assert_eq!(code, "template.limit");
        assert!(message.contains("200 ms"), "{message}");
        let doubling =
            "{% set x = namespace(a='x') %}{% for i in range(99) %}{% set x.a = x.a + x.a %}{% endfor %}";
        let (code, message) = render(doubling, "hi", &free).expect_err("too large");
        assert_eq!(code, "template.limit");
        assert!(message.contains("32 MB"), "{message}");
    }

    #[test]
    fn an_interruption_ends_a_rendering() {
        let interrupt = Interrupt::default();
        interrupt.request();
        assert_eq!(render(QUADRATIC, "hi", &interrupt).expect_err("ended").0, "template.cancelled");
    }

    /// The bound on memory is beside what the conversation needs.
    #[test]
    fn a_long_conversation_is_rendered() {
        let long = "words and words. ".repeat(1 << 20);
        let source = "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t ~ m.content|trim %}{% endfor %}{{ ns.t }}";
        let text = render(source, &long, &Interrupt::default()).expect("renders");
        assert_eq!(text, long.trim());
    }
}

//! Server-sent events and streamed answers: the same however their bytes are cut.

use net::sse::Events;
use remote::fuzzing::read_answer;

use crate::FuzzTarget;

/// Reads event streams, and answers of model servers.
pub static SSE: FuzzTarget = FuzzTarget { name: "sse", read, max_bytes: 256 << 20 };

fn read(input: &[u8]) {
    // The first byte is the length of the pieces.
    let Some((n, body)) = input.split_first() else { return };
    let n = usize::from(*n).max(1);
    for make in [Events::default, Events::lenient] {
        assert_eq!(events(make(), body, body.len().max(1)), events(make(), body, n), "in pieces of {n}");
    }
    let whole = read_answer(std::iter::once(body));
    assert_eq!(whole, read_answer(body.chunks(n)), "in pieces of {n}");
}

fn events(mut events: Events, body: &[u8], n: usize) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for piece in body.chunks(n) {
        all.extend(events.push(piece).ok()?);
    }
    all.extend(std::iter::from_fn(|| events.end()));
    Some(all)
}

//! A sequence as bytes, and back: for checkpoint files and for other processes.
//!
//! `format` lays the bytes out and is the one judge: it sees every snapshot before it leaves and after it comes in.
//! Whatever doesn't fit is refused with its own message, and the caller computes the tokens again.

use kernels::{Executor, Retention};

use super::cache::{KvCache, SequenceId};
use super::kept::{Kept, Shared};
use crate::error::Result;

mod format;

use format::{Contents, HEADER_LEN, check, seal};
pub use format::{FORMAT_VERSION, Identity};

/// The sequence as bytes, with the last position that was kept before its end: where a template that drops old
/// reasoning goes back to.
pub fn write(identity: &Identity, cache: &KvCache, executor: &Executor, seq: SequenceId) -> Result<Vec<u8>> {
    let tokens = cache.tokens(seq)?;
    let window = cache.window_pages(seq)?;
    let kept = cache.kept(seq)?.iter().rfind(|kept| kept.position < tokens.len());
    let shared = kept.map(|kept| shared(kept, window));
    let mut out = vec![0; HEADER_LEN];
    tokens.iter().for_each(|token| out.extend_from_slice(&token.to_le_bytes()));
    let mut add = |retention, pages: &[u32]| -> Result<()> {
        for &page in pages {
            for layer in layers(executor, retention) {
                out.extend_from_slice(executor.kv_page(layer, page)?);
            }
        }
        Ok(())
    };
    add(Retention::All, cache.pages(seq)?)?;
    add(Retention::Window, window.held())?;
    if let (Some(kept), Some(shared)) = (kept, &shared) {
        let own = (kept.window.first()..kept.window.end()).filter(|index| !shared.pages.contains(index));
        let own: Vec<u32> = own.filter_map(|index| kept.window.get(index)).collect();
        add(Retention::Window, &own)?;
    }
    for slot in [cache.state(seq)?, kept.and_then(|kept| kept.state)].into_iter().flatten() {
        out.extend_from_slice(&executor.state(slot)?);
    }
    seal(identity, tokens.len(), window.first(), shared.as_ref(), &mut out);
    check(identity, cache.geometry(), &out)?;
    Ok(out)
}

/// Which pages of a kept position are the sequence's own still: they stand together.
fn shared(kept: &Kept, window: &super::pool::Pages) -> Shared {
    let mut same = (kept.window.first()..kept.window.end())
        .filter(|&index| window.get(index).is_some() && window.get(index) == kept.window.get(index));
    let start = same.next();
    let pages = start
        .map_or(0..0, |start| start..start + 1 + same.zip(start + 1..).take_while(|(a, b)| a == b).count());
    Shared { position: kept.position, first: kept.window.first(), pages }
}

/// KV layers of that kind.
fn layers(executor: &Executor, retention: Retention) -> impl Iterator<Item = usize> {
    let layers = executor.graph().kv().layers.iter().enumerate();
    layers.filter(move |(_, layout)| layout.retention() == retention).map(|(layer, _)| layer)
}

/// A new sequence from such bytes. On error nothing has changed.
pub fn restore(
    identity: &Identity,
    cache: &mut KvCache,
    executor: &mut Executor,
    bytes: &[u8],
) -> Result<SequenceId> {
    let contents = check(identity, cache.geometry(), bytes)?;
    let seq = cache.create_held(&contents.tokens, contents.first_window_page, contents.kept.as_ref())?;
    let filled = fill(cache, executor, seq, &contents);
    if filled.is_err() {
        cache.free(seq);
    }
    filled.map(|()| seq)
}

fn fill(cache: &KvCache, executor: &mut Executor, seq: SequenceId, contents: &Contents<'_>) -> Result<()> {
    fill_pages(executor, Retention::All, cache.pages(seq)?, contents.pages)?;
    fill_pages(executor, Retention::Window, cache.window_pages(seq)?.held(), contents.window_pages)?;
    if let Some(slot) = cache.state(seq)? {
        executor.write_state(slot, contents.state)?;
    }
    // there may have been no room for it
    let kept = cache.kept(seq)?.first();
    if let (Some(kept), Some(shared)) = (kept, &contents.kept) {
        let own = (kept.window.first()..kept.window.end()).filter(|index| !shared.pages.contains(index));
        let own: Vec<u32> = own.filter_map(|index| kept.window.get(index)).collect();
        fill_pages(executor, Retention::Window, &own, contents.kept_pages)?;
        if let Some(slot) = kept.state {
            executor.write_state(slot, contents.kept_state)?;
        }
    }
    Ok(())
}

fn fill_pages(executor: &mut Executor, retention: Retention, pages: &[u32], bytes: &[u8]) -> Result<()> {
    let layers: Vec<usize> = layers(executor, retention).collect();
    let mut rest = bytes;
    for &page in pages {
        for &layer in &layers {
            let n_bytes = executor.kv_page(layer, page)?.len();
            let (bytes, after) = rest.split_at(n_bytes);
            executor.kv_write_page(layer, page, bytes)?;
            rest = after;
        }
    }
    Ok(())
}

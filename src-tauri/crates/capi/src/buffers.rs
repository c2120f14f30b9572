//! Memory that the caller holds until it frees it. An address that is not ours frees nothing.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use contract::Result;

use crate::failure::{c_string, wrong_argument};

/// What an address holds.
enum HeldBuffer {
    Text(#[expect(dead_code, reason = "held for the caller")] CString),
    Ids(#[expect(dead_code, reason = "held for the caller")] Box<[u32]>),
    Vector(#[expect(dead_code, reason = "held for the caller")] Box<[f32]>),
}

static HELD: LazyLock<Mutex<HashMap<usize, HeldBuffer>>> = LazyLock::new(Mutex::default);

fn held() -> MutexGuard<'static, HashMap<usize, HeldBuffer>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds a text for the caller.
pub fn hold_text(text: &str) -> *mut c_char {
    let text = c_string(text);
    let address = text.as_ptr();
    held().insert(address.addr(), HeldBuffer::Text(text));
    address.cast_mut()
}

/// Holds token ids for the caller. An empty list has an address too.
pub fn hold_ids(ids: &[u32]) -> *mut u32 {
    let mut buffer = Vec::with_capacity(ids.len().max(1));
    buffer.extend_from_slice(ids);
    if buffer.is_empty() {
        buffer.push(0);
    }
    let ids = buffer.into_boxed_slice();
    let address = ids.as_ptr();
    held().insert(address.addr(), HeldBuffer::Ids(ids));
    address.cast_mut()
}

/// Holds a vector for the caller.
pub fn hold_vector(vector: Vec<f32>) -> *mut f32 {
    let vector = vector.into_boxed_slice();
    let address = vector.as_ptr();
    held().insert(address.addr(), HeldBuffer::Vector(vector));
    address.cast_mut()
}

/// Frees what an address holds.
///
/// Errors: nothing of ours is there, or it was freed before.
pub fn free(address: usize) -> Result<()> {
    match held().remove(&address) {
        Some(_) => Ok(()),
        None => Err(wrong_argument("buffer", "is not a buffer of Inglenook, or was freed before")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_freed_once() {
        let addresses = [
            hold_text("a").addr(),
            hold_ids(&[]).addr(),
            hold_ids(&[1]).addr(),
            hold_vector(vec![1.0]).addr(),
        ];
        for address in addresses {
            assert!(free(address).is_ok());
            assert!(free(address).is_err());
        }
        assert!(free(0).is_err());
    }
}

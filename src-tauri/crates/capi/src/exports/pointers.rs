//! Pointers of the caller. Nothing else reads or writes through one.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

use contract::Result;

use crate::failure::wrong_argument;

/// Reads a text.
///
/// Errors: NULL, or no UTF-8.
///
/// # Safety
/// `pointer` is NULL or leads to a string that ends with a zero byte and does not change during the call.
pub unsafe fn text(pointer: *const c_char, name: &str) -> Result<String> {
    // SAFETY: as the caller promises.
    let text = unsafe { optional_text(pointer, name) }?;
    text.ok_or_else(|| wrong_argument(name, "is NULL"))
}

/// Reads a text that may be NULL.
///
/// # Safety
/// As for `text`.
pub unsafe fn optional_text(pointer: *const c_char, name: &str) -> Result<Option<String>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not NULL, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(pointer) };
    match text.to_str() {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(error) => {
            let cause = format!("is not UTF-8: byte {} is wrong", error.valid_up_to());
            Err(wrong_argument(name, &cause))
        }
    }
}

/// Reads an array. NULL is allowed where it is empty.
///
/// # Safety
/// `pointer` is NULL or leads to `n` values that do not change during the call.
pub unsafe fn array<T: Copy>(pointer: *const T, n: usize, name: &str) -> Result<Vec<T>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    if n > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        return Err(wrong_argument(name, "is longer than memory"));
    }
    check(pointer, name)?;
    // SAFETY: it is aligned, not NULL, no longer than memory, and the caller promises the values.
    Ok(unsafe { std::slice::from_raw_parts(pointer, n) }.to_vec())
}

/// Reads a value that may be NULL.
///
/// # Safety
/// `pointer` is NULL or leads to a value that does not change during the call.
pub unsafe fn optional_value<T: Copy>(pointer: *const T, name: &str) -> Result<Option<T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    check(pointer, name)?;
    // SAFETY: it is aligned, not NULL, and the caller promises the value.
    Ok(Some(unsafe { pointer.read() }))
}

fn check<T>(pointer: *const T, name: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(wrong_argument(name, "is NULL"));
    }
    if !pointer.is_aligned() {
        return Err(wrong_argument(name, "is not aligned for its type"));
    }
    Ok(())
}

/// A place for a result.
pub struct OutParameter<T>(*mut T);

impl<T> OutParameter<T> {
    /// A place that is there.
    ///
    /// # Safety
    /// `pointer` is NULL or may be written for as long as the call takes.
    pub unsafe fn new(pointer: *mut T, name: &str) -> Result<Self> {
        check(pointer.cast_const(), name)?;
        Ok(Self(pointer))
    }

    /// A place that may be NULL, for a result that the caller may not want.
    ///
    /// # Safety
    /// As for `new`.
    pub unsafe fn optional(pointer: *mut T, name: &str) -> Result<Option<Self>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: as the caller promises.
        unsafe { Self::new(pointer, name) }.map(Some)
    }

    /// Writes the result.
    pub fn set(self, value: T) {
        // SAFETY: `new` checked it, and its caller promised that it may be written.
        unsafe { self.0.write(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_pointers_are_errors() {
        // SAFETY: the pointers are NULL or lead to values of this test.
        unsafe {
            assert_eq!(text(c"Grüße".as_ptr(), "text").unwrap(), "Grüße");
            assert!(text(std::ptr::null(), "text").unwrap_err().message().contains("text is NULL"));
            let error = text(c"a\xff".as_ptr(), "text").unwrap_err();
            assert!(error.message().contains("byte 1 is wrong"), "{error}");
            assert_eq!(optional_text(std::ptr::null(), "text").unwrap(), None);

            let ids = [1_u32, 2];
            assert_eq!(array(ids.as_ptr(), 2, "ids").unwrap(), ids);
            assert_eq!(array(std::ptr::null::<u32>(), 0, "ids").unwrap(), Vec::<u32>::new());
            assert!(array(std::ptr::null::<u32>(), 2, "ids").is_err());
            assert!(array(ids.as_ptr(), usize::MAX, "ids").is_err());
            let misaligned = ids.as_ptr().cast::<u8>().add(1).cast::<u32>();
            assert!(array(misaligned, 1, "ids").unwrap_err().message().contains("aligned"));

            let mut place = 0_u64;
            OutParameter::new(&raw mut place, "out").unwrap().set(7);
            assert_eq!(place, 7);
            assert!(OutParameter::<u64>::new(std::ptr::null_mut(), "out").is_err());
            assert!(OutParameter::<u64>::optional(std::ptr::null_mut(), "out").unwrap().is_none());
            assert_eq!(optional_value(&raw const place, "x").unwrap(), Some(7));
        }
    }
}

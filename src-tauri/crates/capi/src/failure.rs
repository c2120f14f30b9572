//! Failures at the boundary: a status for the caller, and the last error of each thread.

use std::cell::RefCell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use contract::{Error, ErrorKind, Result};

/// Outcome of a call. The numbers are the exit codes of `nook`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InglenookStatus {
    Ok = 0,
    /// A bug in Inglenook.
    Bug = 1,
    /// A wrong call: an argument is missing, or a handle is wrong.
    Usage = 2,
    /// A file, prompt or request that cannot be used.
    Input = 3,
    /// Memory, disk, context or another limit.
    Limit = 4,
    /// A device fault that no fallback could mend.
    Device = 5,
}

impl InglenookStatus {
    fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Bug => Self::Bug,
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Input | ErrorKind::NotFound | ErrorKind::Conflict => Self::Input,
            ErrorKind::Limit => Self::Limit,
            ErrorKind::Device => Self::Device,
        }
    }
}

/// Code, message and remedy of an error, as C strings.
struct ErrorTexts {
    code: CString,
    message: CString,
    remedy: CString,
}

thread_local! {
    static LAST: RefCell<Option<ErrorTexts>> = const { RefCell::new(None) };
}

/// A part of the last error.
#[derive(Debug, Clone, Copy)]
pub enum ErrorPart {
    Code,
    Message,
    Remedy,
}

/// Runs a call. An error or a panic becomes the last error of this thread; success clears it.
pub fn run(work: impl FnOnce() -> Result<()>) -> InglenookStatus {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let error = match outcome {
        Ok(Ok(())) => {
            LAST.with_borrow_mut(|last| *last = None);
            return InglenookStatus::Ok;
        }
        Ok(Err(error)) => error,
        Err(panic) => Error::bug(panic_text(&*panic)),
    };
    let texts = ErrorTexts {
        code: c_string(error.code()),
        message: c_string(error.message()),
        remedy: c_string(error.remedy()),
    };
    LAST.with_borrow_mut(|last| *last = Some(texts));
    InglenookStatus::of(error.kind)
}

/// Shows a part of the last error of this thread, if there is one.
pub fn with_last<T>(part: ErrorPart, show: impl FnOnce(Option<&CString>) -> T) -> T {
    LAST.with_borrow(|last| {
        show(last.as_ref().map(|texts| match part {
            ErrorPart::Code => &texts.code,
            ErrorPart::Message => &texts.message,
            ErrorPart::Remedy => &texts.remedy,
        }))
    })
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// A C string. Zero bytes, which would end it early, are left out.
pub fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// An argument that is missing or wrong.
pub fn wrong_argument(name: &str, cause: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        "capi.argument",
        format!("The argument {name} {cause}."),
        "See docs/C_API.md for what the function takes.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(part: ErrorPart) -> Option<String> {
        with_last(part, |text| text.map(|text| text.to_string_lossy().into_owned()))
    }

    #[test]
    fn f55_panics_and_errors_are_kept_for_their_thread() {
        assert_eq!(run(|| panic!("out of {}", "range")), InglenookStatus::Bug);
        assert_eq!(last(ErrorPart::Code).as_deref(), Some("bug"));
        assert!(last(ErrorPart::Message).unwrap().contains("out of range"));
        assert_eq!(std::thread::spawn(|| last(ErrorPart::Code)).join().unwrap(), None);
        assert_eq!(run(|| Err(wrong_argument("text", "is NULL"))), InglenookStatus::Usage);
        assert_eq!(last(ErrorPart::Code).as_deref(), Some("capi.argument"));
        assert!(!last(ErrorPart::Remedy).unwrap().is_empty());
        assert_eq!(run(|| Ok(())), InglenookStatus::Ok);
        assert_eq!(last(ErrorPart::Code), None);
    }

    #[test]
    fn zero_bytes_do_not_cut_a_text() {
        assert_eq!(c_string("a\0b").to_str().unwrap(), "ab");
    }
}

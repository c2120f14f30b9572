//! What belongs to no model: the version, the last error, buffers, and the application itself.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::path::PathBuf;

use app::{App, AppConfig};

use super::pointers::{OutParameter, optional_text, text};
use crate::failure::{ErrorPart, InglenookStatus, run, with_last};
use crate::{buffers, handles};

/// An open application: a data folder with its library, sessions and settings. 0 is none.
pub type InglenookApp = u64;

/// The version of the library, such as "0.1.0". It is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The code of this thread's last error, such as "model.unknown"; NULL if its last call succeeded.
/// Valid until this thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_error_code() -> *const c_char {
    last(ErrorPart::Code)
}

/// What went wrong in this thread's last call: a sentence with cause and place. Otherwise as inglenook_error_code.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_error_message() -> *const c_char {
    last(ErrorPart::Message)
}

/// What to do about this thread's last error. Otherwise as inglenook_error_code.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_error_remedy() -> *const c_char {
    last(ErrorPart::Remedy)
}

fn last(part: ErrorPart) -> *const c_char {
    with_last(part, |text| text.map_or(std::ptr::null(), |text| text.as_ptr()))
}

/// Opens a data folder. NULL: the folder of this user's Inglenook. Models run on threads of this process.
///
/// # Safety
/// `data_dir` is NULL or a string that ends with a zero byte; `app` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_open(data_dir: *const c_char, app: *mut InglenookApp) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (data_dir, out) =
            unsafe { (optional_text(data_dir, "data_dir")?, OutParameter::new(app, "app")?) };
        let opened = App::open(AppConfig { data_dir: data_dir.map(PathBuf::from), ..AppConfig::default() })?;
        out.set(handles::add_app(opened));
        Ok(())
    })
}

/// Closes an application with its models and sessions. What was saved stays.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_close(app: InglenookApp) -> InglenookStatus {
    run(|| handles::remove_app(app))
}

/// Changes a setting, as `nook settings set KEY VALUE`: the value is JSON, or text.
///
/// # Safety
/// `key` and `value` are NULL or strings that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_setting_set(
    app: InglenookApp,
    key: *const c_char,
    value: *const c_char,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (text(key, "key")?, text(value, "value")?) };
        let value = serde_json::from_str(&value).unwrap_or(serde_json::Value::String(value));
        handles::app(app)?.settings_set(&key, &value)?;
        Ok(())
    })
}

/// Frees a text, token ids or a vector that Inglenook returned. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_free(buffer: *mut c_void) -> InglenookStatus {
    run(|| if buffer.is_null() { Ok(()) } else { buffers::free(buffer.addr()) })
}

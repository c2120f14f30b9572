//! Sessions and their checkpoints.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};

use super::answers::{
    InglenookAnswer, InglenookCallback, InglenookOptions, caller, inglenook_options_default,
};
use super::models::InglenookModel;
use super::pointers::{OutParameter, optional_text, optional_value, text};
use crate::buffers::hold_text;
use crate::failure::{InglenookStatus, run};
use crate::handles;
use crate::sessions::ChatSession;

/// A chat with a model, saved with every message. 0 is none.
pub type InglenookSession = u64;

/// Begins a session. `system_prompt` may be NULL.
///
/// # Safety
/// `system_prompt` is NULL or a string that ends with a zero byte; `session` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_session_new(
    model: InglenookModel,
    system_prompt: *const c_char,
    session: *mut InglenookSession,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (system, out) = unsafe {
            (optional_text(system_prompt, "system_prompt")?, OutParameter::new(session, "session")?)
        };
        let (of_app, model) = handles::model(model)?;
        out.set(handles::add_session(of_app, ChatSession::new(&model, system)));
        Ok(())
    })
}

/// Opens a session of the data folder by the id that inglenook_session_id gave.
///
/// # Safety
/// `id` is NULL or a string that ends with a zero byte; `session` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_session_open(
    model: InglenookModel,
    id: *const c_char,
    session: *mut InglenookSession,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (id, out) = unsafe { (text(id, "id")?, OutParameter::new(session, "session")?) };
        let (of_app, model) = handles::model(model)?;
        out.set(handles::add_session(of_app, ChatSession::open(&model, &id)?));
        Ok(())
    })
}

/// Restores a session from a file that inglenook_session_save wrote.
///
/// # Safety
/// `path` is NULL or a string that ends with a zero byte; `session` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_session_restore(
    model: InglenookModel,
    path: *const c_char,
    session: *mut InglenookSession,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (path, out) = unsafe { (text(path, "path")?, OutParameter::new(session, "session")?) };
        let (of_app, model) = handles::model(model)?;
        out.set(handles::add_session(of_app, ChatSession::restore(&model, &path)?));
        Ok(())
    })
}

/// Writes a session with all its messages to a file.
///
/// # Safety
/// `path` is NULL or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_session_save(
    session: InglenookSession,
    path: *const c_char,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let path = unsafe { text(path, "path")? };
        handles::session(session)?.save(&path)
    })
}

/// The id under which a session is stored; it has one from its first message on. Free `id` with inglenook_free.
///
/// # Safety
/// `id` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_session_id(
    session: InglenookSession,
    id: *mut *mut c_char,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let out = unsafe { OutParameter::new(id, "id")? };
        out.set(hold_text(&handles::session(session)?.id()?));
        Ok(())
    })
}

/// Frees a session. What it saved stays in the data folder.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_session_free(session: InglenookSession) -> InglenookStatus {
    run(|| handles::remove_session(session))
}

/// Sends a message, and returns at the end of its answer. `options`, `callback` and `answer` may be NULL.
///
/// # Safety
/// `message` is NULL or a string that ends with a zero byte; the rest as for inglenook_generate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_session_send(
    session: InglenookSession,
    message: *const c_char,
    options: *const InglenookOptions,
    callback: InglenookCallback,
    user_data: *mut c_void,
    answer: *mut InglenookAnswer,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (message, options, out) = unsafe {
            (
                text(message, "message")?,
                optional_value(options, "options")?.unwrap_or_else(|| inglenook_options_default()),
                OutParameter::optional(answer, "answer")?,
            )
        };
        let session = handles::session(session)?;
        // SAFETY: as the caller promises.
        let mut pass_on = unsafe { caller(callback, user_data) };
        let complete = session.send(message, options.into_answer_options()?, &mut pass_on)?;
        if let Some(out) = out {
            out.set(InglenookAnswer::hold(&complete));
        }
        Ok(())
    })
}

/// Names the end of a session, and keeps its computed context on disk. Free `id` with inglenook_free.
///
/// # Safety
/// `name` is NULL or a string that ends with a zero byte; `id` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_checkpoint_save(
    session: InglenookSession,
    name: *const c_char,
    id: *mut *mut c_char,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (name, out) = unsafe { (text(name, "name")?, OutParameter::new(id, "id")?) };
        out.set(hold_text(&handles::session(session)?.save_checkpoint(&name)?));
        Ok(())
    })
}

/// Goes back to a checkpoint of a session: the next message continues from there.
///
/// # Safety
/// `id` is NULL or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_checkpoint_restore(
    session: InglenookSession,
    id: *const c_char,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let id = unsafe { text(id, "id")? };
        handles::session(session)?.restore_checkpoint(&id)
    })
}

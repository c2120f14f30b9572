//! Models: loading, token ids and embeddings.
#![allow(unsafe_code)]

use std::ffi::c_char;

use contract::protocol::EmbedAs;

use super::pointers::{OutParameter, array};
use super::process::InglenookApp;
use crate::buffers::{hold_ids, hold_text, hold_vector};
use crate::failure::{InglenookStatus, run, wrong_argument};
use crate::handles;
use crate::open_models::{OpenModel, TokenOptions};

/// A model. 0 is none.
pub type InglenookModel = u64;

/// Adds the tokens that begin and end a prompt.
pub const INGLENOOK_ADD_SPECIAL: u32 = 1;
/// Reads the texts of special tokens as those tokens.
pub const INGLENOOK_PARSE_SPECIAL: u32 = 2;

/// A text to search for.
pub const INGLENOOK_EMBED_QUERY: u32 = 0;
/// A text to be found.
pub const INGLENOOK_EMBED_DOCUMENT: u32 = 1;

/// Loads a model of this computer: a library id such as "starter", or a path. Its vocabulary is read now, its weights
/// with the first answer.
///
/// # Safety
/// `name` is NULL or a string that ends with a zero byte; `model` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_model_load(
    app: InglenookApp,
    name: *const c_char,
    model: *mut InglenookModel,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (name, out) =
            unsafe { (super::pointers::text(name, "name")?, OutParameter::new(model, "model")?) };
        let loaded = OpenModel::load(handles::app(app)?, &name)?;
        out.set(handles::add_model(app, loaded));
        Ok(())
    })
}

/// Frees a model. Its sessions keep it as long as they need it.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_model_free(model: InglenookModel) -> InglenookStatus {
    run(|| handles::remove_model(model))
}

/// The token ids of a text. `flags`: INGLENOOK_ADD_SPECIAL, INGLENOOK_PARSE_SPECIAL, or 0. Free `ids` with
/// inglenook_free.
///
/// # Safety
/// `text` is NULL or a string that ends with a zero byte; `ids` and `n_ids` are NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_tokenize(
    model: InglenookModel,
    text: *const c_char,
    flags: u32,
    ids: *mut *mut u32,
    n_ids: *mut usize,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (text, ids, n_ids) = unsafe {
            (
                super::pointers::text(text, "text")?,
                OutParameter::new(ids, "ids")?,
                OutParameter::new(n_ids, "n_ids")?,
            )
        };
        let options = TokenOptions {
            add_special: flags & INGLENOOK_ADD_SPECIAL != 0,
            parse_special: flags & INGLENOOK_PARSE_SPECIAL != 0,
        };
        let tokens = handles::model(model)?.1.tokenize(&text, options);
        n_ids.set(tokens.len());
        ids.set(hold_ids(&tokens));
        Ok(())
    })
}

/// The text of token ids. Free `text` with inglenook_free.
///
/// # Safety
/// `ids` is NULL or leads to `n_ids` ids; `text` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_detokenize(
    model: InglenookModel,
    ids: *const u32,
    n_ids: usize,
    text: *mut *mut c_char,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (ids, out) = unsafe { (array(ids, n_ids, "ids")?, OutParameter::new(text, "text")?) };
        let decoded = handles::model(model)?.1.detokenize(&ids)?;
        out.set(hold_text(&decoded));
        Ok(())
    })
}

/// The embedding of a text, a vector of length 1. `kind`: INGLENOOK_EMBED_QUERY or INGLENOOK_EMBED_DOCUMENT. Free
/// `vector` with inglenook_free.
///
/// # Safety
/// `text` is NULL or a string that ends with a zero byte; `vector` and `n_values` are NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_embed(
    model: InglenookModel,
    text: *const c_char,
    kind: u32,
    vector: *mut *mut f32,
    n_values: *mut usize,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (text, vector, n_values) = unsafe {
            (
                super::pointers::text(text, "text")?,
                OutParameter::new(vector, "vector")?,
                OutParameter::new(n_values, "n_values")?,
            )
        };
        let kind = match kind {
            INGLENOOK_EMBED_QUERY => EmbedAs::Question,
            INGLENOOK_EMBED_DOCUMENT => EmbedAs::Passage,
            _ => return Err(wrong_argument("kind", "is neither a query nor a document")),
        };
        let values = handles::model(model)?.1.embed(&text, kind)?;
        n_values.set(values.len());
        vector.set(hold_vector(values));
        Ok(())
    })
}

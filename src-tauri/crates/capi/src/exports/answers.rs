//! Answers: options, the callback, and answers outside sessions.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};

use app::SamplingArgs;
use contract::Result;

use super::models::InglenookModel;
use super::pointers::{OutParameter, optional_value, text};
use crate::buffers::{free, hold_text};
use crate::failure::{InglenookStatus, c_string, run, wrong_argument};
use crate::generation::{AnswerOptions, CompleteAnswer, PromptForm, finish_name, generate};
use crate::handles;

/// How to answer. Negative numbers: as the settings say. Begin with inglenook_options_default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct InglenookOptions {
    /// Longest answer, in tokens; 0: as the settings say.
    pub max_tokens: u32,
    /// Not 0: the prompt is continued as it is, without a chat template. Sessions ignore it.
    pub raw: u32,
    /// 0 always picks the most likely token.
    pub temperature: f64,
    pub top_p: f64,
    pub min_p: f64,
    pub repeat_penalty: f64,
    pub top_k: i64,
    /// The same seed and prompt give the same answer.
    pub seed: i64,
}

/// A complete answer. Free it with inglenook_answer_free.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct InglenookAnswer {
    pub text: *mut c_char,
    /// What the model thought before it answered.
    pub reasoning: *mut c_char,
    /// "stop", "length", "cancelled", "context_full", "time_up" or "tool_calls".
    pub finish: *mut c_char,
    pub prompt_tokens: u32,
    pub generated_tokens: u32,
}

/// Gets each piece of an answer: a string of `n_bytes` bytes that ends with a zero byte and is valid during the call.
/// Returning false stops the answer. It runs on the thread that asked, and must not end by an exception or longjmp.
///
/// # Safety
/// It only reads the string, and does with `user_data` what its program allows.
pub type InglenookCallback =
    Option<unsafe extern "C" fn(text: *const c_char, n_bytes: usize, user_data: *mut c_void) -> bool>;

/// Options that leave everything to the settings.
#[unsafe(no_mangle)]
pub extern "C" fn inglenook_options_default() -> InglenookOptions {
    InglenookOptions {
        max_tokens: 0,
        raw: 0,
        temperature: -1.0,
        top_p: -1.0,
        min_p: -1.0,
        repeat_penalty: -1.0,
        top_k: -1,
        seed: -1,
    }
}

/// Answers a prompt outside any session, and returns at its end. `options`, `callback` and `answer` may be NULL.
///
/// # Safety
/// `prompt` is NULL or a string that ends with a zero byte. `options` is NULL or leads to options. `answer` is NULL or
/// may be written. `callback` is NULL or may be called with `user_data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_generate(
    model: InglenookModel,
    prompt: *const c_char,
    options: *const InglenookOptions,
    callback: InglenookCallback,
    user_data: *mut c_void,
    answer: *mut InglenookAnswer,
) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (prompt, options, out) = unsafe {
            (
                text(prompt, "prompt")?,
                optional_value(options, "options")?.unwrap_or_else(|| inglenook_options_default()),
                OutParameter::optional(answer, "answer")?,
            )
        };
        let form = if options.raw == 0 { PromptForm::Chat } else { PromptForm::Raw };
        let model = handles::model(model)?.1;
        // SAFETY: as the caller promises.
        let mut pass_on = unsafe { caller(callback, user_data) };
        let complete = generate(&model, prompt, form, options.into_answer_options()?, &mut pass_on)?;
        if let Some(out) = out {
            out.set(InglenookAnswer::hold(&complete));
        }
        Ok(())
    })
}

/// Frees the texts of an answer, and sets them to NULL. NULL is allowed.
///
/// # Safety
/// `answer` is NULL or leads to an answer that Inglenook wrote and that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inglenook_answer_free(answer: *mut InglenookAnswer) -> InglenookStatus {
    run(|| {
        // SAFETY: as the caller promises.
        let (held, place) =
            unsafe { (optional_value(answer, "answer")?, OutParameter::optional(answer, "answer")?) };
        let (Some(held), Some(place)) = (held, place) else { return Ok(()) };
        let texts = [held.text, held.reasoning, held.finish];
        let null = std::ptr::null_mut();
        place.set(InglenookAnswer { text: null, reasoning: null, finish: null, ..held });
        texts.into_iter().filter(|text| !text.is_null()).try_for_each(|text| free(text.addr()))
    })
}

impl InglenookOptions {
    /// Errors: a number that is out of range.
    pub(crate) fn into_answer_options(self) -> Result<AnswerOptions> {
        // What is not a number is refused where its range is checked.
        let number = |value: f64| (value >= 0.0 || value.is_nan()).then_some(value);
        let top_k = match u32::try_from(self.top_k) {
            Ok(top_k) => Some(top_k),
            Err(_) if self.top_k < 0 => None,
            Err(_) => return Err(wrong_argument("options.top_k", "is too large")),
        };
        Ok(AnswerOptions {
            max_tokens: (self.max_tokens > 0).then_some(self.max_tokens),
            sampling: SamplingArgs {
                temperature: number(self.temperature),
                top_k,
                top_p: number(self.top_p),
                min_p: number(self.min_p),
                repeat_penalty: number(self.repeat_penalty),
                seed: u64::try_from(self.seed).ok(),
                ..SamplingArgs::default()
            },
        })
    }
}

impl InglenookAnswer {
    /// Holds an answer for the caller.
    pub(crate) fn hold(answer: &CompleteAnswer) -> Self {
        Self {
            text: hold_text(&answer.text),
            reasoning: hold_text(&answer.reasoning),
            finish: hold_text(finish_name(answer.stats.finish)),
            prompt_tokens: answer.stats.prompt_tokens,
            generated_tokens: answer.stats.generated_tokens,
        }
    }
}

/// Passes pieces of text on to the caller. Without a callback every answer goes to its end.
///
/// # Safety
/// `callback` is NULL or may be called with `user_data` for as long as the result lives.
pub(crate) unsafe fn caller(callback: InglenookCallback, user_data: *mut c_void) -> impl FnMut(&str) -> bool {
    move |piece: &str| {
        let Some(callback) = callback else { return true };
        let piece = c_string(piece);
        // SAFETY: the string ends with a zero byte and outlives the call; the rest is promised above.
        unsafe { callback(piece.as_ptr(), piece.as_bytes().len(), user_data) }
    }
}

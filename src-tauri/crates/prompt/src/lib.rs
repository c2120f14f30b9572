//! From a conversation to a prompt: history, chat templates, what fits into the context, and OpenAI's messages. Shared by
//! local and remote models.
//!
//! Knows neither the database nor who answers.
#![forbid(unsafe_code)]

pub mod chat_template_input;
pub mod context_fit;
pub mod history;
pub mod openai_messages;
pub mod render;
pub mod title_text;

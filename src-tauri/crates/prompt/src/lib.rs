//! From a conversation to a prompt: history, chat templates, context fitting, and OpenAI's
//! messages. Shared by local and remote models. Knows neither the database nor the backend.
#![forbid(unsafe_code)]

pub mod answer_options;
pub mod answer_prefix;
pub mod chat_template_input;
pub mod context_fit;
pub mod history;
pub mod image_runs;
pub mod images;
pub mod memory;
pub mod openai_messages;
pub mod render;
pub mod sampler_options;
pub mod title_text;
pub mod written_title;

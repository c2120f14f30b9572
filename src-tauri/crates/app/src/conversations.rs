//! Conversations: messages and their branches, answers, titles, folders, the trash, import and export.

mod alternatives;
mod branches;
pub mod chat;
mod draft_tokens;
mod folders;
pub mod generate;
mod generated_titles;
mod import_export;
mod input_guard;
mod notes;
mod one_off_options;
pub(crate) mod per_chat_options;
pub(crate) mod projects;
mod temporary;
pub(crate) mod title_jobs;
mod trash;

//! How an app behaves as a whole: one program, a module per concern.
#![allow(clippy::unwrap_used)] // a failure here fails the test

mod aged_contexts;
mod attachments;
mod chat_options;
mod common;
mod contexts;
mod draft_models;
mod embeddings;
mod exchange;
mod first_token;
mod guide;
mod library;
mod limits;
mod long;
mod look;
mod notes;
mod once;
mod own_settings;
mod pipe;
mod plugins;
mod presets;
mod private_folder;
mod profile;
mod projects;
mod remote;
mod residency;
mod scanned_pages;
mod tools;
mod tree;
mod tunes;
mod turns;

//! Documents: bytes in, text and passages out. PDF, office files, web pages, encodings, chunking, and detection of
//! hidden or instructing text.
//!
//! Knows nothing of conversations, models or where the bytes come from. Every reader has limits of size and time.
#![forbid(unsafe_code)]

pub mod base64;
mod block_builder;
pub mod blocks;
pub mod chunking;
pub mod extract;
pub mod extract_error;
pub mod file_name;
mod hash;
mod html;
pub mod lenient_json;
mod list_label;
mod office;
pub mod parts;
pub mod pdf;
pub mod prompt_injection;
pub mod readability;
pub mod text_encoding;
pub mod timed;
pub mod zip_directory;

pub use extract::ExtractedText;
pub use extract_error::ExtractError;
pub use hash::sha256;

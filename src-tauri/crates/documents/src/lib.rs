//! Documents: bytes in, text and passages out. PDF, encodings, chunking, and detection of hidden or instructing text.
//!
//! Knows nothing of conversations, models or where the bytes come from. Every reader has limits of size and time.
#![forbid(unsafe_code)]

pub mod base64;
pub mod blocks;
pub mod chunking;
pub mod extract;
pub mod extract_error;
pub mod file_name;
mod hash;
pub mod lenient_json;
pub mod parts;
pub mod pdf;
pub mod prompt_injection;
pub mod readability;
pub mod text_encoding;

pub use extract::ExtractedText;
pub use extract_error::ExtractError;
pub use hash::sha256;

//! Files of messages: the passages that match a question, by words and by meaning where vectors are given, and what files
//! put into a prompt. Never computes a vector, and knows neither the application nor a model.
#![forbid(unsafe_code)]

pub mod citations;
pub mod images;
pub mod injected;
mod nearness;
mod passage_hit;
pub mod project_files;
pub mod room;
pub mod scanned_pages;
mod search_cache;

pub use nearness::{
    EmbeddingIndex, VectorKey, Vectors, cosine, joined, nearest, vectors_from_bytes, vectors_key,
    vectors_to_bytes,
};
pub use passage_hit::{PassageHit, SearchedFile};
pub use search_cache::SearchCache;

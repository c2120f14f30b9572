//! Remote servers, played by a few lines each that speak as vLLM, SGLang, llama.cpp, Ollama and
//! others do, and fail as they do.
#![allow(clippy::unwrap_used)] // a test

mod answers;
pub mod fake;
mod habits;
mod home;
mod rules;
mod trouble;

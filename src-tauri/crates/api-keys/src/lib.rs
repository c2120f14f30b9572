//! Keys of the programs that use the HTTP interface: named, limited in scope, rate and tokens, revocable.
//!
//! Guarantees that the data folder holds only hashes, and that processes which share it count together.
#![forbid(unsafe_code)]

mod key_hash;
mod key_usage;
mod store;

pub use key_usage::{KeyLimits, KeyUsages};
pub use store::{
    ApiKeyArgs, ApiKeyInfo, ApiKeys, CallerKey, KeyScope, NewApiKey, VerifiedKey, check_key, new_key,
};

//! Signing in to servers over HTTP: the authorization of the Model Context Protocol (revision 2025-11-25), which is
//! OAuth 2.1 with discovery. Tokens lie among the keys, are sent to their own server only, and never appear in a log.

mod challenge;
mod challenge_memory;
mod credentials;
mod fault;
mod gated_http;
mod grant;
mod metadata;
mod pending_sign_ins;
mod redirect_listener;
mod redirect_page;
mod registration;
mod sign_in;
mod token_source;
mod well_known;

pub(crate) use challenge::BearerChallenge;
pub use challenge_memory::ChallengeMemory;
pub use credentials::CredentialStore;
pub(crate) use fault::SignInFault;
pub use fault::{is_sign_in_error, was_canceled};
pub(crate) use metadata::has_resource_metadata;
pub use pending_sign_ins::PendingSignIns;
pub use registration::OauthClient;
pub use sign_in::{SignIn, SignInSite, sign_out};
pub use token_source::TokenSource;

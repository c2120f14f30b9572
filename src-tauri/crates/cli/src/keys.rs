//! `nook keys`: API keys of other programs; `nook audit`: the log of answers and its hash chain.

use app::{ApiKeyArgs, ApiKeyInfo, App, KeyLimits, KeyScope};
use clap::{Args, Subcommand, ValueEnum};
use contract::{Error, Result};
use platform::calendar;
use serde_json::json;

use crate::args::global::Global;
use crate::input::read_stdin;
use crate::{out, text};

#[derive(Debug, Args)]
pub struct KeysArgs {
    #[command(subcommand)]
    pub verb: KeysVerb,
}

#[derive(Debug, Subcommand)]
pub enum KeysVerb {
    /// List keys with their scopes and limits
    List,
    /// Add a key and print it once; the data folder keeps only its hash
    Add {
        /// Such as the name of the program that uses it
        name: String,
        /// What the key permits (repeatable): chat if none is given
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<ScopeArg>,
        /// Read the key from standard input instead of generating one: at least 4 printable characters
        #[arg(long)]
        key_stdin: bool,
        #[command(flatten)]
        limits: LimitFlags,
    },
    /// Revoke a key, with effect on the next request
    Revoke {
        /// Its name or id
        key: String,
    },
}

/// What a key permits.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ScopeArg {
    /// Answers, embeddings and token counts
    Chat,
    /// Adding and removing models
    Models,
    /// Everything, including chats and settings
    Admin,
}

/// Limits of a key.
#[derive(Debug, Args)]
pub struct LimitFlags {
    #[arg(long, value_name = "N")]
    pub requests_per_minute: Option<u64>,
    #[arg(long, value_name = "N")]
    pub requests_per_day: Option<u64>,
    /// Tokens of prompts and answers
    #[arg(long, value_name = "N")]
    pub tokens_per_minute: Option<u64>,
    #[arg(long, value_name = "N")]
    pub tokens_per_day: Option<u64>,
}

#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    pub verb: AuditVerb,
}

#[derive(Debug, Subcommand)]
pub enum AuditVerb {
    /// Check the hash chain of the audit log and name the first line that breaks it
    Verify,
}

impl From<ScopeArg> for KeyScope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Chat => Self::Chat,
            ScopeArg::Models => Self::Models,
            ScopeArg::Admin => Self::Admin,
        }
    }
}

/// Runs `nook keys`.
pub fn keys(global: &Global, args: KeysArgs) -> Result<()> {
    let app = App::open(global.app_config()?)?;
    match args.verb {
        KeysVerb::List => list(&app.api_keys_list()?, global.json),
        KeysVerb::Add { name, scopes, key_stdin, limits } => {
            let key = if key_stdin { Some(read_key()?) } else { None };
            let scopes = scopes.into_iter().map(KeyScope::from).collect();
            let added = app.api_key_add(ApiKeyArgs { name, key, scopes, limits: limits.into() })?;
            if global.json {
                out::json(&added);
            } else {
                out::line(&added.key);
                out::log(&format!("the key {} is shown only now; note it", added.info.name));
            }
        }
        KeysVerb::Revoke { key } => {
            let revoked = app.api_key_revoke(&key)?;
            if global.json {
                out::json(&json!({ "revoked": revoked.id, "name": revoked.name }));
            } else {
                out::line(&format!("revoked {}", revoked.name));
            }
        }
    }
    Ok(())
}

/// Longest input with a key.
const MAX_KEY_BYTES: u64 = 4096;

fn read_key() -> Result<String> {
    let bytes = read_stdin(MAX_KEY_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned())
}

impl From<LimitFlags> for KeyLimits {
    fn from(flags: LimitFlags) -> Self {
        let LimitFlags { requests_per_minute, requests_per_day, tokens_per_minute, tokens_per_day } = flags;
        Self { requests_per_minute, requests_per_day, tokens_per_minute, tokens_per_day }
    }
}

fn list(keys: &[ApiKeyInfo], as_json: bool) {
    if as_json {
        return out::json(&keys);
    }
    let row = |key: &ApiKeyInfo| {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| word(*scope)).collect();
        vec![
            key.name.clone(),
            scopes.join(","),
            limits(&key.limits),
            calendar::date_time(key.created_ms),
            key.id.clone(),
        ]
    };
    out::text(&text::table(&keys.iter().map(row).collect::<Vec<_>>()));
}

fn word(scope: KeyScope) -> &'static str {
    match scope {
        KeyScope::Chat => "chat",
        KeyScope::Models => "models",
        KeyScope::Admin => "admin",
    }
}

fn limits(limits: &KeyLimits) -> String {
    let parts = [
        (limits.requests_per_minute, "requests/min"),
        (limits.requests_per_day, "requests/day"),
        (limits.tokens_per_minute, "tokens/min"),
        (limits.tokens_per_day, "tokens/day"),
    ];
    let parts = parts.into_iter().filter_map(|(limit, what)| Some(format!("{} {what}", limit?)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Runs `nook audit`.
pub fn audit(global: &Global, args: &AuditArgs) -> Result<()> {
    let app = App::open(global.app_config()?)?;
    let AuditVerb::Verify = args.verb;
    let checked = app.audit_verify()?;
    if let Some(broken) = &checked.broken {
        return Err(Error::input(
            "audit.broken",
            format!("The audit log is broken at {}:{}: {}.", broken.file, broken.line, broken.why),
            "Lines before it are intact. Compare the log with a backup.",
        ));
    }
    if global.json {
        out::json(&checked);
    } else {
        out::line(&format!("intact: {} lines in {} files", checked.lines, checked.files));
        out::line(&format!("last hash: {}", checked.last_hash));
    }
    Ok(())
}

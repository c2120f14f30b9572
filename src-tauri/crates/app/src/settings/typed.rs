//! Settings by name and type. Code reads a setting through its accessor here, never by a string.

use contract::{Error, Result};
use serde_json::Value;

/// Where values of settings come from: stored ones over defaults, or a model's own over both.
pub(crate) trait SettingSource {
    /// The value in force.
    fn value(&self, key: &'static str) -> Result<Value>;
}

/// One accessor a setting; the name of the accessor is the setting's key.
macro_rules! accessors {
    ($($kind:ident { $($key:ident),* $(,)? })*) => {
        pub(crate) trait TypedSettings: SettingSource {
            $($(accessors!(@one $kind $key);)*)*
        }
    };
    // on or off
    (@one switch $key:ident) => {
        fn $key(&self) -> Result<bool> {
            Ok(self.value(stringify!($key))? == true)
        }
    };
    // a whole number; None: the row's own word for absence
    (@one whole $key:ident) => {
        fn $key(&self) -> Result<Option<u64>> {
            Ok(self.value(stringify!($key))?.as_u64())
        }
    };
    // any number
    (@one number $key:ident) => {
        fn $key(&self) -> Result<f64> {
            let value = self.value(stringify!($key))?;
            value.as_f64().ok_or_else(|| Error::bug(concat!("the setting ", stringify!($key), " is not a number")))
        }
    };
    // a number that may be absent
    (@one optional $key:ident) => {
        fn $key(&self) -> Result<Option<f64>> {
            Ok(self.value(stringify!($key))?.as_f64())
        }
    };
    // text, or the chosen word
    (@one text $key:ident) => {
        fn $key(&self) -> Result<String> {
            Ok(self.value(stringify!($key))?.as_str().unwrap_or_default().to_owned())
        }
    };
    // a word of an enum
    (@one word $key:ident) => {
        fn $key<T: serde::de::DeserializeOwned>(&self) -> Result<Option<T>> {
            Ok(serde_json::from_value(self.value(stringify!($key))?).ok())
        }
    };
}

accessors! {
    switch {
        affinity, api_model_alias, audit_log, audit_text, check_updates, guard_marks, guide_answers, large_pages, memory, offline,
        other_programs,
        server_devices, server_start,
        template_fallback, titles, tools,
    }
    whole {
        attachment_count, attachment_megabytes, attachment_passages, context, context_disk, context_memory,
        context_store_every, download_connections, download_limit, download_patience, endpoint_silence, gpu_layers,
        gpu_memory, idle_memory, idle_minutes, idle_unload, kv_aging_after, kv_window, limit_answer_tokens,
        limit_characters, limit_concurrent, limit_prompt_tokens, limit_seconds, limit_waiting, max_tokens,
        reasoning_budget, resident_budget, seed, server_port, threads, tool_characters, tool_rounds, tool_seconds, top_k,
    }
    optional { context_stretch }
    number { min_p, repeat_penalty, temperature, top_p }
    text {
        allow_image_urls, chat_templates, compression, download_place, draft_model, embedding_model, gpu_devices, hub, instructions, key_place,
        kv_aging, language, log_level, model, proxy, reasoning_effort, refusal_patterns, thinking, trusted_keys,
    }
    word { backend, gpu_precision, gpu_spread, kv, limits, numa, prompts, speculation }
}

impl<T: SettingSource> TypedSettings for T {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says which keys were asked for.
    struct Defaults;

    impl SettingSource for Defaults {
        fn value(&self, key: &'static str) -> Result<Value> {
            Ok((contract::settings::find(key)?.default)())
        }
    }

    #[test]
    fn accessors_read_rows_of_the_table() {
        assert!(!Defaults.offline().unwrap());
        assert_eq!(Defaults.temperature().unwrap(), 0.7);
        assert_eq!(Defaults.max_tokens().unwrap(), None);
        assert_eq!(Defaults.kv::<contract::protocol::Kv>().unwrap(), Some(contract::protocol::Kv::F16));
        assert_eq!(Defaults.thinking().unwrap(), "model");
        assert!(contract::settings::find("no_such_setting").is_err());
    }
}

//! Keys of other programs.

use api_keys::{ApiKeyArgs, ApiKeyInfo, NewApiKey, VerifiedKey};
use contract::{Error, Result};

use crate::App;

impl App {
    /// In the order in which they were added.
    pub fn api_keys_list(&self) -> Result<Vec<ApiKeyInfo>> {
        self.services().api_keys.list()
    }

    /// Adds a key and tells it, this once.
    pub fn api_key_add(&self, args: ApiKeyArgs) -> Result<NewApiKey> {
        let (id, now_ms) = (self.store().new_id(), self.ctx().clock.now_utc_ms());
        self.services().api_keys.add(args, id, now_ms)
    }

    /// Takes effect with the next request. `key`: an id or a name.
    pub fn api_key_revoke(&self, key: &str) -> Result<ApiKeyInfo> {
        self.services().api_keys.revoke(key)
    }

    /// The key of a request. None: there is no such key.
    pub fn api_key_verify(&self, key: &str) -> Result<Option<VerifiedKey>> {
        self.services().api_keys.verify(key)
    }

    /// Counts a request of a key.
    ///
    /// Errors: `limit.key_requests`, `limit.key_tokens`, with the seconds until there is room again.
    pub fn api_key_admit(&self, key: &VerifiedKey) -> std::result::Result<(), (Error, u64)> {
        self.services().api_keys.usages.admit(&key.caller.id, &key.limits)
    }
}

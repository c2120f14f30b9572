//! How this process reaches the hub: environment and settings, one client, one runtime.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hub::{
    Client, Gate, HubError, Layout, ModelAddress, ModelDir, Permit, Purpose, RateLimiter, Repository,
    TransferOptions, TrustedKeys,
};
use io::RealIo;
use tokio::runtime::Runtime;

use crate::App;
use crate::settings::TypedSettings;
use contract::CatalogOffer;
use contract::types::{ConnectionPurpose, DownloadStartArgs, HubToken, HubTokenArgs, KeyPlace, TokenPlace};
use contract::{Error, ErrorKind, Result};
use net::{OFFLINE, ProxyAddress};
use secrets::Secret;

/// First wait after a failure, and the longest that it grows to.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// While there is no network: it goes on at most so long after it is back.
const NETWORK_WAIT: Duration = Duration::from_secs(3);

/// Where the hashes of the chunks of downloaded files are kept, in the data folder.
pub(crate) const CHUNK_LISTS: &str = "chunks";

/// Threads of the runtime: connections wait most of the time; one may write while another asks.
const THREADS: usize = 3;

/// What the environment says. Frontends read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubAccess {
    /// `HF_ENDPOINT`
    pub endpoint: Option<String>,
    /// `HF_TOKEN`
    pub token: Option<String>,
    /// What the hub's own tools keep.
    pub token_file: Option<String>,
    /// The cache that the hub's own tools use.
    pub cache: Option<PathBuf>,
    /// Proxies that the environment names.
    pub proxies: ProxyVariables,
}

/// Proxies that the environment names, by the variables that most programs read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyVariables {
    https: Option<String>,
    http: Option<String>,
    /// Hosts that are reached directly, separated by commas.
    direct: String,
}

impl ProxyVariables {
    fn read(set: &dyn Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| set(name).or_else(|| set(&name.to_lowercase()));
        Self {
            https: either("HTTPS_PROXY").or_else(|| either("ALL_PROXY")),
            http: either("HTTP_PROXY").or_else(|| either("ALL_PROXY")),
            direct: either("NO_PROXY").unwrap_or_default(),
        }
    }

    /// The proxy for an address, without its password.
    fn for_address(&self, address: &str) -> Option<String> {
        let (scheme, rest) = address.split_once("://")?;
        let host = rest.split(['/', ':']).next().unwrap_or_default();
        let is_direct = self.direct.split(',').map(|it| it.trim().trim_start_matches('.')).any(|entry| {
            entry == "*" || (!entry.is_empty() && (host == entry || host.ends_with(&format!(".{entry}"))))
        });
        let proxy = if scheme == "https" { self.https.as_deref() } else { self.http.as_deref() };
        let named =
            |proxy: &str| proxy.rsplit('@').next().unwrap_or_default().trim_end_matches('/').to_owned();
        proxy.filter(|_| !is_direct).map(named)
    }
}

impl HubAccess {
    /// `variable` looks into the environment.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        let home = set("HOME").or_else(|| set("USERPROFILE")).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(home.clone()?.join(".cache")));
        let hub_home = set("HF_HOME").map(PathBuf::from).or_else(|| Some(cache?.join("huggingface")));
        Self {
            endpoint: set("HF_ENDPOINT"),
            token: hub::token_variable(&set),
            token_file: hub::token_file(&set, home, &RealIo),
            cache: set("HF_HUB_CACHE").map(PathBuf::from).or_else(|| Some(hub_home?.join("hub"))),
            proxies: ProxyVariables::read(&set),
        }
    }
}

/// Made when something is first asked of the hub.
#[derive(Default)]
pub(crate) struct HubConnection {
    runtime: Mutex<Option<Arc<Runtime>>>,
    client: Mutex<Option<(HubClientKey, Arc<Client>)>>,
    /// Looked up once: a keychain may ask the user.
    token: Mutex<TokenLookup>,
    limiter: Mutex<Option<Arc<RateLimiter>>>,
}

/// What a client was made for: other settings, another client.
#[derive(PartialEq, Eq)]
struct HubClientKey {
    /// Address of the hub. None: the public one.
    endpoint: Option<String>,
    stall: Duration,
    token: TokenLookup,
    /// The proxy of the settings. None: the environment's.
    proxy: Option<ProxyAddress>,
}

/// The token, and where it is from.
type TokenLookup = Option<(Secret, TokenPlace)>;

/// Under which the token is kept, and the note of where it is.
const TOKEN: &str = "hub";
const TOKEN_NOTE: &str = "hub_token_place";

impl HubConnection {
    /// Ends the runtime without waiting for it.
    pub fn end(&self) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime.and_then(|runtime| Arc::try_unwrap(runtime).ok()) {
            runtime.shutdown_background();
        }
    }
}

impl App {
    pub(crate) fn hub_runtime(&self) -> Result<Arc<Runtime>> {
        let mut runtime = self.running.hub.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(Arc::clone(runtime));
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let made = builder.worker_threads(THREADS).thread_name("inglenook-hub").enable_all().build();
        let made = Arc::new(made.map_err(|error| {
            let message = format!("Downloads could not be started: {error}.");
            Error::new(ErrorKind::Limit, "app.thread", message, "Close other programs and try again.")
        })?);
        *runtime = Some(Arc::clone(&made));
        Ok(made)
    }

    pub(crate) fn hub_client(&self) -> Result<Arc<Client>> {
        let setting = Some(self.ctx().settings.hub()?).filter(|text| !text.trim().is_empty());
        let stall = Duration::from_secs(self.ctx().settings.download_patience()?.unwrap_or(30));
        let access = &self.running.hub_access;
        let asked = HubClientKey {
            endpoint: access.endpoint.clone().or(setting),
            stall,
            token: self.token()?,
            proxy: self.ctx().gate.proxy()?,
        };
        let mut client = self.running.hub.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((was, client)) = &*client
            && *was == asked
        {
            return Ok(Arc::clone(client));
        }
        let address = asked.endpoint.as_deref().filter(|text| !text.is_empty()).unwrap_or(hub::HUGGING_FACE);
        let made = Arc::new(Client::new(hub::ClientOptions {
            endpoint: asked.endpoint.clone(),
            token: asked.token.as_ref().map(|(token, _)| token.reveal().to_owned()),
            user_agent: concat!("inglenook/", env!("CARGO_PKG_VERSION")).into(),
            stall,
            gate: self.hub_gate(),
            proxy: match &asked.proxy {
                Some(proxy) => Some(proxy.place().to_owned()),
                None => access.proxies.for_address(address),
            },
            proxy_address: asked.proxy.as_ref().map(|proxy| proxy.as_str().to_owned()),
        })?);
        *client = Some((asked, Arc::clone(&made)));
        Ok(made)
    }

    /// The environment's, else the one that was given here, else the one of the hub's own tools.
    fn token(&self) -> Result<TokenLookup> {
        let access = &self.running.hub_access;
        if let Some(token) = &access.token {
            return Ok(Some((Secret::new(token.clone()), TokenPlace::Environment)));
        }
        let mut known = self.running.hub.token.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let place = self.token_note()?;
            let kept = place.map(|place| self.ctx().keys.get_at(TOKEN, place)).transpose()?.flatten();
            *known = match (kept, place) {
                (Some(token), Some(KeyPlace::Keychain)) => Some((token, TokenPlace::Keychain)),
                (Some(token), Some(KeyPlace::File)) => Some((token, TokenPlace::File)),
                (Some(_) | None, _) => None,
            };
        }
        let of_tools = || Some((Secret::new(access.token_file.clone()?), TokenPlace::HubFile));
        Ok(known.clone().or_else(of_tools))
    }

    /// Where the token that was given here lies.
    fn token_note(&self) -> Result<Option<KeyPlace>> {
        let note = self.store().setting(TOKEN_NOTE)?;
        Ok(note.and_then(|json| serde_json::from_str(&json).ok()))
    }

    /// How we identify ourselves to the hub.
    pub fn hub_token(&self) -> Result<HubToken> {
        let keeps = self.ctx().keys.place(self.ctx().backends.endpoints.wants_key_file()?);
        Ok(HubToken { place: self.token()?.map(|(_, place)| place), keeps })
    }

    /// Keeps a token, or forgets the one that was given; what the environment and other tools have stays.
    pub fn hub_token_set(&self, args: &HubTokenArgs) -> Result<HubToken> {
        let before = self.token_note()?;
        let place = match args.token.trim() {
            "" => None,
            token => Some(self.ctx().backends.endpoints.keep_key(TOKEN, token)?),
        };
        if let Some(before) = before.filter(|before| Some(*before) != place) {
            self.ctx().keys.remove_at(TOKEN, before)?;
        }
        match place {
            Some(place) => {
                let note = serde_json::to_string(&place).map_err(Error::bug)?;
                self.store().set_setting(TOKEN_NOTE, &note)?;
            }
            None => self.store().reset_setting(TOKEN_NOTE)?,
        }
        *self.running.hub.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.hub_token()
    }

    /// Each request of the hub crate is asked for at the one gate, and goes on its record.
    fn hub_gate(&self) -> Gate {
        let gate = self.ctx().gate.clone();
        Gate::new(move |host, purpose| {
            let purpose = match purpose {
                Purpose::Look => ConnectionPurpose::Search,
                Purpose::Fetch => ConnectionPurpose::Download,
            };
            let connection = gate.connect(host, purpose).map_err(|error| {
                let code = if error.code() == OFFLINE { OFFLINE } else { "hub.record" };
                HubError::new(code, error.message(), error.remedy())
            })?;
            Ok(Permit::new(move |n_bytes| {
                connection.received(usize::try_from(n_bytes).unwrap_or(usize::MAX))
            }))
        })
    }

    pub(crate) fn tuning(&self) -> Result<TransferOptions> {
        let limit = self.ctx().settings.download_limit()?.map(|kilobytes| kilobytes * 1000);
        let mut limiter = self.running.hub.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        let limiter =
            limiter.get_or_insert_with(|| Arc::new(RateLimiter::new(Arc::clone(&self.ctx().clock), limit)));
        limiter.set(limit);
        Ok(TransferOptions {
            connections: self
                .ctx()
                .settings
                .download_connections()?
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(4),
            limiter: Arc::clone(limiter),
            first_wait: FIRST_WAIT,
            max_wait: LONGEST_WAIT,
            max_network_wait: NETWORK_WAIT,
        })
    }

    /// Where a new download goes, as the settings say.
    pub(crate) fn download_place(&self) -> Result<ModelDir> {
        let own = || ModelDir { root: self.dirs().data.join("models"), layout: Layout::Folder };
        if self.ctx().settings.download_place()? != "hub_cache" {
            return Ok(own());
        }
        let cache = self.running.hub_access.cache.clone();
        Ok(cache.map_or_else(own, |root| ModelDir { root, layout: Layout::HubCache }))
    }

    pub(crate) fn trusted_keys(&self) -> Result<TrustedKeys> {
        let keys = TrustedKeys::parse(&self.ctx().settings.trusted_keys()?)?;
        Ok(keys.at(self.ctx().clock.now_utc_ms().div_euclid(1000)))
    }

    /// Waits for something that is asked of the hub.
    pub(crate) fn ask_hub<T: Send + 'static>(
        &self,
        work: impl Future<Output = hub::Result<T>> + Send + 'static,
    ) -> Result<T> {
        // One answer, so that sending never waits.
        let (send, answer) = std::sync::mpsc::sync_channel(1);
        self.hub_runtime()?.spawn(async move {
            // The caller may have gone.
            let _ = send.send(work.await);
        });
        let answer = answer.recv().map_err(|_| Error::bug("what was asked of the hub came to no end"))?;
        Ok(answer?)
    }
}

/// What a person types for a model to fetch: an id of the catalogue, `owner/name`, `owner/name:file`,
/// `owner/name:Q4_K_M`, an address.
pub fn download_args(text: &str) -> DownloadStartArgs {
    with_address(&DownloadStartArgs { repository: text.trim().into(), path: None, revision: None })
}

/// Takes the repository of an address apart from the file and the revision that it names.
pub(crate) fn with_address(args: &DownloadStartArgs) -> DownloadStartArgs {
    let Some(address) = ModelAddress::parse(&args.repository) else { return args.clone() };
    let ModelAddress { repository, revision, path } = address;
    DownloadStartArgs {
        repository: repository.to_string(),
        path: args.path.clone().or(path),
        revision: args.revision.clone().or(revision),
    }
}

/// Reads `owner/name`, or an address of it.
pub(crate) fn repository(text: &str) -> Result<Repository> {
    ModelAddress::parse(text).map(|address| address.repository).ok_or_else(|| {
        Error::input(
            "hub.repository",
            format!("\"{text}\" is neither a model in the catalog nor OWNER/NAME on Hugging Face."),
            "Search with `nook models search`.",
        )
    })
}

impl App {
    /// `owner/name` or an id of the catalogue, and what that says of it.
    pub(crate) fn named(&self, text: &str) -> Result<(Repository, Option<CatalogOffer>)> {
        let text = text.trim();
        let address = ModelAddress::parse(text).map(|address| address.repository.to_string());
        let is_meant = |offer: &CatalogOffer| {
            offer.id == text || offer.repository == text || address.as_ref() == Some(&offer.repository)
        };
        let (all, fault) = self.usable_catalogue()?;
        let offer = all.into_iter().find(is_meant);
        let name = offer.as_ref().map_or(text, |offer| offer.repository.as_str());
        // An id that nothing knows may be one of a list that can't be used.
        let repository = repository(name).map_err(|error| fault.unwrap_or(error))?;
        Ok((repository, offer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_where_the_cache_is() {
        let read = |pairs: &[(&str, &str)]| {
            HubAccess::read(&|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into())
            })
        };
        assert_eq!(read(&[]).cache, None);
        let cases = [
            (&[("HOME", "/h")][..], "/h/.cache/huggingface/hub"),
            (&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")], "/c/huggingface/hub"),
            (&[("HOME", "/h"), ("HF_HOME", "/f")], "/f/hub"),
            (&[("HOME", "/h"), ("HF_HUB_CACHE", "/u"), ("HF_HOME", "/f")], "/u"),
        ];
        for (pairs, expected) in cases {
            assert_eq!(read(pairs).cache.as_deref(), Some(std::path::Path::new(expected)), "{pairs:?}");
        }
        let proxies = read(&[
            ("https_proxy", "http://user:secret@proxy:3128/"),
            ("HTTP_PROXY", "plain:8080"),
            ("NO_PROXY", "localhost, .inside.example"),
        ])
        .proxies;
        for (address, expected) in [
            ("https://huggingface.co", Some("proxy:3128")),
            ("http://mirror.example:81/hub", Some("plain:8080")),
            ("https://hub.inside.example/x", None),
            ("http://localhost:9", None),
        ] {
            assert_eq!(proxies.for_address(address).as_deref(), expected, "{address}");
        }
        let access = read(&[("HF_ENDPOINT", "http://m"), ("HF_TOKEN", "hf_1")]);
        assert_eq!((access.endpoint.as_deref(), access.token.as_deref()), (Some("http://m"), Some("hf_1")));
    }
}

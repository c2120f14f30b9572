//! The endpoints' use cases: add, list, test, change, remove; and their entries in the library.

use std::sync::{Arc, Weak};
use std::time::Duration;

use contract::protocol::{Location, ModelRef};
use contract::types::{
    AppEvent, EndpointAddArgs, EndpointHealth, EndpointInfo, EndpointKey, EndpointModel, EndpointUpdateArgs,
    KeyPlace, ModelEntry, ServerKind,
};
use contract::{Error, ErrorKind, Result};
use io::Clock;
use net::ConnectionGate;
use remote::{Address, Endpoint, EndpointDirectory, Remote};
use secrets::{Keys, Secret};
use serde::Serialize;
use session::EndpointRow;

use crate::events::Events;
use crate::settings::{Settings, TypedSettings};
use crate::store::{Store, StoreGuard};
use crate::{App, Environment};

use records::endpoint_listing::{EndpointListing, checked_models, model_entry};

/// Longest name of an endpoint.
const MAX_NAME_CHARS: usize = 32;

impl App {
    /// In the order in which they were added.
    pub fn endpoint_list(&self) -> Result<Vec<EndpointInfo>> {
        let rows = self.store().endpoints()?;
        rows.iter().map(|row| self.endpoints().info(row)).collect()
    }

    /// Kept whether its server answers or not; `health` says which.
    pub fn endpoint_add(&self, args: EndpointAddArgs) -> Result<EndpointInfo> {
        let (name, address) = (checked_name(&args.name)?, Address::parse(&args.url)?);
        let row = EndpointRow {
            id: self.store().new_id(),
            name,
            url: address.base().into(),
            key: written(&EndpointKey::None)?,
            enabled: true,
            models: written(&EndpointListing { typed: checked_models(args.models)?, ..Default::default() })?,
            added_ms: self.ctx().clock.now_utc_ms(),
        };
        let row = self.with_key(row, args.key.as_deref(), args.key_variable.as_deref())?;
        self.put_endpoint(&row)?;
        self.looked_at(&row.id)
    }

    /// Asks it for its models. The error says why it can't be used.
    pub fn endpoint_test(&self, id: &str) -> Result<EndpointInfo> {
        let row = self.endpoints().row(id)?;
        self.endpoints().remote.look(&row.id)?;
        self.endpoints().info(&self.endpoints().row(&row.id)?)
    }

    pub fn endpoint_update(&self, args: EndpointUpdateArgs) -> Result<EndpointInfo> {
        let mut row = self.endpoints().row(&args.id)?;
        if let Some(name) = &args.name {
            row.name = checked_name(name)?;
        }
        if let Some(url) = &args.url {
            row.url = Address::parse(url)?.base().into();
        }
        if let Some(enabled) = args.enabled {
            row.enabled = enabled;
        }
        if args.models.is_some() {
            row.models = written(&EndpointListing {
                typed: checked_models(args.models)?,
                ..EndpointListing::of(&row)
            })?;
        }
        let row = self.with_key(row, args.key.as_deref(), args.key_variable.as_deref())?;
        self.endpoints().remote.forget_health(&row.id);
        self.put_endpoint(&row)?;
        if row.enabled { self.looked_at(&row.id) } else { self.endpoints().info(&row) }
    }

    /// Its key goes with it. Conversations stay; another model goes on with them.
    pub fn endpoint_remove(&self, id: &str) -> Result<()> {
        let row = self.endpoints().row(id)?;
        self.endpoints().remote.forget_health(&row.id);
        self.endpoints().forget_key(&row.id, &key_of(&row));
        self.endpoints().telling(|| {
            self.store().remove_endpoint(&row.id)?;
            Ok(())
        })
    }

    fn put_endpoint(&self, row: &EndpointRow) -> Result<()> {
        let rows = self.store().endpoints()?;
        if rows.iter().any(|other| other.id != row.id && (&other.name, &other.url) == (&row.name, &row.url)) {
            let message = format!("{} already exists, at {}.", row.name, row.url);
            let remedy = "Change the existing server (nook endpoints update), or use another name.";
            return Err(Error::new(ErrorKind::Conflict, "endpoint.there", message, remedy));
        }
        self.endpoints().telling(|| Ok(self.store().put_endpoint(row)?))
    }

    /// The row, with the key put where it belongs.
    fn with_key(&self, row: EndpointRow, key: Option<&str>, variable: Option<&str>) -> Result<EndpointRow> {
        let before = key_of(&row);
        let source = match (key, variable) {
            (None, None) => return Ok(row),
            (Some(_), Some(_)) => {
                let remedy = "Give either the key or the name of its environment variable.";
                return Err(Error::input("endpoint.two_keys", "Two keys were given.", remedy));
            }
            (Some(""), None) => EndpointKey::None,
            (Some(key), None) => match self.endpoints().keep_key(&row.id, key)? {
                KeyPlace::Keychain => EndpointKey::Keychain,
                KeyPlace::File => EndpointKey::File,
            },
            (None, Some(variable)) => {
                let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if variable.is_empty() || !variable.chars().all(is_fine) {
                    let message = format!("\"{variable}\" is not a valid variable name.");
                    return Err(Error::input(
                        "endpoint.variable",
                        message,
                        "Use a name such as LAB_API_KEY.",
                    ));
                }
                EndpointKey::Environment { variable: variable.into() }
            }
        };
        if source != before {
            self.endpoints().forget_key(&row.id, &before);
        }
        Ok(EndpointRow { key: written(&source)?, ..row })
    }

    /// A server that doesn't answer is no reason to forget what the user typed.
    fn looked_at(&self, id: &str) -> Result<EndpointInfo> {
        if let Err(error) = self.endpoints().remote.look(id) {
            tracing::info!(code = error.code(), "an endpoint does not answer: {error}");
        }
        self.endpoints().info(&self.endpoints().row(id)?)
    }

    /// The model that answers under a name such as `lab/qwen3-8b`. None: no endpoint has that name.
    pub(crate) fn remote_model(&self, id: &str) -> Result<Option<ModelRef>> {
        let Some((name, model)) = id.split_once('/') else { return Ok(None) };
        let rows = self.store().endpoints()?;
        if !rows.iter().any(|row| row.name == name) {
            return Ok(None);
        }
        self.endpoints().candidates(name, model)?;
        Ok(Some(ModelRef {
            id: id.into(),
            location: Location::Remote { name: name.into(), model: model.into() },
        }))
    }

    fn endpoints(&self) -> &Endpoints {
        &self.ctx().backends.endpoints
    }
}

/// The endpoints, their keys, and the models behind them.
pub(crate) struct Endpoints {
    store: Store,
    events: Events,
    settings: Settings,
    keys: Arc<Keys>,
    environment: Environment,
    remote: Remote,
}

impl Endpoints {
    pub fn new(
        store: Store,
        events: Events,
        settings: Settings,
        keys: Arc<Keys>,
        environment: Environment,
        gate: ConnectionGate,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|endpoints: &Weak<Self>| {
            let remote = Remote::new(endpoints.clone(), gate, clock);
            Self { store, events, settings, keys, environment, remote }
        })
    }

    /// Who asks the servers.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    fn store(&self) -> StoreGuard<'_> {
        self.store.lock()
    }

    fn row(&self, id: &str) -> Result<EndpointRow> {
        let mut rows = self.store().endpoints()?;
        // A name does where only one has it.
        let n_named = rows.iter().filter(|row| row.name == id).count();
        let at = rows.iter().position(|row| row.id == id || n_named == 1 && row.name == id);
        at.map(|at| rows.swap_remove(at)).ok_or_else(|| {
            let message = format!("There is no endpoint \"{id}\", or its name is not unique.");
            Error::not_found("endpoint.unknown", message, "See the ids in `nook endpoints list`.")
        })
    }

    /// Rows that may answer for a model. Error: none can.
    fn candidate_rows(&self, name: &str, model: &str) -> Result<Vec<EndpointRow>> {
        let mut rows = self.store().endpoints()?;
        rows.retain(|row| row.name == name);
        if rows.is_empty() {
            let message = format!("The server {name} was removed.");
            return Err(Error::not_found(
                "remote.unknown",
                message,
                "Add it again, or choose another model.",
            ));
        }
        rows.retain(|row| row.enabled);
        if rows.is_empty() {
            return Err(Error::new(
                ErrorKind::Conflict,
                "remote.disabled",
                format!("The server {name} is turned off."),
                "Turn it on (nook endpoints on ID), or choose another model.",
            ));
        }
        rows.retain(|row| {
            let listing = EndpointListing::of(row);
            listing.models.is_empty() || listing.all().iter().any(|it| it.id == model)
        });
        if rows.is_empty() {
            let message = format!("{name} has no model \"{model}\".");
            let remedy = "Refresh its models with `nook endpoints test`, or choose another model.";
            return Err(Error::not_found("remote.model_gone", message, remedy));
        }
        Ok(rows)
    }

    /// Error: the key is not where it should be.
    fn key_of(&self, id: &str, name: &str, key: &EndpointKey) -> Result<Option<Secret>> {
        Ok(match key {
            EndpointKey::None => None,
            EndpointKey::File => Some(self.kept_key(id, name, KeyPlace::File)?),
            EndpointKey::Keychain => Some(self.kept_key(id, name, KeyPlace::Keychain)?),
            EndpointKey::Environment { variable } => {
                let value = (self.environment.0)(variable).filter(|value| !value.trim().is_empty());
                let value = value.ok_or_else(|| {
                    let message = format!("The key of {name} is to be in {variable}, which is not set.");
                    Error::input("remote.key", message, "Set the variable, then restart Inglenook.")
                })?;
                Some(Secret::new(value.trim().into()))
            }
        })
    }

    fn kept_key(&self, id: &str, name: &str, place: KeyPlace) -> Result<Secret> {
        self.keys.get_at(id, place)?.ok_or_else(|| {
            let message = format!("The key of {name} is not kept any more.");
            Error::input("remote.key", message, "Enter it again (nook endpoints update ID --key-stdin).")
        })
    }

    /// Puts a key where the settings want it; where that is.
    pub(crate) fn keep_key(&self, name: &str, key: &str) -> Result<KeyPlace> {
        let wants_file = self.wants_key_file()?;
        self.keys.put(name, key, wants_file)
    }

    pub(crate) fn wants_key_file(&self) -> Result<bool> {
        Ok(self.settings.key_place()? == "file")
    }

    /// A key that can't be removed now is reported; without its endpoint it is useless.
    fn forget_key(&self, name: &str, key: &EndpointKey) {
        let forgotten = match key {
            EndpointKey::None | EndpointKey::Environment { .. } => Ok(()),
            EndpointKey::File => self.keys.remove_at(name, KeyPlace::File),
            EndpointKey::Keychain => self.keys.remove_at(name, KeyPlace::Keychain),
        };
        if let Err(error) = forgotten {
            self.events.notice(error.info);
        }
    }

    fn info(&self, row: &EndpointRow) -> Result<EndpointInfo> {
        let (address, listing) = (Address::parse(&row.url)?, EndpointListing::of(row));
        let health = match self.remote.health(&row.id) {
            None => EndpointHealth::Unknown,
            Some(Ok(())) => EndpointHealth::Up,
            Some(Err(error)) => EndpointHealth::Down { error },
        };
        Ok(EndpointInfo {
            id: row.id.clone(),
            name: row.name.clone(),
            url: row.url.clone(),
            host: address.place(),
            leaves_machine: !address.is_here(),
            is_readable: address.is_readable(),
            key: key_of(row),
            enabled: row.enabled,
            server: listing.server,
            models: listing.all(),
            typed_models: listing.typed,
            health,
        })
    }

    /// Models of endpoints that are switched on, in their order.
    pub(crate) fn model_entries(&self) -> Result<Vec<ModelEntry>> {
        let rows = self.store().endpoints()?;
        let mut infos = Vec::new();
        for row in rows.iter().filter(|row| row.enabled) {
            infos.push(self.info(row)?);
        }
        let mut entries: Vec<ModelEntry> = Vec::new();
        for info in &infos {
            for model in &info.models {
                let id = format!("{}/{}", info.name, model.id);
                if entries.iter().all(|entry| entry.id != id) {
                    entries.push(model_entry(id, model, &infos, &info.name));
                }
            }
        }
        Ok(entries)
    }

    /// Says what has become of the models of an endpoint.
    fn publish_models(&self, id: &str) {
        let Ok(row) = self.row(id) else { return };
        let of_it = |entry: &ModelEntry| entry.remote.as_ref().is_some_and(|it| it.endpoint == row.name);
        for model in self.model_entries().unwrap_or_default().into_iter().filter(of_it) {
            self.events.publish(AppEvent::ModelChanged { model });
        }
    }

    /// Changes endpoints, and says what that does to the library.
    fn telling(&self, change: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.model_entries()?;
        change()?;
        let after = self.model_entries()?;
        for gone in before.into_iter().filter(|it| after.iter().all(|other| other.id != it.id)) {
            self.events.publish(AppEvent::ModelRemoved { id: gone.id });
        }
        after.into_iter().for_each(|model| self.events.publish(AppEvent::ModelChanged { model }));
        Ok(())
    }
}

impl EndpointDirectory for Endpoints {
    fn candidates(&self, name: &str, model: &str) -> Result<Vec<Endpoint>> {
        Ok(self.candidate_rows(name, model)?.into_iter().map(endpoint).collect())
    }

    fn endpoint(&self, id: &str) -> Result<Endpoint> {
        self.row(id).map(endpoint)
    }

    fn key(&self, endpoint: &Endpoint) -> Result<Option<Secret>> {
        self.key_of(&endpoint.id, &endpoint.name, &endpoint.key)
    }

    fn keep_models(&self, id: &str, kind: ServerKind, models: Vec<EndpointModel>) -> Result<()> {
        self.telling(|| {
            let row = self.row(id)?;
            let models = written(&EndpointListing { server: kind, models, ..EndpointListing::of(&row) })?;
            Ok(self.store().put_endpoint(&EndpointRow { models, ..row })?)
        })
    }

    fn health_changed(&self, id: &str) {
        self.publish_models(id);
    }

    fn silence_timeout(&self) -> Duration {
        Duration::from_secs(self.settings.endpoint_silence().ok().flatten().unwrap_or(120))
    }
}

/// A row as other servers' code needs it.
fn endpoint(row: EndpointRow) -> Endpoint {
    let (key, listing) = (key_of(&row), EndpointListing::of(&row));
    let (kind, models, has_typed) = (listing.server, listing.all(), !listing.typed.is_empty());
    Endpoint { id: row.id, name: row.name, url: row.url, key, kind, models, has_typed }
}

fn key_of(row: &EndpointRow) -> EndpointKey {
    serde_json::from_str(&row.key).unwrap_or_default()
}

fn written(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(Error::bug)
}

fn checked_name(name: &str) -> Result<String> {
    let name = name.trim();
    let is_fine = |c: char| c.is_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || !name.chars().all(is_fine) {
        let message = format!("\"{name}\" is not a valid server name.");
        let remedy = format!("Use up to {MAX_NAME_CHARS} letters, digits, dots and hyphens, such as lab.");
        return Err(Error::input("endpoint.name", message, remedy));
    }
    Ok(name.into())
}

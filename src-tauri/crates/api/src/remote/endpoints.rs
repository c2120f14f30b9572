//! The endpoints' use cases: add, list, test, change, remove; and what of them the library shows.

use serde::{Deserialize, Serialize};
use session::EndpointRow;

use super::Server;
use super::address::Address;
use super::pool::Health;
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Secret;
use crate::types::{
    AppEvent, EndpointAddArgs, EndpointHealth, EndpointInfo, EndpointKey, EndpointModel, EndpointUpdateArgs,
    KeyPlace, ModelEntry, ModelSource, ModelState, RemoteInfo, ServerKind,
};
use crate::worker::protocol::{Location, ModelRef};
use crate::{App, Shared};

/// Longest name of an endpoint.
const MAX_NAME_CHARS: usize = 32;

/// What a server listed when it was last asked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Listed {
    server: ServerKind,
    models: Vec<EndpointModel>,
}

impl App {
    /// In the order in which they were added.
    pub fn endpoint_list(&self) -> Result<Vec<EndpointInfo>> {
        let rows = self.shared().state().session.endpoints()?;
        rows.iter().map(|row| self.shared().endpoint_info(row)).collect()
    }

    /// Kept whether its server answers or not; `health` says which.
    pub fn endpoint_add(&self, args: EndpointAddArgs) -> Result<EndpointInfo> {
        let (name, address) = (checked_name(&args.name)?, Address::parse(&args.url)?);
        let shared = self.shared();
        let row = EndpointRow {
            id: shared.state().session.new_id(),
            name,
            url: address.base().into(),
            key: written(&EndpointKey::None)?,
            enabled: true,
            models: written(&Listed::default())?,
            added_ms: shared.clock.now_utc_ms(),
        };
        let row = self.with_key(row, args.key.as_deref(), args.key_variable.as_deref())?;
        self.put_endpoint(&row)?;
        self.looked_at(&row.id)
    }

    /// Asks it for its models. The error says why it can't be used.
    pub fn endpoint_test(&self, id: &str) -> Result<EndpointInfo> {
        let row = self.shared().endpoint_row(id)?;
        self.shared().remote.look(&row.id)?;
        self.shared().endpoint_info(&self.shared().endpoint_row(&row.id)?)
    }

    pub fn endpoint_update(&self, args: EndpointUpdateArgs) -> Result<EndpointInfo> {
        let mut row = self.shared().endpoint_row(&args.id)?;
        if let Some(name) = &args.name {
            row.name = checked_name(name)?;
        }
        if let Some(url) = &args.url {
            row.url = Address::parse(url)?.base().into();
        }
        if let Some(enabled) = args.enabled {
            row.enabled = enabled;
        }
        let row = self.with_key(row, args.key.as_deref(), args.key_variable.as_deref())?;
        self.shared().remote.known().pool.forget(&row.id);
        self.put_endpoint(&row)?;
        if row.enabled { self.looked_at(&row.id) } else { self.shared().endpoint_info(&row) }
    }

    /// Its key goes with it. Conversations stay; another model goes on with them.
    pub fn endpoint_remove(&self, id: &str) -> Result<()> {
        let row = self.shared().endpoint_row(id)?;
        self.shared().remote.known().pool.forget(&row.id);
        self.shared().forget_key(&row.id, &key_of(&row));
        self.shared().telling(|| {
            self.shared().state().session.remove_endpoint(&row.id)?;
            Ok(())
        })
    }

    fn put_endpoint(&self, row: &EndpointRow) -> Result<()> {
        let rows = self.shared().state().session.endpoints()?;
        if rows.iter().any(|other| other.id != row.id && (&other.name, &other.url) == (&row.name, &row.url)) {
            let message = format!("{} already exists, at {}.", row.name, row.url);
            let remedy = "Change the existing server (nook endpoints update), or use another name.";
            return Err(Error::new(ErrorKind::Conflict, "endpoint.there", message, remedy));
        }
        self.shared().telling(|| Ok(self.shared().state().session.put_endpoint(row)?))
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
            (Some(key), None) => match self.shared().keep_key(&row.id, key)? {
                KeyPlace::Keychain => EndpointKey::Keychain,
                KeyPlace::File => EndpointKey::Kept,
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
            self.shared().forget_key(&row.id, &before);
        }
        Ok(EndpointRow { key: written(&source)?, ..row })
    }

    /// A server that doesn't answer is no reason to forget what the user typed.
    fn looked_at(&self, id: &str) -> Result<EndpointInfo> {
        if let Err(error) = self.shared().remote.look(id) {
            tracing::info!(code = error.code(), "an endpoint does not answer: {error}");
        }
        self.shared().endpoint_info(&self.shared().endpoint_row(id)?)
    }

    /// The model that answers under a name such as `lab/qwen3-8b`. None: no endpoint has that name.
    pub(crate) fn remote_model(&self, id: &str) -> Result<Option<ModelRef>> {
        let Some((name, model)) = id.split_once('/') else { return Ok(None) };
        let rows = self.shared().state().session.endpoints()?;
        if !rows.iter().any(|row| row.name == name) {
            return Ok(None);
        }
        self.shared().candidates(name, model)?;
        Ok(Some(ModelRef {
            id: id.into(),
            location: Location::Remote { name: name.into(), model: model.into() },
        }))
    }
}

impl Shared {
    pub fn endpoint_row(&self, id: &str) -> Result<EndpointRow> {
        let mut rows = self.state().session.endpoints()?;
        // A name does where only one has it.
        let n_named = rows.iter().filter(|row| row.name == id).count();
        let at = rows.iter().position(|row| row.id == id || n_named == 1 && row.name == id);
        at.map(|at| rows.swap_remove(at)).ok_or_else(|| {
            let message = format!("There is no endpoint \"{id}\", or its name is not unique.");
            Error::not_found("endpoint.unknown", message, "See the ids in `nook endpoints list`.")
        })
    }

    /// Those that may answer for a model. Error: none can.
    pub fn candidates(&self, name: &str, model: &str) -> Result<Vec<EndpointRow>> {
        let mut rows = self.state().session.endpoints()?;
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
            let models = listed(row).models;
            models.is_empty() || models.iter().any(|it| it.id == model)
        });
        if rows.is_empty() {
            let message = format!("{name} has no model \"{model}\".");
            let remedy = "Refresh its models with `nook endpoints test`, or choose another model.";
            return Err(Error::not_found("remote.model_gone", message, remedy));
        }
        Ok(rows)
    }

    /// Error: its key is not where it should be.
    pub fn server_of(&self, row: &EndpointRow) -> Result<Server> {
        let key = match key_of(row) {
            EndpointKey::None => None,
            EndpointKey::Kept => Some(self.kept_key(row, KeyPlace::File)?),
            EndpointKey::Keychain => Some(self.kept_key(row, KeyPlace::Keychain)?),
            EndpointKey::Environment { variable } => {
                let value = (self.remote.environment.0)(&variable).filter(|value| !value.trim().is_empty());
                let value = value.ok_or_else(|| {
                    let message =
                        format!("The API key of {} should be in the environment variable {variable}, which is not set.", row.name);
                    Error::input("remote.key", message, "Set the variable, then restart Inglenook.")
                })?;
                Some(Secret::new(value.trim().into()))
            }
        };
        Ok(Server { address: Address::parse(&row.url)?, key, kind: listed(row).server })
    }

    fn kept_key(&self, row: &EndpointRow, place: KeyPlace) -> Result<Secret> {
        self.remote.keys.get_at(&row.id, place)?.ok_or_else(|| {
            let message = format!("The API key of {} is no longer stored.", row.name);
            Error::input("remote.key", message, "Enter it again (nook endpoints update ID --key-stdin).")
        })
    }

    /// Puts a key where the settings want it; where that is.
    pub(crate) fn keep_key(&self, name: &str, key: &str) -> Result<KeyPlace> {
        let wants_file = self.wants_key_file()?;
        self.remote.keys.put(name, key, wants_file)
    }

    pub(crate) fn wants_key_file(&self) -> Result<bool> {
        Ok(self.setting("key_place")? == "file")
    }

    /// What can't be forgotten now is told, and is of no use without its endpoint.
    fn forget_key(&self, name: &str, key: &EndpointKey) {
        let forgotten = match key {
            EndpointKey::None | EndpointKey::Environment { .. } => Ok(()),
            EndpointKey::Kept => self.remote.keys.remove_at(name, KeyPlace::File),
            EndpointKey::Keychain => self.remote.keys.remove_at(name, KeyPlace::Keychain),
        };
        if let Err(error) = forgotten {
            self.notice(error.info);
        }
    }

    /// Tokens that a model holds; the least of its servers. 0: none of them says.
    pub fn context_of(&self, model: &ModelRef) -> usize {
        let Location::Remote { name, model } = &model.location else { return 0 };
        let rows = self.candidates(name, model).unwrap_or_default();
        let models = rows.iter().flat_map(|row| listed(row).models).filter(|it| it.id == *model);
        models.map(|it| it.context_length as usize).filter(|&n| n > 0).min().unwrap_or(0)
    }

    pub fn kind_of(&self, model: &ModelRef) -> Option<ServerKind> {
        let Location::Remote { name, model } = &model.location else { return None };
        self.candidates(name, model).ok()?.first().map(|row| listed(row).server)
    }

    fn endpoint_info(&self, row: &EndpointRow) -> Result<EndpointInfo> {
        let (address, Listed { server, models }) = (Address::parse(&row.url)?, listed(row));
        let health = match self.remote.known().pool.health(&row.id) {
            None => EndpointHealth::Unknown,
            Some(Health::Up) => EndpointHealth::Up,
            Some(Health::Down { error, .. }) => EndpointHealth::Down { error: error.clone() },
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
            server,
            models,
            health,
        })
    }

    /// Models of endpoints that are switched on, in their order.
    pub(crate) fn remote_entries(&self) -> Result<Vec<ModelEntry>> {
        let rows = self.state().session.endpoints()?;
        let mut infos = Vec::new();
        for row in rows.iter().filter(|row| row.enabled) {
            infos.push(self.endpoint_info(row)?);
        }
        let mut entries: Vec<ModelEntry> = Vec::new();
        for info in &infos {
            for model in &info.models {
                let id = format!("{}/{}", info.name, model.id);
                if entries.iter().all(|entry| entry.id != id) {
                    entries.push(entry(id, model, &infos, &info.name));
                }
            }
        }
        Ok(entries)
    }

    /// Says what has become of the models of an endpoint.
    pub fn tell_endpoint(&self, id: &str) {
        let Ok(row) = self.endpoint_row(id) else { return };
        let of_it = |entry: &ModelEntry| entry.remote.as_ref().is_some_and(|it| it.endpoint == row.name);
        for model in self.remote_entries().unwrap_or_default().into_iter().filter(of_it) {
            self.tell(AppEvent::ModelChanged { model });
        }
    }

    /// Changes endpoints, and says what that does to the library.
    fn telling(&self, change: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.remote_entries()?;
        change()?;
        let after = self.remote_entries()?;
        for gone in before.into_iter().filter(|it| after.iter().all(|other| other.id != it.id)) {
            self.tell(AppEvent::ModelRemoved { id: gone.id });
        }
        after.into_iter().for_each(|model| self.tell(AppEvent::ModelChanged { model }));
        Ok(())
    }
}

/// A server has said what it has.
pub fn keep_list(
    shared: &Shared,
    endpoint: &str,
    server: ServerKind,
    models: Vec<EndpointModel>,
) -> Result<()> {
    shared.telling(|| {
        let models = written(&Listed { server, models })?;
        let row = shared.endpoint_row(endpoint)?;
        Ok(shared.state().session.put_endpoint(&EndpointRow { models, ..row })?)
    })
}

fn entry(id: String, model: &EndpointModel, infos: &[EndpointInfo], name: &str) -> ModelEntry {
    let has = |info: &&EndpointInfo| info.name == name && info.models.iter().any(|it| it.id == model.id);
    let having: Vec<&EndpointInfo> = infos.iter().filter(has).collect();
    let down = having.iter().map(|info| match &info.health {
        EndpointHealth::Down { error } => Some(error.clone()),
        EndpointHealth::Unknown | EndpointHealth::Up => None,
    });
    let down: Option<Vec<_>> = down.collect();
    let state = match down.and_then(|errors| errors.into_iter().next()) {
        Some(error) => ModelState::Unusable { error },
        None => ModelState::Ready,
    };
    let leaves_machine = having.iter().any(|info| info.leaves_machine);
    let hosts: Vec<String> = having.iter().map(|info| info.host.clone()).collect();
    let places = hosts.join(", ");
    let mut note = match leaves_machine {
        true => format!("Your messages leave this computer and go to {places}."),
        false => format!("Answers come from another program on this computer ({places})."),
    };
    if having.iter().any(|info| info.is_readable) {
        note.push_str(" The connection is not encrypted (HTTP).");
    }
    let lengths = having.iter().flat_map(|info| &info.models).filter(|it| it.id == model.id);
    let context_length = lengths.map(|it| it.context_length).filter(|&n| n > 0).min().unwrap_or(0);
    ModelEntry {
        id,
        name: model.id.clone(),
        source: ModelSource::Remote,
        path: None,
        bytes: 0,
        architecture: String::new(),
        parameters: 0,
        dtype: String::new(),
        context_length,
        state,
        remote: Some(RemoteInfo { endpoint: name.into(), hosts, leaves_machine, note }),
        files: 0,
        disk_bytes: 0,
        fit: None,
        embeds: false,
        skills: None,
    }
}

/// Kept JSON that can't be read any more is as if nothing had been listed.
fn listed(row: &EndpointRow) -> Listed {
    serde_json::from_str(&row.models).unwrap_or_default()
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

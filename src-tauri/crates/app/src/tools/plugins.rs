//! Plugins: folders in `plugins/` of the data folder, each with a manifest of what it brings: tool
//! servers, presets, chat templates, offered models. Off until the user enables one. What is
//! adopted is what was shown: a manifest that changes later has no effect until the plugin is
//! switched off and on again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::App;
use contract::CatalogOffer;
use contract::types::{PluginInfo, PluginSwitchArgs, PresetArgs};
use contract::{Error, ErrorKind, Result};
use mcp::plugin_manifest::{self, FILE, MAX_BYTES, Manifest};

/// Where what is switched on is kept. No setting's key has a colon.
const KEPT: &str = "plugins:on";

/// Folders that are looked at.
const MAX_PLUGINS: usize = 100;

/// What was taken over of one plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct AdoptedPlugin {
    /// SHA-256 of the manifest.
    digest: String,
    /// Ids.
    servers: Vec<String>,
    presets: Vec<String>,
    /// Sources by the model's library id.
    templates: BTreeMap<String, String>,
    /// As a catalogue has them: without who signed it.
    offers: Vec<Value>,
}

/// By folder.
type On = BTreeMap<String, AdoptedPlugin>;

impl App {
    fn plugins_folder(&self) -> PathBuf {
        self.dirs().data.join("plugins")
    }

    /// By folder. One that can't be read says why.
    pub fn plugins_list(&self) -> Result<Vec<PluginInfo>> {
        let io = &*self.ctx().io;
        let (folder, on) = (self.plugins_folder(), self.plugins_on()?);
        let paths = if io.exists(&folder)? { io.list(&folder)? } else { Vec::new() };
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut names: Vec<String> = paths
            .iter()
            .filter(|path| io.exists(&path.join(FILE)).unwrap_or(false))
            .filter_map(name)
            .take(MAX_PLUGINS)
            .collect();
        // One whose folder has gone can still be switched off.
        names.extend(on.keys().filter(|name| !names.contains(*name)).cloned().collect::<Vec<_>>());
        names.sort_unstable();
        Ok(names.into_iter().map(|name| self.plugin_info(&folder, &name, on.get(&name))).collect())
    }

    /// Takes over what a plugin brings, or takes it back; the plugins as they are then.
    pub fn plugin_switch(&self, args: &PluginSwitchArgs) -> Result<Vec<PluginInfo>> {
        let mut on = self.plugins_on()?;
        match (args.enabled, on.contains_key(&args.name)) {
            (true, false) => {
                let mut taken = AdoptedPlugin::default();
                if let Err(error) = self.take_over(&args.name, &mut taken) {
                    // Nothing of it stays.
                    self.take_back(&taken)?;
                    return Err(error);
                }
                on.insert(args.name.clone(), taken);
            }
            (false, true) => {
                if let Some(taken) = on.remove(&args.name) {
                    self.take_back(&taken)?;
                }
            }
            (true, true) | (false, false) => return self.plugins_list(),
        }
        let json = serde_json::to_string(&on).map_err(Error::bug)?;
        self.store().set_setting(KEPT, &json)?;
        self.plugins_list()
    }

    fn plugins_on(&self) -> Result<On> {
        let kept = self.store().setting(KEPT)?;
        // What can't be read (of another version, say) counts as nothing.
        Ok(kept.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
    }

    fn read_plugin(&self, folder: &Path) -> Result<(Manifest, String)> {
        let (io, path) = (&*self.ctx().io, folder.join(FILE));
        let bytes = io.read_within(&path, MAX_BYTES).map_err(|error| match error.code() {
            "io.too_large" => {
                let message = format!("{} is too large for a manifest.", path.display());
                Error::input("plugin.manifest", message, "Remove everything that doesn't belong in it.")
            }
            _ => error.into(),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| {
            let message = format!("{} is not UTF-8 text.", path.display());
            Error::input("plugin.manifest", message, "Save it as UTF-8.")
        })?;
        let hash = digest(&SHA256, text.as_bytes());
        let hash = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((Manifest::parse(&text, &path)?, hash))
    }

    fn plugin_info(&self, plugins: &Path, name: &str, taken: Option<&AdoptedPlugin>) -> PluginInfo {
        let folder = plugins.join(name);
        let info = PluginInfo { folder: name.into(), name: name.into(), ..PluginInfo::default() };
        let info = PluginInfo { enabled: taken.is_some(), ..info };
        let (manifest, hash) = match self.read_plugin(&folder) {
            Ok(read) => read,
            Err(error) => return PluginInfo { error: Some(error.info), ..info },
        };
        let server = |(name, server): (&String, &plugin_manifest::ManifestServer)| {
            let spec = server.spec(&folder);
            let words = spec.command.iter().chain(&spec.args).map(String::as_str).collect::<Vec<_>>();
            let place = spec.url.clone().unwrap_or_else(|| words.join(" "));
            format!("{name}: {place}")
        };
        PluginInfo {
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            description: manifest.description.clone(),
            servers: manifest.mcp_servers.iter().map(server).collect(),
            presets: manifest.presets.iter().map(|preset| preset.name.clone()).collect(),
            templates: manifest
                .templates
                .iter()
                .map(|template| format!("{}: {}", template.model, template.file))
                .collect(),
            models: manifest
                .models
                .iter()
                .map(|offer| format!("{}: {}", offer.name, offer.repository))
                .collect(),
            changed: taken.is_some_and(|taken| taken.digest != hash),
            ..info
        }
    }

    /// `taken` records what has been adopted so far, even after a failure.
    fn take_over(&self, name: &str, taken: &mut AdoptedPlugin) -> Result<()> {
        let folder = self.plugins_folder().join(name);
        if folder.parent() != Some(&self.plugins_folder()) || name == ".." {
            let message = format!("There is no plugin \"{name}\".");
            return Err(Error::not_found("plugin.unknown", message, "See `nook plugins`."));
        }
        let (manifest, hash) = self.read_plugin(&folder)?;
        taken.digest = hash;
        crate::models::catalog::check(&folder.join(FILE).display().to_string(), &manifest.models)?;
        for offer in &manifest.models {
            let mut offer = serde_json::to_value(offer).map_err(Error::bug)?;
            offer.as_object_mut().map(|fields| fields.remove("signed_by"));
            taken.offers.push(offer);
        }
        for template in &manifest.templates {
            let source = crate::template_file(&folder.join(&template.file))?;
            taken.templates.insert(template.model.clone(), source);
        }
        for preset in &manifest.presets {
            let args = PresetArgs {
                id: None,
                name: preset.name.clone(),
                options: preset.options.clone(),
                compression: preset.compression,
            };
            taken.presets.push(self.preset_save(&args)?.id);
        }
        for (of, server) in &manifest.mcp_servers {
            let spec = server.spec(&folder);
            let row = self.put_tool_server(&self.unused_name(of)?, spec, Some(&manifest.name), true)?;
            taken.servers.push(row.id);
        }
        let (app, ids) = (self.clone(), taken.servers.clone());
        // They are listed at once and say themselves how they are.
        let starting = platform::spawn("plugin", move || {
            for id in ids {
                if let Err(error) = app.tool_server_test(&id) {
                    tracing::warn!(code = error.code(), "a plugin's server: {error}");
                }
            }
        });
        starting.map(drop)
    }

    /// What the user has removed already is no failure.
    fn take_back(&self, taken: &AdoptedPlugin) -> Result<()> {
        let gone = |outcome: Result<()>| match outcome {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        };
        taken.servers.iter().try_for_each(|id| gone(self.tool_server_remove(id)))?;
        taken.presets.iter().try_for_each(|id| gone(self.preset_remove(id)))
    }

    /// A template that a plugin has for this model.
    pub(crate) fn plugin_template(&self, model: &str) -> Result<Option<String>> {
        Ok(self.plugins_on()?.into_values().find_map(|mut taken| taken.templates.remove(model)))
    }

    /// Models that plugins offer.
    pub(crate) fn plugin_offers(&self) -> Result<Vec<CatalogOffer>> {
        let offers = self.plugins_on()?.into_values().flat_map(|taken| taken.offers);
        // One of another version's form is as if it weren't there.
        Ok(offers.filter_map(|offer| serde_json::from_value(offer).ok()).collect())
    }
}

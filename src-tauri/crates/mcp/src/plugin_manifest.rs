//! A plugin's `plugin.toml`: read completely, or refused with the faulty line. Looks at file names
//! only, never at the files.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::Deserialize;

use contract::CatalogOffer;
use contract::types::{CompactionStrategy, ConversationOptions, ToolServerSpec};
use contract::{Error, Result};

/// The name of the file in a plugin's folder.
pub const FILE: &str = "plugin.toml";
/// Longest one, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    #[serde(default)]
    pub description: String,
    /// By their names; `args` and a relative command are the plugin's own files where they begin with `./`.
    #[serde(default)]
    pub mcp_servers: BTreeMap<String, ManifestServer>,
    #[serde(default)]
    pub presets: Vec<PresetPart>,
    #[serde(default)]
    pub templates: Vec<TemplatePart>,
    /// As in `models/catalog.toml`.
    #[serde(default, rename = "model")]
    pub models: Vec<CatalogOffer>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestServer {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetPart {
    pub name: String,
    #[serde(default)]
    pub options: ConversationOptions,
    #[serde(default)]
    pub compression: Option<CompactionStrategy>,
}

/// A chat template for a model of the library.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplatePart {
    /// Library id.
    pub model: String,
    /// In the plugin's folder.
    pub file: String,
}

impl Manifest {
    /// `path` is named in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let wrong = |line: Option<usize>, cause: &str| {
            let place = line.map_or(String::new(), |line| format!(", line {line}"));
            let message = format!("{}{place}: {}.", path.display(), cause.trim_end_matches('.'));
            Error::input(
                "plugin.manifest",
                message,
                "Correct that line, or contact the author of the plugin.",
            )
        };
        let manifest: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| line_of(text, span.start));
            wrong(line, &error.message().replace('\n', " "))
        })?;
        let line = |needle: &str| text.find(needle).map(|at| line_of(text, at));
        for (key, value) in [("name", &manifest.name), ("version", &manifest.version)] {
            if value.trim().is_empty() {
                return Err(wrong(line(key), &format!("{key} is empty")));
            }
        }
        for template in &manifest.templates {
            if !is_inside(&template.file) {
                let cause = format!("the template {} is outside the plugin's folder", template.file);
                return Err(wrong(line(&template.file), &cause));
            }
        }
        for (name, server) in &manifest.mcp_servers {
            if server.command.is_some() == server.url.is_some() {
                let cause = format!("the server {name} needs either a command or a url");
                return Err(wrong(line(&format!("mcp_servers.{name}")), &cause));
            }
        }
        Ok(manifest)
    }
}

impl ManifestServer {
    /// How it is reached from the plugin's folder.
    pub fn spec(&self, folder: &Path) -> ToolServerSpec {
        let own = |text: &String| match text.strip_prefix("./") {
            Some(rest) => folder.join(rest).display().to_string(),
            None => text.clone(),
        };
        let cwd = self.command.as_ref().map(|_| match &self.cwd {
            Some(cwd) => folder.join(cwd).display().to_string(),
            None => folder.display().to_string(),
        });
        ToolServerSpec {
            command: self.command.as_ref().map(own),
            args: self.args.iter().map(own).collect(),
            env: self.env.clone(),
            cwd,
            url: self.url.clone(),
            headers: self.headers.clone(),
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Whether a name stays below the folder, however it is resolved.
fn is_inside(file: &str) -> bool {
    !file.is_empty() && Path::new(file).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"Weather\"\nversion = \"1\"\n[mcp_servers.sky]\ncommand = \"python3\"\n\
        args = [\"./sky.py\", \"-q\"]\n[[presets]]\nname = \"Short\"\noptions = { temperature = 0.2 }\n\
        [[templates]]\nmodel = \"starter\"\nfile = \"t.jinja\"\n";

    #[test]
    fn a_manifest_is_read() {
        let manifest = Manifest::parse(GOOD, Path::new("plugin.toml")).unwrap();
        let spec = manifest.mcp_servers["sky"].spec(Path::new("/p/weather"));
        assert_eq!(spec.args, ["/p/weather/sky.py", "-q"]);
        assert_eq!((spec.command.as_deref(), spec.cwd.as_deref()), (Some("python3"), Some("/p/weather")));
        assert_eq!(manifest.presets[0].options.temperature, Some(0.2));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let cases = [
            ("name = \"a\"\nversion = ", "line 2"),
            ("name = \"a\"\n", "version"),
            ("name = \"a\"\nversion = \"1\"\n\ncolour = 3\n", "line 4"),
            ("name = \" \"\nversion = \"1\"\n", "line 1: name is empty"),
            ("name = \"a\"\nversion = \"1\"\n[mcp_servers.x]\nargs = []\n", "line 3: the server x needs"),
            (
                "name = \"a\"\nversion = \"1\"\n[[templates]]\nmodel = \"m\"\nfile = \"../x\"\n",
                "line 5: the template ../x",
            ),
            (
                "name = \"a\"\nversion = \"1\"\n[[templates]]\nmodel = \"m\"\nfile = \"/etc/passwd\"\n",
                "line 5",
            ),
            ("name = \"a\"\nversion = \"1\"\n[[presets]]\nname = \"p\"\noptions = { heat = 1 }\n", "heat"),
        ];
        for (text, words) in cases {
            let error = Manifest::parse(text, Path::new("/p/plugin.toml")).unwrap_err();
            assert!(error.message().starts_with("/p/plugin.toml"), "{}", error.message());
            assert!(error.message().contains(words), "{words}: {}", error.message());
        }
    }
}

//! Projects: what folders give to the conversations that begin in them.
//!
//! A conversation takes a copy: later changes of a project reach only new conversations.

use std::sync::Arc;

use contract::types::{
    AppEvent, CompactionStrategy, ConversationOptions, Project, ProjectArgs, ProjectFileArgs, ProjectShare,
};
use contract::{Error, ErrorKind, Result};
use file_search::citations;
use file_search::project_files::{for_project, project_files};
use serde::{Deserialize, Serialize};
use session::{ProjectRow, Session};

use crate::App;
use crate::retrieval::{Document, copies};
use records::conversations;

/// Files of a project: each new conversation is given all of them, and they are searched together.
const MAX_PROJECT_FILES: usize = 64;

/// What is stored of a project.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ProjectBody {
    instructions: String,
    preset: Option<String>,
    model: Option<String>,
    memory: Option<bool>,
}

/// What a new conversation is asked for. What is absent is as its project says.
#[derive(Default)]
pub(crate) struct ConversationStart {
    pub model: Option<String>,
    pub options: Option<ConversationOptions>,
    pub compression: Option<CompactionStrategy>,
    /// Files of the project.
    pub files: Vec<Arc<Document>>,
}

impl App {
    /// The project that a folder belongs to: its own, or that of the nearest folder around it.
    pub fn project_get(&self, folder: &str) -> Result<Option<Project>> {
        let store = self.store();
        let row = store.project_around(folder)?;
        row.map(|row| project(&store, row)).transpose()
    }

    /// Makes a folder a project, or changes what it says. Errors name the value that is out of range.
    pub fn project_set(&self, args: &ProjectArgs) -> Result<Project> {
        let system_prompt = Some(args.instructions.clone());
        self.check_options(&ConversationOptions { system_prompt, ..ConversationOptions::default() })?;
        if let Some(model) = &args.model {
            self.responder(model)?;
        }
        let ProjectArgs { instructions, preset, model, memory, .. } = args.clone();
        let body = ProjectBody { instructions: instructions.trim().to_owned(), preset, model, memory };
        let json = serde_json::to_string(&body).map_err(Error::bug)?;
        let mut store = self.store();
        if let Some(preset) = &args.preset {
            store.preset(preset)?;
        }
        let row = store.put_project(&args.folder, &json)?;
        let project = project(&store, row)?;
        drop(store);
        self.publish_folder(&args.folder)?;
        Ok(project)
    }

    /// Deletes instructions and files of a project. The folder and its conversations stay.
    pub fn project_remove(&self, folder: &str) -> Result<()> {
        self.store().remove_project(folder)?;
        self.sweep_images()?;
        self.publish_folder(folder)
    }

    /// Adds a file whose bytes a page has read.
    pub fn project_file_add(&self, args: &ProjectFileArgs) -> Result<Project> {
        let document = self.read_base64(&args.name, &args.base64)?;
        self.add_project_file(&args.folder, document)
    }

    /// As `project_file_add`, from a path on this machine.
    pub fn project_file_add_path(&self, folder: &str, path: &str) -> Result<Project> {
        let document = self.read_path(path)?;
        self.add_project_file(folder, document)
    }

    /// Removes a file from its project. Conversations that were given it keep it.
    pub fn project_file_remove(&self, id: &str) -> Result<Project> {
        let folder = self.store().remove_project_file(id)?.folder;
        self.sweep_images()?;
        let store = self.store();
        let row = store.project(&folder)?.ok_or_else(no_project)?;
        project(&store, row)
    }

    fn add_project_file(&self, folder: &str, document: Document) -> Result<Project> {
        let document = Arc::new(document);
        let n_files = self.store().project_files(folder)?.iter().filter(|row| !row.is_page()).count();
        if n_files >= MAX_PROJECT_FILES {
            let message = format!("The project has {n_files} files; the most is {MAX_PROJECT_FILES}.");
            let remedy = "Remove a file first, or attach this one in the chat that needs it.";
            return Err(Error::new(ErrorKind::Limit, "project.too_many_files", message, remedy));
        }
        let all = [std::slice::from_ref(&document), &document.pages].concat();
        self.keep_images(&all)?;
        let created_ms = self.ctx().clock.now_utc_ms();
        let mut rows = all.iter().map(|file| file.row(false, 0, false));
        let rows = rows.next().map(|row| for_project(row, rows, folder, created_ms));
        let texts = all.iter().map(|file| &*file.text);
        let mut store = self.store();
        let project_row = store.project(folder)?.ok_or_else(no_project)?;
        store.add_project_file(&rows.into_iter().flatten().zip(texts).collect::<Vec<_>>())?;
        project(&store, project_row)
    }

    /// Completes what a new conversation in `folder` is asked for, as its project says.
    ///
    /// Errors: there is no such folder.
    pub(crate) fn start_in(
        &self,
        folder: Option<&str>,
        asked: ConversationStart,
    ) -> Result<ConversationStart> {
        let Some(folder) = folder else { return Ok(asked) };
        let Some(project) = self.project_get(folder)? else { return Ok(asked) };
        let store = self.store();
        let rows: Vec<_> =
            store.project_files(&project.folder)?.into_iter().map(citations::of_project).collect();
        let compression = if asked.options.is_none() { project.compression } else { None };
        Ok(ConversationStart {
            model: asked.model.or(project.model),
            options: asked.options.or(Some(project.options)),
            compression: asked.compression.or(compression),
            files: copies(&store, &rows)?,
        })
    }

    /// What a prompt has from a project. `system`: the system prompt with its tokens. None: the project is gone.
    pub(crate) fn project_share(
        &self,
        folder: Option<&str>,
        system: (Option<&str>, u32),
        files: u32,
    ) -> Result<Option<ProjectShare>> {
        let Some(folder) = folder else { return Ok(None) };
        let Some(row) = self.store().project(folder)? else { return Ok(None) };
        let body = body_of(&row);
        let is_same = !body.instructions.is_empty() && system.0 == Some(body.instructions.as_str());
        let instructions = if is_same { system.1 } else { 0 };
        let ProjectRow { folder, .. } = row;
        Ok(Some(ProjectShare { folder: folder.id, name: folder.name, instructions, files }))
    }

    fn publish_folder(&self, id: &str) -> Result<()> {
        let store = self.store();
        let row = store.folders()?.into_iter().find(|row| row.id == id);
        let folder = row.map(|row| conversations::folder(&store, row)).transpose()?;
        drop(store);
        if let Some(folder) = folder {
            self.ctx().events.publish(AppEvent::FolderChanged { folder });
        }
        Ok(())
    }
}

/// A body that can't be read (of another version, say) counts as one that says nothing.
fn body_of(row: &ProjectRow) -> ProjectBody {
    serde_json::from_str(&row.body).unwrap_or_default()
}

fn project(store: &Session, row: ProjectRow) -> Result<Project> {
    let ProjectBody { instructions, preset, model, memory } = body_of(&row);
    // A preset that was deleted gives nothing any more.
    let preset = preset.and_then(|id| store.preset(&id).ok()).map(crate::settings::presets::read);
    let preset_id = preset.as_ref().map(|it| it.id.clone());
    let (options, compression) = preset.map(|it| (it.options, it.compression)).unwrap_or_default();
    let own = Some(instructions.clone()).filter(|text| !text.is_empty());
    let options = ConversationOptions {
        system_prompt: own.or(options.system_prompt),
        preset: preset_id.clone(),
        memory: memory.or(options.memory),
        project: Some(row.folder.id.clone()),
        ..options
    };
    let files = project_files(store, &row.folder.id)?;
    let ProjectRow { folder, .. } = row;
    let (folder, name) = (folder.id, folder.name);
    Ok(Project { folder, name, instructions, preset: preset_id, model, memory, files, options, compression })
}

fn no_project() -> Error {
    let message = "This folder is not a project any more.";
    Error::not_found("project.not_found", message, "Open the folder's menu and set the project up again.")
}

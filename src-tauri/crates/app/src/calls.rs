//! The use cases by name, shared by the window's `call` and HTTP's `POST /api/{name}`. One line
//! each: name, arguments, result, method. TypeScript's map of calls is generated from the same
//! lines.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ts_rs::{Config, TS};

use crate::App;
use crate::ServerAction;
use contract::Finding;
use contract::types::*;
use contract::{Error, ErrorKind, Result};

/// One use case.
pub struct Call {
    pub name: &'static str,
    run: fn(&App, Value) -> Result<Value>,
    /// TypeScript names of arguments and result.
    pub types: fn(&Config) -> (String, String),
}

macro_rules! calls {
    ($($name:literal: $args:ty => $result:ty, $method:expr;)*) => {
        pub static CALLS: &[Call] = &[$(Call {
            name: $name,
            run: |app, args| run::<$args, $result>(app, $name, args, $method),
            types: |config| (<$args as TS>::name(config), <$result as TS>::name(config)),
        }),*];
    };
}

calls! {
    "app_info": NoArgs => AppInfo, |app, _| Ok(app.app_info());
    "conversations_list": NoArgs => Vec<ConversationSummary>, |app, _| app.conversations_list();
    "conversation_get": IdArgs => Conversation, |app, args| app.conversation_get(&args.id);
    "conversation_rename": RenameArgs => ConversationSummary, |app, args| app.conversation_rename(&args.id, &args.title);
    "conversation_delete": IdArgs => (), |app, args| app.conversation_delete(&args.id);
    "conversation_restore": IdArgs => ConversationSummary, |app, args| app.conversation_restore(&args.id);
    "conversation_set_model": SetModelArgs => ConversationSummary, |app, args| app.conversation_set_model(&args.id, &args.model);
    "attachment_add": AttachArgs => Attachment, |app, args| app.attachment_add(&args.name, &args.base64);
    "attachment_add_path": PathArgs => Attachment, |app, args| app.attachment_add_path(&args.path);
    "attachment_image": IdArgs => AttachmentImage, |app, args| app.attachment_image(&args.id);
    "attachment_remove": IdArgs => (), |app, args| { app.attachment_remove(&args.id); Ok(()) };
    "attachment_text": AttachmentTextArgs => AttachmentText, |app, args| app.attachment_text(&args.id, args.at);
    "conversation_set_compression": SetCompressionArgs => (), |app, args| app.conversation_set_compression(&args.id, args.strategy);
    "conversation_compact": IdArgs => CompactionInfo, |app, args| app.conversation_compact(&args.id);
    "conversation_undo_compaction": IdArgs => Conversation, |app, args| app.conversation_undo_compaction(&args.id);
    "conversation_options": SetOptionsArgs => ConversationSummary, |app, args| app.conversation_set_options(&args.id, &args.options);
    "conversation_pin": PinArgs => ConversationSummary, |app, args| app.conversation_pin(&args.id, args.pinned);
    "conversation_move": MoveArgs => ConversationSummary, |app, args| app.conversation_move(&args.id, args.folder.as_deref());
    "conversation_forget": IdArgs => (), |app, args| app.conversation_forget(&args.id);
    "help_topics": HelpArgs => Vec<HelpTopic>, |_, args| Ok(guide::help::topics(&args));
    "help_search": HelpSearchArgs => Vec<String>, |_, args| Ok(guide::help::search(&args));
    "trash_list": NoArgs => Vec<ConversationSummary>, |app, _| app.trash_list();
    "trash_empty": NoArgs => Count, |app, _| app.trash_empty();
    "folders_list": NoArgs => Vec<Folder>, |app, _| app.folders_list();
    "folder_add": FolderAddArgs => Folder, |app, args| app.folder_add(&args.name, args.parent.as_deref());
    "folder_rename": FolderNameArgs => Folder, |app, args| app.folder_rename(&args.id, &args.name);
    "folder_move": FolderMoveArgs => Folder, |app, args| app.folder_move(&args.id, args.parent.as_deref());
    "folder_remove": IdArgs => (), |app, args| app.folder_remove(&args.id);
    "project_get": IdArgs => Option<Project>, |app, args| app.project_get(&args.id);
    "project_set": ProjectArgs => Project, |app, args| app.project_set(&args);
    "project_remove": IdArgs => (), |app, args| app.project_remove(&args.id);
    "project_file_add": ProjectFileArgs => Project, |app, args| app.project_file_add(&args);
    "project_file_add_path": ProjectPathArgs => Project, |app, args| app.project_file_add_path(&args.folder, &args.path);
    "project_file_remove": IdArgs => Project, |app, args| app.project_file_remove(&args.id);
    "notes_list": NoArgs => Vec<Note>, |app, _| app.notes_list();
    "note_save": NoteArgs => Note, |app, args| app.note_save(&args);
    "note_remove": IdArgs => (), |app, args| app.note_remove(&args.id);
    "tunes_list": NoArgs => Vec<TuneInfo>, |app, _| app.tunes_list();
    "tune_get": IdArgs => TuneDetails, |app, args| app.tune_get(&args.id);
    "tune_preview": TuneArgs => TunePreview, |app, args| app.tune_preview(&args);
    "tune_start": TuneArgs => TuneInfo, |app, args| app.tune_start(&args);
    "tune_pause": IdArgs => TuneInfo, |app, args| app.tune_pause(&args.id);
    "tune_resume": IdArgs => TuneInfo, |app, args| app.tune_resume(&args.id);
    "tune_stop": IdArgs => TuneInfo, |app, args| app.tune_stop(&args.id);
    "tune_remove": IdArgs => (), |app, args| app.tune_remove(&args.id);
    "export": ExportArgs => ExportedFile, |app, args| app.export(args.id.as_deref(), args.format);
    "export_name": ExportArgs => FileName, |app, args| app.export_name(args.id.as_deref(), args.format);
    "export_to": ExportToArgs => SavedFile, |app, args| app.export_to(args.id.as_deref(), args.format, &args.path);
    "import_file": PathArgs => ImportSummary, |app, args| app.import_file(&args.path);
    "import_bytes": BytesArgs => ImportSummary, |app, args| app.import_bytes(&args.base64);
    "data_backup": PathArgs => SavedFile, |app, args| app.data_backup(&args.path);
    "data_restore": PathArgs => RestoreSummary, |app, args| app.data_restore(&args.path);
    "search": SearchArgs => SearchResult, |app, args| app.search(&args);
    "message_edit": EditArgs => TurnStarted, |app, args| app.message_edit(&args.message, &args.text);
    "message_regenerate": RegenerateArgs => TurnStarted, |app, args| app.message_regenerate(&args);
    "message_continue": MessageArgs => TurnStarted, |app, args| app.message_continue(&args.message);
    "answer_edit": EditArgs => ConversationSummary, |app, args| app.answer_edit(&args.message, &args.text);
    "message_choose": ChooseArgs => ConversationSummary, |app, args| app.message_choose(&args.message, args.version);
    "message_fork": MessageArgs => ConversationSummary, |app, args| app.message_fork(&args.message);
    "message_delete": MessageArgs => ConversationSummary, |app, args| app.message_delete(&args.message);
    "message_restore": MessageArgs => ConversationSummary, |app, args| app.message_restore(&args.message);
    "message_forget": MessageArgs => ConversationSummary, |app, args| app.message_forget(&args.message);
    "message_tokens": MessageArgs => Vec<TokenAlternatives>, |app, args| app.message_tokens(&args.message);
    "message_pick": PickArgs => TurnStarted, |app, args| app.message_pick(&args);
    "text_scan": TextArgs => Vec<Finding>, |_, args| Ok(documents::prompt_injection::scan(&args.text));
    "send": SendArgs => TurnStarted, |app, args| app.send(args);
    "temporary_send": TemporaryArgs => TurnArgs, |app, args| app.temporary_send(args);
    "draft_count": DraftArgs => DraftCount, |app, args| app.draft_count(&args);
    "context_parts": DraftArgs => ContextParts, |app, args| app.context_parts(&args);
    "retry": RetryArgs => TurnStarted, |app, args| app.retry(&args.conversation);
    "turn_cancel": TurnArgs => (), |app, args| app.turn_cancel(&args.turn);
    "conversation_prefetch": IdArgs => (), |app, args| app.conversation_prefetch(&args.id);
    "checkpoint_save": CheckpointArgs => CheckpointInfo, |app, args| app.checkpoint_save(&args);
    "checkpoints_list": CheckpointsArgs => Vec<CheckpointInfo>, |app, args| app.checkpoints_list(args.conversation.as_deref());
    "checkpoint_restore": IdArgs => ConversationSummary, |app, args| app.checkpoint_restore(&args.id);
    "checkpoint_remove": IdArgs => (), |app, args| app.checkpoint_remove(&args.id);
    "kv_stats": NoArgs => KvInfo, |app, _| app.kv_stats();
    "machine_memory": NoArgs => MemoryInfo, |app, _| Ok(app.machine_memory());
    "server_state": NoArgs => ServerState, |app, _| app.server_state();
    "local_server": NoArgs => LocalServer, |app, _| app.local_server(ServerAction::Look);
    "local_server_start": NoArgs => LocalServer, |app, _| app.local_server(ServerAction::Start);
    "local_server_stop": NoArgs => LocalServer, |app, _| app.local_server(ServerAction::Stop);
    "local_server_renew_key": NoArgs => LocalServer, |app, _| app.local_server(ServerAction::RenewKey);
    "update_info": NoArgs => UpdateInfo, |app, _| Ok(app.update_info());
    "update_check": NoArgs => UpdateInfo, |app, _| app.update_check();
    "update_download": NoArgs => UpdateInfo, |app, _| app.update_download();
    "update_cancel": NoArgs => UpdateInfo, |app, _| app.update_cancel();
    "profile": NoArgs => ProfileInfo, |app, _| Ok(app.profile());
    "profile_switch": ProfileSwitchArgs => ProfileInfo, |app, args| Ok(app.profile_switch(args.on));
    "profile_trace": ProfileTraceArgs => ExportedFile, |app, args| app.profile_trace(args.path.as_deref());
    "models_list": NoArgs => Vec<ModelEntry>, |app, _| app.models_list();
    "model_add": PathArgs => ModelEntry, |app, args| app.model_add(&args.path);
    "model_verify": IdArgs => ModelVerified, |app, args| app.model_verify(&args.id);
    "hub_search": HubSearchArgs => HubPage, |app, args| app.hub_search(&args);
    "hub_files": HubFilesArgs => HubFiles, |app, args| app.hub_files(&args);
    "hub_token": NoArgs => HubToken, |app, _| app.hub_token();
    "hub_token_set": HubTokenArgs => HubToken, |app, args| app.hub_token_set(&args);
    "download_start": DownloadStartArgs => Download, |app, args| app.download_start(&args);
    "download_pause": IdArgs => Download, |app, args| app.download_pause(&args.id);
    "download_resume": IdArgs => Download, |app, args| app.download_resume(&args.id);
    "download_cancel": DownloadCancelArgs => (), |app, args| app.download_cancel(&args.id, args.keep_part);
    "download_list": NoArgs => Vec<Download>, |app, _| app.download_list();
    "presets_list": NoArgs => Vec<Preset>, |app, _| app.presets_list();
    "preset_save": PresetArgs => Preset, |app, args| app.preset_save(&args);
    "preset_remove": IdArgs => (), |app, args| app.preset_remove(&args.id);
    "preset_export": PresetExportArgs => ExportedFile, |app, args| app.preset_export(&args.id, args.path.as_deref());
    "preset_import": TextArgs => Preset, |app, args| app.preset_import(&args.text);
    "model_settings": IdArgs => Vec<SettingRow>, |app, args| app.model_settings(&args.id);
    "model_setting_set": ModelSettingArgs => Vec<SettingRow>, |app, args| app.model_setting_set(&args);
    "model_unload": IdArgs => (), |app, args| app.model_unload(&args.id);
    "endpoint_list": NoArgs => Vec<EndpointInfo>, |app, _| app.endpoint_list();
    "endpoint_add": EndpointAddArgs => EndpointInfo, |app, args| app.endpoint_add(args);
    "endpoint_test": IdArgs => EndpointInfo, |app, args| app.endpoint_test(&args.id);
    "endpoint_update": EndpointUpdateArgs => EndpointInfo, |app, args| app.endpoint_update(args);
    "endpoint_remove": IdArgs => (), |app, args| app.endpoint_remove(&args.id);
    "tool_servers_list": NoArgs => Vec<ToolServerInfo>, |app, _| app.tool_servers_list();
    "tool_server_add": ToolServerAddArgs => ToolServerInfo, |app, args| app.tool_server_add(args);
    "tool_server_update": ToolServerUpdateArgs => ToolServerInfo, |app, args| app.tool_server_update(args);
    "tool_server_test": IdArgs => ToolServerInfo, |app, args| app.tool_server_test(&args.id);
    "tool_sign_in": ToolSignInArgs => ToolSignInStart, |app, args| app.tool_sign_in_start(args);
    "tool_sign_in_cancel": IdArgs => (), |app, args| app.tool_sign_in_cancel(&args.id);
    "tool_sign_out": IdArgs => ToolServerInfo, |app, args| app.tool_sign_out(&args.id);
    "tool_server_remove": IdArgs => (), |app, args| app.tool_server_remove(&args.id);
    "tool_server_restore": IdArgs => ToolServerInfo, |app, args| app.tool_server_restore(&args.id);
    "tool_servers_import": TextArgs => ToolServersImported, |app, args| app.tool_servers_import(&args.text);
    "tool_permit": ToolPermitArgs => ToolServerInfo, |app, args| app.tool_permit(&args);
    "tool_decide": ToolDecideArgs => (), |app, args| app.tool_decide(&args);
    "tool_forms": NoArgs => Vec<ToolForm>, |app, _| Ok(app.tool_forms());
    "tool_form_answer": ToolFormAnswerArgs => (), |app, args| app.tool_form_answer(args);
    "tool_resources": IdArgs => ToolResources, |app, args| app.tool_resources(&args.id);
    "tool_resource_attach": ToolResourceArgs => Attachment, |app, args| app.tool_resource_attach(&args.id, &args.uri);
    "tool_prompts": IdArgs => Vec<ToolPrompt>, |app, args| app.tool_prompts(&args.id);
    "tool_prompt": ToolPromptArgs => ToolPromptText, |app, args| app.tool_prompt(&args);
    "tool_stop": MessageArgs => (), |app, args| app.tool_stop(&args.message);
    "plugins_list": NoArgs => Vec<PluginInfo>, |app, _| app.plugins_list();
    "plugin_switch": PluginSwitchArgs => Vec<PluginInfo>, |app, args| app.plugin_switch(&args);
    "connections_list": ConnectionsArgs => Vec<ConnectionInfo>, |app, args| app.connections_list(args.limit);
    "model_fit": FitArgs => ModelFit, |app, args| app.model_fit(&args);
    "catalog_fits": NoArgs => Vec<OfferFit>, |app, _| app.catalog_fits();
    "model_recommend": NoArgs => Option<Recommendation>, |app, _| app.model_recommend();
    "machine_measure": NoArgs => Vec<SpeedInfo>, |app, _| app.machine_measure();
    "model_remove": IdArgs => RemovedModel, |app, args| app.model_remove(&args.id);
    "model_restore": IdArgs => ModelEntry, |app, args| app.model_restore(&args.id);
    "models_removed": NoArgs => Vec<RemovedModel>, |app, _| app.models_removed();
    "models_purge": NoArgs => Count, |app, _| app.models_purge();
    "models_scan": NoArgs => Scan, |app, _| app.models_scan();
    "model_folders": NoArgs => Vec<ModelFolder>, |app, _| app.model_folders();
    "model_folder_add": PathArgs => Scan, |app, args| app.model_folder_add(&args.path);
    "model_folder_remove": PathArgs => (), |app, args| app.model_folder_remove(&args.path);
    "model_import": ImportArgs => ModelEntry, |app, args| app.model_import(&args);
    "model_import_cancel": PathArgs => (), |app, args| app.model_import_cancel(&args.path);
    "library_use": NoArgs => LibraryUse, |app, _| app.library_use();
    "settings_list": NoArgs => Vec<SettingRow>, |app, _| app.settings_list();
    "settings_set": SettingArgs => SettingRow, |app, args| app.settings_set(&args.key, &args.value);
    "settings_reset": KeyArgs => SettingRow, |app, args| app.settings_reset(&args.key);
}

/// Former names of use cases, which programs may still call, and what they are called now.
const FORMER_NAMES: &[(&str, &str)] = &[("conversation_unfold", "conversation_undo_compaction")];

/// For pages and for programs.
const WRONG_CALL_REMEDY: &str = "Restart Inglenook if its own window shows this: they may have different versions. Programs find the \
                                 calls and their arguments in /openapi.json.";

/// The use case of a name, present or former.
fn find(name: &str) -> Option<&'static Call> {
    let name = FORMER_NAMES.iter().find(|(former, _)| *former == name).map_or(name, |(_, now)| *now);
    CALLS.iter().find(|call| call.name == name)
}

impl App {
    /// Runs the use case `name`. `args` is an object, or null where there are no arguments.
    pub fn call(&self, name: &str, args: Value) -> Result<Value> {
        let Some(call) = find(name) else {
            let message = format!("Unknown call \"{name}\".");
            return Err(Error::not_found("call.unknown", message, WRONG_CALL_REMEDY));
        };
        (call.run)(self, args)
    }
}

fn run<A: DeserializeOwned, R: Serialize>(
    app: &App,
    name: &str,
    args: Value,
    method: impl FnOnce(&App, A) -> Result<R>,
) -> Result<Value> {
    let args = if args.is_null() { Value::Object(serde_json::Map::new()) } else { args };
    let args = serde_json::from_value(args).map_err(|error| {
        Error::new(
            ErrorKind::Usage,
            "call.arguments",
            format!("Invalid arguments for {name}: {error}."),
            WRONG_CALL_REMEDY,
        )
    })?;
    let result = method(app, args)?;
    serde_json::to_value(result).map_err(|error| Error::bug(format!("{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_names_still_lead_to_their_use_case() {
        assert_eq!(find("conversation_unfold").map(|call| call.name), Some("conversation_undo_compaction"));
        for (former, now) in FORMER_NAMES {
            assert!(CALLS.iter().all(|call| call.name != *former) && find(now).is_some(), "{former}");
        }
        assert!(find("no_such_use_case").is_none());
    }
}

//! The use cases by name: what the window's `call` and HTTP's `POST /api/{name}` both go through.
//!
//! One line each: name, arguments, result, method. TypeScript's map of calls is made from the same lines.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ts_rs::{Config, TS};

use crate::App;
use crate::error::{Error, ErrorKind, Result};
use crate::guard::{self, Finding};
use crate::types::*;

/// One use case.
pub struct Call {
    pub name: &'static str,
    run: fn(&App, Value) -> Result<Value>,
    /// TypeScript names of arguments and result.
    pub(crate) types: fn(&Config) -> (String, String),
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
    "conversation_set_compression": SetCompressionArgs => (), |app, args| app.conversation_set_compression(&args.id, args.strategy);
    "conversation_compact": IdArgs => FoldInfo, |app, args| app.conversation_compact(&args.id);
    "conversation_unfold": IdArgs => Conversation, |app, args| app.conversation_unfold(&args.id);
    "conversation_options": SetOptionsArgs => ConversationSummary, |app, args| app.conversation_set_options(&args.id, &args.options);
    "conversation_pin": PinArgs => ConversationSummary, |app, args| app.conversation_pin(&args.id, args.pinned);
    "conversation_move": MoveArgs => ConversationSummary, |app, args| app.conversation_move(&args.id, args.folder.as_deref());
    "conversation_forget": IdArgs => (), |app, args| app.conversation_forget(&args.id);
    "trash_list": NoArgs => Vec<ConversationSummary>, |app, _| app.trash_list();
    "trash_empty": NoArgs => Count, |app, _| app.trash_empty();
    "folders_list": NoArgs => Vec<Folder>, |app, _| app.folders_list();
    "folder_add": NameArgs => Folder, |app, args| app.folder_add(&args.name);
    "folder_rename": FolderNameArgs => Folder, |app, args| app.folder_rename(&args.id, &args.name);
    "folder_remove": IdArgs => (), |app, args| app.folder_remove(&args.id);
    "export": ExportArgs => Exported, |app, args| app.export(args.id.as_deref(), args.format);
    "export_name": ExportArgs => FileName, |app, args| app.export_name(args.id.as_deref(), args.format);
    "export_to": ExportToArgs => Saved, |app, args| app.export_to(args.id.as_deref(), args.format, &args.path);
    "import_file": PathArgs => Imported, |app, args| app.import_file(&args.path);
    "import_bytes": BytesArgs => Imported, |app, args| app.import_bytes(&args.base64);
    "data_backup": PathArgs => Saved, |app, args| app.data_backup(&args.path);
    "data_restore": PathArgs => Restored, |app, args| app.data_restore(&args.path);
    "search": SearchArgs => SearchResult, |app, args| app.search(&args);
    "message_edit": EditArgs => TurnStarted, |app, args| app.message_edit(&args.message, &args.text);
    "message_regenerate": RegenerateArgs => TurnStarted, |app, args| app.message_regenerate(&args.message, args.model.as_deref());
    "message_continue": MessageArgs => TurnStarted, |app, args| app.message_continue(&args.message);
    "message_choose": ChooseArgs => ConversationSummary, |app, args| app.message_choose(&args.message, args.version);
    "message_fork": MessageArgs => ConversationSummary, |app, args| app.message_fork(&args.message);
    "message_delete": MessageArgs => ConversationSummary, |app, args| app.message_delete(&args.message);
    "message_restore": MessageArgs => ConversationSummary, |app, args| app.message_restore(&args.message);
    "text_scan": TextArgs => Vec<Finding>, |_, args| Ok(guard::scan(&args.text));
    "send": SendArgs => TurnStarted, |app, args| app.send(args);
    "draft_count": DraftArgs => DraftCount, |app, args| app.draft_count(&args);
    "retry": RetryArgs => TurnStarted, |app, args| app.retry(&args.conversation);
    "turn_cancel": TurnArgs => (), |app, args| app.turn_cancel(&args.turn);
    "conversation_prefetch": IdArgs => (), |app, args| app.conversation_prefetch(&args.id);
    "checkpoint_save": CheckpointArgs => CheckpointInfo, |app, args| app.checkpoint_save(&args);
    "checkpoints_list": CheckpointsArgs => Vec<CheckpointInfo>, |app, args| app.checkpoints_list(args.conversation.as_deref());
    "checkpoint_restore": IdArgs => ConversationSummary, |app, args| app.checkpoint_restore(&args.id);
    "checkpoint_remove": IdArgs => (), |app, args| app.checkpoint_remove(&args.id);
    "kv_stats": NoArgs => KvInfo, |app, _| app.kv_stats();
    "models_list": NoArgs => Vec<ModelEntry>, |app, _| app.models_list();
    "model_add": PathArgs => ModelEntry, |app, args| app.model_add(&args.path);
    "model_remove": IdArgs => (), |app, args| app.model_remove(&args.id);
    "settings_list": NoArgs => Vec<SettingRow>, |app, _| app.settings_list();
    "settings_set": SettingArgs => SettingRow, |app, args| app.settings_set(&args.key, &args.value);
    "settings_reset": KeyArgs => SettingRow, |app, args| app.settings_reset(&args.key);
}

impl App {
    /// Runs the use case `name`. `args` is an object, or null where there are no arguments.
    pub fn call(&self, name: &str, args: Value) -> Result<Value> {
        let Some(call) = CALLS.iter().find(|call| call.name == name) else {
            let message = format!("There is no use case \"{name}\".");
            return Err(Error::not_found(
                "call.unknown",
                message,
                "Window and program may be of different versions: start again.",
            ));
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
            format!("{name} was given arguments it can't use: {error}."),
            "Window and program may be of different versions: start again.",
        )
    })?;
    let result = method(app, args)?;
    serde_json::to_value(result).map_err(|error| Error::bug(format!("{name}: {error}")))
}

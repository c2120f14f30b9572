//! TypeScript for `types.rs` and the map of calls, as one file.
//!
//! `make types` (or `cargo run -p api --example bindings`) writes it; a test asserts that it is fresh.

use ts_rs::{Config, TS};

use crate::calls::CALLS;
use crate::guard::Finding;
use crate::types::*;

/// Where the file lies, from this crate's folder.
pub const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ui/src/lib/backend/bindings.ts");

fn declaration<T: TS>(config: &Config) -> String {
    format!("{}export {}\n", T::docs().unwrap_or_default(), T::decl(config))
}

/// Every type that crosses an edge.
fn declarations(config: &Config) -> Vec<String> {
    [talking(config), keeping(config)].concat()
}

fn talking(config: &Config) -> Vec<String> {
    macro_rules! all {
        ($($type:ty),* $(,)?) => { vec![$(declaration::<$type>(config)),*] };
    }
    all![
        AppInfo,
        ErrorInfo,
        ConversationSummary,
        Conversation,
        FoldStrategy,
        FoldInfo,
        Role,
        MessageState,
        Message,
        ToolCall,
        NoArgs,
        IdArgs,
        RenameArgs,
        SetModelArgs,
        SetCompressionArgs,
        RetryArgs,
        TurnArgs,
        TextArgs,
        Finding,
        PathArgs,
        SettingArgs,
        KeyArgs,
        SendArgs,
        DraftArgs,
        DraftCount,
        TurnStarted,
        TurnEvent,
        TurnEventKind,
        Finish,
        TurnStats,
        ModelSource,
        ModelState,
        ModelEntry,
        SettingKind,
        ChoiceOption,
        SettingRow,
        CheckpointArgs,
        CheckpointsArgs,
        CheckpointInfo,
        KvInfo,
        KvTier,
        KvPool,
        AppEvent,
    ]
}

/// Trees, folders, the trash, what goes out and comes in.
fn keeping(config: &Config) -> Vec<String> {
    macro_rules! all {
        ($($type:ty),* $(,)?) => { vec![$(declaration::<$type>(config)),*] };
    }
    all![
        ConversationOptions,
        SetOptionsArgs,
        EditArgs,
        RegenerateArgs,
        MessageArgs,
        ChooseArgs,
        PinArgs,
        MoveArgs,
        Folder,
        NameArgs,
        FolderNameArgs,
        SearchArgs,
        SearchResult,
        TitleHit,
        MessageHit,
        SnippetPart,
        Count,
        ExportFormat,
        ExportArgs,
        ExportToArgs,
        Exported,
        FileName,
        Saved,
        BytesArgs,
        Imported,
        Restored,
    ]
}

/// The whole file.
pub fn typescript() -> String {
    let config = Config::new().with_large_int("number");
    let types = declarations(&config);
    let calls: Vec<_> = CALLS
        .iter()
        .map(|call| {
            let (args, result) = (call.types)(&config);
            format!("  {}: {{ args: {args}; result: {result} }};", call.name)
        })
        .collect();
    format!(
        "// Generated from src-tauri/crates/api by `make types`. Do not edit.\n\n{}\n\
         /** Every use case: what it takes and what it gives. */\nexport type Calls = {{\n{}\n}};\n",
        types.join("\n"),
        calls.join("\n"),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn bindings_are_fresh() {
        let fresh = super::typescript();
        let kept = std::fs::read_to_string(super::PATH).unwrap_or_default();
        assert!(kept == fresh, "{} is stale: run `make types`", super::PATH);
    }
}

//! Writes `ui/src/backend/bindings.ts`: TypeScript for the types of `contract` and the map of calls.
//!
//! `make types` (or `cargo run -p app --example bindings`) runs it; a test asserts that the file is up to date.

use std::path::Path;

use ts_rs::{Config, TS};

use app::calls::CALLS;
use contract::protocol::ImageDetail;
use contract::types::*;
use contract::{CatalogOffer, Finding, ModelStrength};

/// Where the file lies, from this crate's folder.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ui/src/backend/bindings.ts");

fn declaration<T: TS>(config: &Config) -> String {
    format!("{}export {}\n", T::docs().unwrap_or_default(), T::decl(config))
}

/// Every type that crosses an edge.
fn declarations(config: &Config) -> Vec<String> {
    [talking(config), measuring(config), keeping(config), library(config), getting(config), elsewhere(config)]
        .concat()
}

fn talking(config: &Config) -> Vec<String> {
    macro_rules! all {
        ($($type:ty),* $(,)?) => { vec![$(declaration::<$type>(config)),*] };
    }
    all![
        AppInfo,
        ErrorInfo,
        AttachmentKind,
        Attachment,
        ImageInfo,
        ScannedPages,
        AttachmentImage,
        AttachmentText,
        AttachmentTextArgs,
        AttachmentCost,
        AttachArgs,
        Citation,
        Passage,
        ConversationSummary,
        Conversation,
        CompactionStrategy,
        CompactionInfo,
        Role,
        MessageState,
        Message,
        ToolCall,
        ToolRun,
        ToolRunState,
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
        HiddenPages,
        HiddenPagesReason,
        ContextParts,
        TurnStarted,
        TurnEvent,
        TurnEventKind,
        Finish,
        TurnStats,
        GuideReply,
        SettingKind,
        ChoiceOption,
        SettingRow,
        CheckpointArgs,
        CheckpointsArgs,
        CheckpointInfo,
    ]
}

/// What is measured, looked at and told unasked; chats that are kept nowhere.
fn measuring(config: &Config) -> Vec<String> {
    macro_rules! all {
        ($($type:ty),* $(,)?) => { vec![$(declaration::<$type>(config)),*] };
    }
    all![
        KvInfo,
        ServerState,
        LocalServer,
        ListeningServer,
        ServedRequest,
        MemoryInfo,
        KvTier,
        KvPool,
        ProfilePhase,
        ProfileRow,
        ProfilePart,
        ProfiledAnswer,
        ProfileInfo,
        ProfileSwitchArgs,
        ProfileTraceArgs,
        TokenAlternatives,
        TokenShare,
        PickArgs,
        TemporaryArgs,
        TemporaryMessage,
        HelpArgs,
        HelpSearchArgs,
        HelpTopic,
        HelpArticle,
        HelpTarget,
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
        ImageDetail,
        SamplerOptions,
        SetOptionsArgs,
        Preset,
        PresetArgs,
        PresetExportArgs,
        ModelSettingArgs,
        EditArgs,
        RegenerateArgs,
        MessageArgs,
        ChooseArgs,
        PinArgs,
        MoveArgs,
        Folder,
        FolderAddArgs,
        FolderNameArgs,
        FolderMoveArgs,
        MemoryShare,
        Note,
        NoteArgs,
        Project,
        ProjectArgs,
        ProjectFileArgs,
        ProjectPathArgs,
        ProjectShare,
        OneOffOptions,
        SearchArgs,
        SearchResult,
        TitleHit,
        MessageHit,
        SnippetPart,
        Count,
        ExportFormat,
        ExportArgs,
        ExportToArgs,
        ExportedFile,
        FileName,
        SavedFile,
        BytesArgs,
        ImportSummary,
        RestoreSummary,
    ]
}

/// Models on this computer.
fn library(config: &Config) -> Vec<String> {
    macro_rules! all {
        ($($type:ty),* $(,)?) => { vec![$(declaration::<$type>(config)),*] };
    }
    all![
        ErrorAction,
        ModelSource,
        ModelState,
        ModelSkills,
        Thinking,
        ModelEntry,
        FitVerdict,
        FitNeeds,
        FitGpu,
        ModelFit,
        FitMeasured,
        FitFacts,
        FitArgs,
        SpeedInfo,
        OfferFit,
        Recommendation,
        ModelChoice,
        ChoiceKind,
        ImportHow,
        ImportArgs,
        ImportProgress,
        TuneData,
        TuneArgs,
        TunePiece,
        TuneExample,
        TuneSkipped,
        TuneLeftOutReason,
        TuneLeftOut,
        TuneChats,
        TunePreview,
        TuneStep,
        TuneReport,
        TuneState,
        TuneInfo,
        TuneAnswers,
        TuneDetails,
        RemovedModel,
        ModelFolder,
        LibraryUse,
        ModelUse,
        Scan,
    ]
}

/// Models and where they come from.
fn getting(config: &Config) -> Vec<String> {
    macro_rules! all {
        ($($type:ty),* $(,)?) => { vec![$(declaration::<$type>(config)),*] };
    }
    all![
        ModelStrength,
        CatalogOffer,
        HubSort,
        HubSearchArgs,
        HubPage,
        HubFormat,
        Modality,
        HubModel,
        HubFilesArgs,
        HubFiles,
        QuantGroup,
        HubFile,
        Trust,
        DownloadStartArgs,
        DownloadCancelArgs,
        DownloadState,
        Download,
        ModelVerified,
        FileVerified,
    ]
}

/// Other machines.
fn elsewhere(config: &Config) -> Vec<String> {
    macro_rules! all {
        ($($type:ty),* $(,)?) => { vec![$(declaration::<$type>(config)),*] };
    }
    all![
        ServerKind,
        EndpointKey,
        KeyPlace,
        TokenPlace,
        HubToken,
        HubTokenArgs,
        EndpointModel,
        EndpointHealth,
        EndpointInfo,
        RemoteInfo,
        EndpointAddArgs,
        EndpointUpdateArgs,
        PluginInfo,
        PluginSwitchArgs,
        ToolServerSpec,
        ToolServerState,
        ToolServerInfo,
        ToolSignInState,
        ToolSignInArgs,
        ToolSignInStart,
        ToolInfo,
        ToolServerAddArgs,
        ToolServerUpdateArgs,
        ToolPermitArgs,
        ToolServersImported,
        ToolDecision,
        ToolDecideArgs,
        ToolTextFormat,
        ToolFormOption,
        ToolFieldKind,
        ToolFormField,
        ToolForm,
        ToolFormAction,
        ToolFormAnswerArgs,
        ToolResource,
        ToolResourceTemplate,
        ToolResources,
        ToolResourceArgs,
        ToolPrompt,
        ToolPromptArgument,
        ToolPromptArgs,
        ToolPromptText,
        ConnectionPurpose,
        ConnectionInfo,
        ConnectionsArgs,
        PackageKind,
        UpdateMethod,
        UpdateOffer,
        UpdatePhase,
        UpdateInfo,
    ]
}

/// The whole file.
fn typescript() -> String {
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
        "// Generated from src-tauri/crates/contract by `make types`. Do not edit.\n\n{}\n\
         /** Every use case: what it takes and what it gives. */\nexport type Calls = {{\n{}\n}};\n",
        types.join("\n"),
        calls.join("\n"),
    )
}

fn main() -> std::io::Result<()> {
    let path = Path::new(PATH);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, typescript())
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

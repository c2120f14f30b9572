//! What tool servers write: lines of their output, results, configurations that are pasted, and manifests.

use std::path::Path;

use mcp::plugin_manifest::Manifest;
use mcp::tool_outcome::ToolOutcome;
use mcp::{fuzzing, pasted_config};

use crate::FuzzTarget;

/// Reads lines, results and configurations of tool servers.
pub static MCP: FuzzTarget = FuzzTarget { name: "mcp", read, max_bytes: 256 << 20 };

/// Characters of a result that a model gets.
const MAX_RESULT_CHARS: usize = 200;

fn read(input: &[u8]) {
    let (answers, _) = fuzzing::read_output(input);
    for answer in answers {
        assert!(answer.ends_with('\n') && !answer[..answer.len() - 1].contains('\n'), "one line: {answer:?}");
    }
    let text = String::from_utf8_lossy(input);
    if let Ok(result) = serde_json::from_str(&text) {
        ToolOutcome::read(&result, MAX_RESULT_CHARS, true);
    }
    let _ = pasted_config::pasted(&text);
    let _ = Manifest::parse(&text, Path::new("plugin.toml"));
}

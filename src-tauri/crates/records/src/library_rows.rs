//! Rows of the model library: what becomes of a file's facts, and what a row says of its model.

use contract::types::{ErrorInfo, ModelEntry, ModelFit, ModelSkills, ModelSource, ModelState, Thinking};
use contract::{ModelFacts, ModelSizes, STARTER_ID, ThinkingSupport};
use serde_json::Value;
use session::ModelRow;

/// Code of the problem of a file whose hash is not the recorded one. Adding the file again accepts it as it is.
pub const HASH_MISMATCH: &str = "model.hash_mismatch";

/// Longest id made from a file name.
const MAX_ID_CHARS: usize = 64;

/// Keys of stored capabilities that rows of earlier versions lack, the newest last.
const LATER_SKILLS: [&str; 2] = ["images", "image_detail"];

/// A row of a file that has been looked at; `id`, `path` and `added_ms` are the caller's.
pub fn row_of(facts: ModelFacts) -> ModelRow {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let skills = serde_json::to_string(&skills_of(&facts)).ok();
    ModelRow {
        name: facts.name,
        bytes: signed(facts.bytes),
        architecture: facts.architecture,
        parameters: signed(facts.parameters),
        dtype: facts.dtype,
        context_length: facts.context_length,
        source: source_name(ModelSource::File),
        files: facts.files,
        disk_bytes: signed(facts.disk_bytes),
        fingerprint: facts.fingerprint,
        sizes: serde_json::to_string(&facts.sizes).ok(),
        skills,
        ..ModelRow::default()
    }
}

/// A row as it crosses an edge, with what is true of its model now.
pub fn entry(row: ModelRow, state: ModelState, fit: Option<Box<ModelFit>>) -> ModelEntry {
    let (skills, embeds) = (stored_skills(&row), row.sizes.as_deref().is_some_and(embeds));
    let only_drafts = only_drafts(&row);
    ModelEntry {
        id: row.id,
        name: row.name,
        source: source_of(&row.source),
        path: Some(row.path),
        bytes: u64::try_from(row.bytes).unwrap_or(0),
        architecture: row.architecture,
        parameters: u64::try_from(row.parameters).unwrap_or(0),
        dtype: row.dtype,
        context_length: row.context_length,
        state,
        files: row.files,
        disk_bytes: u64::try_from(row.disk_bytes).unwrap_or(0),
        fit,
        remote: None,
        embeds,
        only_drafts,
        skills,
    }
}

/// The problem of a file whose hash is not the recorded one.
pub fn hash_mismatch(row: &ModelRow) -> Option<ErrorInfo> {
    let problem: ErrorInfo = serde_json::from_str(row.problem.as_deref()?).ok()?;
    (problem.code == HASH_MISMATCH).then_some(problem)
}

/// What a model supports, by its file.
pub fn skills_of(facts: &ModelFacts) -> ModelSkills {
    let thinking = match facts.skills.thinking {
        ThinkingSupport::Never => Thinking::Never,
        ThinkingSupport::Always => Thinking::Always,
        ThinkingSupport::Switched => Thinking::Switched,
        ThinkingSupport::Graded => Thinking::Graded,
    };
    ModelSkills {
        tools: facts.skills.tools,
        thinking,
        images: facts.images,
        image_detail: facts.image_detail,
    }
}

/// What a model is known to support. None: it was not inspected, or by a version that did not ask for all of it.
pub fn stored_skills(row: &ModelRow) -> Option<ModelSkills> {
    let mut skills: Value = serde_json::from_str(row.skills.as_deref()?).ok()?;
    let known = skills.as_object_mut()?;
    for key in LATER_SKILLS {
        known.entry(key).or_insert(Value::Bool(false));
    }
    serde_json::from_value(skills).ok()
}

/// Whether a row was written by a version that asked for all capabilities; the next scan completes others.
pub fn has_all_skills(row: &ModelRow) -> bool {
    row.skills
        .as_deref()
        .is_some_and(|json| LATER_SKILLS.iter().all(|key| json.contains(&format!("\"{key}\""))))
}

/// Whether a row is of an assistant, which drafts for another model. By its architecture, which rows of all versions have.
pub fn only_drafts(row: &ModelRow) -> bool {
    engine::arch::only_drafts(&row.architecture)
}

/// Returns whether a model computes embeddings, by its stored sizes.
fn embeds(sizes: &str) -> bool {
    serde_json::from_str(sizes).is_ok_and(|sizes: ModelSizes| sizes.embeds)
}

/// A source as it is kept.
pub fn source_name(source: ModelSource) -> String {
    serde_json::to_value(source).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A source that was kept. What another version kept counts as a file that the user has.
pub fn source_of(name: &str) -> ModelSource {
    serde_json::from_value(name.into()).unwrap_or(ModelSource::File)
}

/// Rows of models that were found in a folder.
pub fn count_found_in(rows: &[ModelRow], root: &str) -> u32 {
    let n = rows.iter().filter(|row| row.root.as_deref() == Some(root)).count();
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// An id that no row has, removed ones counted.
pub fn unique_id(title: &str, rows: &[ModelRow]) -> String {
    let id = id_of(title);
    let id = id.as_str();
    let is_taken = |id: &str| id == STARTER_ID || rows.iter().any(|row| row.id == id);
    if !is_taken(id) {
        return id.to_owned();
    }
    let numbered = (2..).map(|n: u32| format!("{id}-{n}"));
    numbered.into_iter().find(|id| !is_taken(id)).expect("there are more numbers than rows")
}

/// A name in lower case, with `-` for what is no letter, digit or dot.
fn id_of(title: &str) -> String {
    let name = title.to_lowercase();
    let mut id = String::new();
    for c in name.chars().take(MAX_ID_CHARS) {
        match c {
            c if c.is_alphanumeric() || c == '.' || c == '_' => id.push(c),
            _ if id.ends_with('-') || id.is_empty() => {}
            _ => id.push('-'),
        }
    }
    let id = id.trim_matches(['-', '.']).to_owned();
    if id.is_empty() { "model".into() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_from_file_names() {
        let cases = [
            ("SmolLM3-3B-Q4_K_M", "smollm3-3b-q4_k_m"),
            ("My Model (final)", "my-model-final"),
            ("---", "model"),
            ("Größe 日本", "größe-日本"),
        ];
        for (title, expected) in cases {
            assert_eq!(unique_id(title, &[]), expected);
        }
        assert_eq!(unique_id("Starter", &[]), "starter-2");
        let row = |id: &str| ModelRow { id: id.into(), ..ModelRow::default() };
        assert_eq!(unique_id("A", &[row("a"), row("a-2")]), "a-3");
    }

    #[test]
    fn capabilities_of_earlier_versions_are_read_and_known_to_be_incomplete() {
        let row = |skills: &str| ModelRow { skills: Some(skills.into()), ..ModelRow::default() };
        let earlier = row(r#"{"tools":true,"thinking":"switched"}"#);
        let expected = ModelSkills { tools: true, thinking: Thinking::Switched, ..ModelSkills::default() };
        assert_eq!(stored_skills(&earlier), Some(expected));
        assert!(!has_all_skills(&earlier));
        let later = row(&serde_json::to_string(&expected).unwrap());
        assert_eq!(stored_skills(&later), Some(expected));
        assert!(has_all_skills(&later));
        assert_eq!(stored_skills(&row("no JSON")), None);
    }
}

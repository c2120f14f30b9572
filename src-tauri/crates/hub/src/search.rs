//! Model search on the hub, and the facts it returns about each repository.

use reqwest::Url;
use serde_json::Value;

use crate::address::{ModelAddress, Repository, is_commit};
use crate::client::Client;
use crate::error::{HubError, Result};

/// Models per page.
const PER_PAGE: &str = "30";

/// Fields requested for each model.
const FACTS: [&str; 11] = [
    "config",
    "downloads",
    "gated",
    "gguf",
    "lastModified",
    "likes",
    "pipeline_tag",
    "safetensors",
    "sha",
    "tags",
    "trendingScore",
];

/// Separates the next-page URLs of two lists; no URL contains it.
const CURSOR_SEPARATOR: char = '\n';

/// Order of search results, descending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchSort {
    /// The hub's trending score.
    Trending,
    /// Number of downloads.
    Downloads,
    /// Number of likes.
    Likes,
    /// Time of the last change.
    Updated,
}

impl SearchSort {
    fn key(self) -> &'static str {
        match self {
            Self::Trending => "trendingScore",
            Self::Downloads => "downloads",
            Self::Likes => "likes",
            Self::Updated => "lastModified",
        }
    }
}

/// A search request.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    /// Search words, or a model address.
    pub text: String,
    /// Order of the results.
    pub sort: SearchSort,
    /// `next` of the previous page.
    pub after: Option<String>,
    /// Whether to include safetensors models besides GGUF.
    pub safetensors: bool,
}

/// A page of search results.
#[derive(Debug, Clone, Default)]
pub struct SearchPage {
    /// The models.
    pub models: Vec<RepositoryInfo>,
    /// Cursor of the next page.
    pub next: Option<String>,
}

/// Facts about a repository. Fields that the hub leaves out are None.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryInfo {
    /// The repository.
    pub repository: Repository,
    /// Newest commit.
    pub commit: Option<String>,
    /// Whether it has GGUF files.
    pub is_gguf: bool,
    /// `general.architecture` of a GGUF.
    pub architecture: Option<String>,
    /// `model_type` of config.json.
    pub model_type: Option<String>,
    /// `quant_method` of config.json, if its safetensors are quantized.
    pub quantised_by: Option<String>,
    /// Number of parameters.
    pub parameters: Option<u64>,
    /// Context length in tokens.
    pub context_length: Option<u32>,
    /// Licence identifier.
    pub licence: Option<String>,
    /// Languages that the page names: codes of two letters, or `multilingual`.
    pub languages: Vec<String>,
    /// Task assigned by the hub, such as `text-generation`.
    pub task: Option<String>,
    /// Number of downloads.
    pub downloads: Option<u64>,
    /// Number of likes.
    pub likes: Option<u64>,
    /// Time of the last change, ISO 8601.
    pub updated: Option<String>,
    /// Whether access requires accepting a licence.
    pub is_gated: bool,
    /// The hub's trending score; 0 if absent.
    pub trending: u32,
}

impl RepositoryInfo {
    /// Sort key in a merged list: larger comes first.
    fn rank(&self, sort: SearchSort) -> (u64, &str) {
        match sort {
            SearchSort::Trending => (self.trending.into(), ""),
            SearchSort::Downloads => (self.downloads.unwrap_or(0), ""),
            SearchSort::Likes => (self.likes.unwrap_or(0), ""),
            // ISO dates sort as text.
            SearchSort::Updated => (0, self.updated.as_deref().unwrap_or_default()),
        }
    }
}

impl Client {
    /// A page of models with GGUF files and, if requested, models with safetensors only. A model address finds its
    /// repository whatever it contains.
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchPage> {
        if let Some(after) = &query.after {
            let own = |text: &str| Url::parse(text).ok().filter(|url| self.hub.is_own(url));
            let urls: Option<Vec<Url>> = after.split(CURSOR_SEPARATOR).map(own).collect();
            let urls = urls.ok_or_else(|| HubError::bad_response("the page", "no such page"))?;
            return self.pages_of(&urls, query.sort).await;
        }
        if let Some(address) = ModelAddress::parse(&query.text) {
            match self.repository_info(&address.repository, None).await {
                Ok(found) => return Ok(SearchPage { models: vec![found], next: None }),
                // `owner/name` may be misremembered: search for it as words.
                Err(error) if error.code() == "hub.not_found" => {}
                Err(error) => return Err(error),
            }
        }
        let formats: &[&str] = if query.safetensors { &["gguf", "safetensors"] } else { &["gguf"] };
        let urls: Vec<Url> = formats.iter().map(|format| self.list_url(query, format)).collect();
        self.pages_of(&urls, query.sort).await
    }

    /// URL of the first page of models with files of a format.
    fn list_url(&self, query: &SearchQuery, format: &str) -> Url {
        let mut url = self.hub.join(&["api", "models"]);
        {
            let mut pairs = url.query_pairs_mut();
            let address = ModelAddress::parse(&query.text).map(|address| address.repository.to_string());
            let words = address.as_ref().unwrap_or(&query.text).replace('/', " ");
            if !words.trim().is_empty() {
                pairs.append_pair("search", words.trim());
            }
            pairs.append_pair("filter", format).append_pair("sort", query.sort.key());
            pairs.append_pair("direction", "-1").append_pair("limit", PER_PAGE);
            FACTS.iter().for_each(|fact| {
                pairs.append_pair("expand[]", fact);
            });
        }
        url
    }

    /// Merges pages of several lists in sort order.
    async fn pages_of(&self, urls: &[Url], sort: SearchSort) -> Result<SearchPage> {
        let mut whole = SearchPage::default();
        let mut next = Vec::new();
        for url in urls {
            let page = self.page_of(url).await?;
            let is_of_safetensors =
                url.query_pairs().any(|pair| pair == ("filter".into(), "safetensors".into()));
            // Models with both formats are in the GGUF list.
            whole.models.extend(page.models.into_iter().filter(|it| !is_of_safetensors || !it.is_gguf));
            next.extend(page.next);
        }
        if urls.len() > 1 {
            whole.models.sort_by(|a, b| b.rank(sort).cmp(&a.rank(sort)));
        }
        whole.next = Some(next.join(&CURSOR_SEPARATOR.to_string())).filter(|next| !next.is_empty());
        Ok(whole)
    }

    /// Facts about a repository at a revision; None is the newest.
    pub async fn repository_info(
        &self,
        repository: &Repository,
        revision: Option<&str>,
    ) -> Result<RepositoryInfo> {
        let mut segments = vec!["api", "models", &repository.owner, &repository.name];
        if let Some(revision) = revision {
            segments.extend(["revision", revision]);
        }
        let mut url = self.hub.join(&segments);
        url.query_pairs_mut().extend_pairs(FACTS.iter().map(|fact| ("expand[]", fact)));
        let (value, _) = self.json(&url, Some(repository)).await?;
        parse_info(&value)
            .ok_or_else(|| HubError::bad_response(&self.host(), format!("it doesn't describe {repository}")))
    }

    async fn page_of(&self, url: &Url) -> Result<SearchPage> {
        let (value, next) = self.json(url, None).await?;
        let Value::Array(rows) = value else {
            return Err(HubError::bad_response(&self.host(), "no list of models"));
        };
        // Unreadable entries are skipped; the others stay.
        Ok(SearchPage { models: rows.iter().filter_map(parse_info).collect(), next: next.map(Into::into) })
    }
}

fn parse_info(row: &Value) -> Option<RepositoryInfo> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let id = row.get("id").or_else(|| row.get("modelId"))?.as_str()?;
    let tags = || row["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let gguf = &row["gguf"];
    let licence = tags().find_map(|tag| tag.strip_prefix("license:")).map(str::to_owned);
    Some(RepositoryInfo {
        repository: Repository::parse(id)?,
        commit: text(&row["sha"]).filter(|sha| is_commit(sha)),
        is_gguf: gguf.is_object() || tags().any(|tag| tag == "gguf"),
        architecture: text(&gguf["architecture"]),
        model_type: text(&row["config"]["model_type"]),
        quantised_by: text(&row["config"]["quantization_config"]["quant_method"]),
        parameters: gguf["total"].as_u64().or_else(|| row["safetensors"]["total"].as_u64()),
        context_length: gguf["context_length"].as_u64().and_then(|n| u32::try_from(n).ok()),
        licence: licence.or_else(|| text(&row["cardData"]["license"])),
        languages: tags().filter(|tag| is_language(tag)).map(str::to_owned).collect(),
        task: text(&row["pipeline_tag"]),
        downloads: row["downloads"].as_u64(),
        likes: row["likes"].as_u64(),
        updated: text(&row["lastModified"]),
        is_gated: !matches!(row["gated"], Value::Bool(false) | Value::Null),
        trending: row["trendingScore"].as_f64().map_or(0, |score| score.max(0.0) as u32),
    })
}

/// The hub mixes languages with other tags, of which only few have two letters.
fn is_language(tag: &str) -> bool {
    let is_code = tag.len() == 2 && tag.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_code && !NOT_LANGUAGES.contains(&tag)) || tag == "multilingual"
}

/// Tags of two letters with another meaning: TensorFlow.
const NOT_LANGUAGES: &[&str] = &["tf"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_read_and_what_is_missing_stays_open() {
        let full = parse_info(&json!({
            "id": "ggml-org/SmolLM3-3B-GGUF", "sha": "0123456789abcdef0123456789abcdef01234567",
            "downloads": 12, "likes": 3, "gated": "auto", "lastModified": "2026-01-02T03:04:05.000Z",
            "pipeline_tag": "text-generation", "tags": ["gguf", "tf", "en", "de", "license:apache-2.0", "region:us", "multilingual"],
            "gguf": {"total": 3075098624_u64, "architecture": "smollm3", "context_length": 65536}
        }))
        .unwrap();
        assert_eq!(full.architecture.as_deref(), Some("smollm3"));
        assert_eq!((full.parameters, full.context_length), (Some(3_075_098_624), Some(65536)));
        assert_eq!(full.licence.as_deref(), Some("apache-2.0"));
        assert_eq!(full.languages, ["en", "de", "multilingual"]);
        assert!(full.is_gated && full.is_gguf && full.commit.is_some());
        let bare = parse_info(&json!({"id": "a/b", "gated": false, "sha": "../x"})).unwrap();
        assert_eq!((bare.commit, bare.is_gguf, bare.is_gated), (None, false, false));
        let folder = parse_info(&json!({
            "id": "a/b", "tags": ["safetensors"], "safetensors": {"total": 5}, "trendingScore": 3.7,
            "config": {"model_type": "llama", "quantization_config": {"quant_method": "awq"}}
        }))
        .unwrap();
        assert_eq!((folder.parameters, folder.trending, folder.is_gguf), (Some(5), 3, false));
        assert_eq!(folder.quantised_by.as_deref(), Some("awq"));
        for wrong in [json!({}), json!({"id": "../b"}), json!({"id": 5}), json!(null)] {
            assert_eq!(parse_info(&wrong), None, "{wrong}");
        }
    }
}

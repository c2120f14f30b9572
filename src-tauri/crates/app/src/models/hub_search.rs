//! Models available for download: the catalogue, the hub, and a repository's files. Without a
//! network only the catalogue.

use hub::{ModelFiles, RemoteFile, Repository, RepositoryInfo, RepositoryTree, SearchQuery, SearchSort};

use contract::types::{
    HubFile, HubFiles, HubFilesArgs, HubFormat, HubModel, HubPage, HubSearchArgs, HubSort, Modality,
    QuantGroup, Trust,
};
use contract::{CatalogOffer, ModelStrength};
use contract::{Error, Result};
use platform::calendar;

use crate::App;

/// Where nothing else says which: good answers at a quarter of the size.
const USUAL: [&str; 8] = ["Q4_K_M", "MXFP4", "Q4_K_S", "Q4_0", "Q5_K_M", "Q4_K_XL", "Q8_0", "F16"];

/// A repository at one commit, with what vouches for its files.
pub(crate) struct Listing {
    pub tree: RepositoryTree,
    pub items: Vec<ModelFiles>,
    /// Index of the recommended one.
    pub recommended: Option<usize>,
    pub manifest: Option<(hub::Manifest, String)>,
    /// What the catalogue says of it.
    pub offer: Option<CatalogOffer>,
}

impl App {
    /// A page of models that can run here.
    pub fn hub_search(&self, args: &HubSearchArgs) -> Result<HubPage> {
        let (all, _) = self.usable_catalogue()?;
        let is_meant = |offer: &&CatalogOffer| args.after.is_none() && offer.holds(&args.query);
        let offers: Vec<&CatalogOffer> = all.iter().filter(is_meant).collect();
        let sort = match args.sort.unwrap_or_default() {
            HubSort::Trending => SearchSort::Trending,
            HubSort::Downloads => SearchSort::Downloads,
            HubSort::Likes => SearchSort::Likes,
            HubSort::Updated => SearchSort::Updated,
        };
        // A search by words may mean a model that has not been quantised yet.
        let safetensors = !args.query.trim().is_empty();
        let query = SearchQuery { text: args.query.clone(), sort, after: args.after.clone(), safetensors };
        let by_name = hub::ModelAddress::parse(&args.query).map(|address| address.repository);
        let client = self.hub_client();
        let asked = client.and_then(|client| self.ask_hub(async move { client.search(&query).await }));
        let mut models = Vec::new();
        match asked {
            Ok(page) => {
                let found = page.models.iter().map(|found| self.model(found, &all));
                let found: Vec<HubModel> = found
                    .collect::<Result<Vec<_>>>()?
                    .into_iter()
                    .filter(|model| {
                        model.runs
                            || by_name.as_ref().is_some_and(|name| name.to_string() == model.repository)
                    })
                    .collect();
                let is_found =
                    |offer: &&CatalogOffer| found.iter().any(|model| model.repository == offer.repository);
                // An address names one model: the catalogue's others are not meant.
                let others = offers.into_iter().filter(|offer| by_name.is_none() && !is_found(offer));
                models.extend(others.map(|offer| self.offered(offer)).collect::<Result<Vec<_>>>()?);
                let (offered, rest): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(|model| model.offer.is_some());
                models.splice(0..0, offered);
                models.extend(rest);
                Ok(HubPage { models, next: page.next, offline: None })
            }
            // What is on disk and the catalogue stay usable.
            Err(error) if args.after.is_none() => {
                models
                    .extend(offers.into_iter().map(|offer| self.offered(offer)).collect::<Result<Vec<_>>>()?);
                Ok(HubPage { models, next: None, offline: Some(error.info) })
            }
            Err(error) => Err(error),
        }
    }

    /// What of a repository can be fetched.
    pub fn hub_files(&self, args: &HubFilesArgs) -> Result<HubFiles> {
        let (repository, offer) = self.named(&args.repository)?;
        let listing = self.listing(&repository, args.revision.clone(), offer)?;
        let downloads = self.download_list()?;
        let mut files = Vec::with_capacity(listing.items.len());
        for (index, item) in listing.items.iter().enumerate() {
            let trust = listing.trust(&repository, item)?;
            let same = |d: &&contract::types::Download| {
                d.repository == repository.to_string() && d.path == item.path
            };
            files.push(HubFile {
                path: item.path.clone(),
                parts: u32::try_from(item.files.len()).unwrap_or(u32::MAX),
                bytes: item.bytes(),
                quantisation: item.quantisation.clone(),
                group: match item.group {
                    hub::QuantGroup::Small => QuantGroup::Small,
                    hub::QuantGroup::Balanced => QuantGroup::Balanced,
                    hub::QuantGroup::Large => QuantGroup::Large,
                },
                recommended: listing.recommended == Some(index),
                trust,
                download: downloads.iter().find(same).map(|download| download.id.clone()),
            });
        }
        Ok(HubFiles {
            model: self.model(&listing.tree.found, listing.offer.as_slice())?,
            revision: listing.tree.revision,
            files,
        })
    }

    pub(crate) fn listing(
        &self,
        repository: &Repository,
        revision: Option<String>,
        offer: Option<CatalogOffer>,
    ) -> Result<Listing> {
        let (client, keys, name) = (self.hub_client()?, self.trusted_keys()?, repository.clone());
        let (tree, manifest) = self.ask_hub(async move {
            let tree = client.tree(&name, revision.as_deref()).await?;
            let manifest = client.manifest(&name, &tree, &keys).await?;
            Ok((tree, manifest))
        })?;
        let items = hub::downloadable_models(&tree.files);
        let recommended = recommended(&items, offer.as_ref());
        Ok(Listing { tree, items, recommended, manifest, offer })
    }

    /// A repository as the page shows it.
    fn model(&self, found: &RepositoryInfo, offers: &[CatalogOffer]) -> Result<HubModel> {
        let name = found.repository.to_string();
        let offer = offers.iter().find(|offer| offer.repository == name);
        Ok(HubModel {
            url: self.hub_client()?.page(&found.repository).to_string(),
            repository: name,
            format: if found.is_gguf { HubFormat::Gguf } else { HubFormat::Safetensors },
            architecture: found.architecture.clone().or_else(|| found.model_type.clone()),
            parameters: found.parameters,
            context_length: found.context_length,
            licence: found.licence.clone().or_else(|| offer.map(|offer| offer.licence.clone())),
            languages: match offer {
                Some(offer) if found.languages.is_empty() => offer.languages.clone(),
                _ => found.languages.clone(),
            },
            modality: modality(found.task.as_deref()),
            downloads: found.downloads,
            likes: found.likes,
            updated_ms: found.updated.as_deref().and_then(calendar::parse),
            gated: found.is_gated,
            runs: runs(found),
            offer: offer.cloned(),
        })
    }

    /// One of the catalogue of which the hub has said nothing.
    fn offered(&self, offer: &CatalogOffer) -> Result<HubModel> {
        let repository = Repository::parse(&offer.repository);
        let page = |repository| self.hub_client().ok().map(|client| client.page(&repository).to_string());
        Ok(HubModel {
            repository: offer.repository.clone(),
            format: HubFormat::Gguf,
            architecture: Some(offer.architecture.clone()),
            parameters: None,
            context_length: None,
            licence: Some(offer.licence.clone()),
            languages: offer.languages.clone(),
            modality: match offer.capabilities.contains(&ModelStrength::Images) {
                true => Modality::TextAndImages,
                false => Modality::Text,
            },
            downloads: None,
            likes: None,
            updated_ms: None,
            gated: false,
            url: repository.and_then(page).unwrap_or_default(),
            runs: true,
            offer: Some(offer.clone()),
        })
    }
}

impl Listing {
    /// What vouches for a model's files. Errors: a signed list says something else than the hub.
    pub fn trust(&self, repository: &Repository, item: &ModelFiles) -> Result<Trust> {
        if let Some(key) = self.offered(item)? {
            return Ok(Trust::Signed { key });
        }
        let Some((manifest, signer)) = &self.manifest else {
            let is_published = item.files.iter().any(|file| file.sha256.is_some());
            return Ok(if is_published { Trust::Published } else { Trust::Unknown });
        };
        for file in &item.files {
            if manifest.of(&repository.to_string(), file)?.is_none() {
                return Ok(Trust::Published);
            }
        }
        Ok(Trust::Signed { key: signer.clone() })
    }
}

impl Listing {
    /// Who signed the catalogue's word on a model's files. Errors: they are others than it names.
    fn offered(&self, item: &ModelFiles) -> Result<Option<String>> {
        let Some(CatalogOffer { files, sha256, signed_by: Some(key), name, .. }) = &self.offer else {
            return Ok(None);
        };
        if sha256.is_empty() || !matches(files, item.path.rsplit('/').next().unwrap_or(&item.path)) {
            return Ok(None);
        }
        let is_listed = |hash: hub::Hash| sha256.iter().any(|listed| hub::Hash::parse(listed) == Some(hash));
        let is_known = |file: &RemoteFile| file.sha256.is_some_and(is_listed);
        let (towers, models): (Vec<_>, Vec<_>) =
            item.files.iter().partition(|file| hub::is_vision_tower(&file.path));
        if models.iter().all(|file| is_known(file)) {
            // A catalogue may name none: then the hub alone vouches for it.
            return Ok(towers.iter().all(|file| is_known(file)).then(|| key.clone()));
        }
        Err(Error::input(
            "hub.signed_mismatch",
            format!(
                "{} differs from the file that the signed catalog lists for {name}, so it was rejected.",
                item.path
            ),
            "Choose another file, and report this to the publisher of the catalog.",
        ))
    }
}

/// As far as the hub tells.
fn runs(found: &RepositoryInfo) -> bool {
    let known = engine::arch::ARCHITECTURES;
    match (&found.architecture, &found.model_type) {
        (Some(architecture), _) if found.is_gguf => known.iter().any(|a| a.gguf_name() == architecture),
        // The hub has not looked into it (yet): the file itself will say.
        _ if found.is_gguf => true,
        (_, Some(kind)) => known.iter().any(|a| {
            let is_read = found.quantised_by.as_deref().is_none_or(|by| a.hf_quantization() == Some(by));
            a.hf_names().contains(&kind.as_str()) && is_read && writes(found.task.as_deref())
        }),
        (_, None) => false,
    }
}

/// Of one that is no GGUF: it is for writing text. Those of the same families that sort or compare texts write none.
fn writes(task: Option<&str>) -> bool {
    let tasks = [
        "text-generation",
        "image-text-to-text",
        "any-to-any",
        "audio-text-to-text",
        "video-text-to-text",
        "visual-question-answering",
    ];
    task.is_none_or(|task| tasks.contains(&task))
}

/// The catalogue's choice; else the usual quantisation; else the only one.
fn recommended(items: &[ModelFiles], offer: Option<&CatalogOffer>) -> Option<usize> {
    let offered = offer.and_then(|offer| {
        items
            .iter()
            .position(|item| matches(&offer.files, item.path.rsplit('/').next().unwrap_or(&item.path)))
    });
    let usual = || {
        let of = |name: &&str| items.iter().position(|item| item.quantisation.as_deref() == Some(*name));
        USUAL.iter().find_map(of)
    };
    offered.or_else(usual).or(if items.is_empty() { None } else { Some(0) })
}

/// `*` stands for anything; case does not count.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

fn modality(task: Option<&str>) -> Modality {
    match task.unwrap_or_default() {
        "image-text-to-text" | "visual-question-answering" | "video-text-to-text" => Modality::TextAndImages,
        "audio-text-to-text" => Modality::TextAndSound,
        "any-to-any" => Modality::Anything,
        _ => Modality::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_the_catalogue_match_names() {
        for (pattern, name, expected) in [
            ("*Q4_K_M.gguf", "SmolLM3-Q4_K_M.gguf", true),
            ("*q4_k_m.gguf", "X-Q4_K_M.GGUF", true),
            ("*mxfp4*.gguf", "gpt-oss-120b-mxfp4-00001-of-00003.gguf", true),
            ("*-it-Q4_K_M.gguf", "gemma-4-E2B-it-UD-Q4_K_M.gguf", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}

//! The models offered for download: `models/catalog.toml`, compiled in, overlaid by one of the same
//! form in the data folder, which may be signed.

use std::collections::HashSet;
use std::sync::OnceLock;

use serde::Deserialize;

use contract::CatalogOffer;

use crate::App;
use contract::{Error, Result};

const SOURCE: &str = include_str!("../../../../../models/catalog.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogFile {
    model: Vec<CatalogOffer>,
}

/// All offers, in the order of the file.
pub fn offers() -> Result<&'static [CatalogOffer]> {
    static OFFERS: OnceLock<Result<Vec<CatalogOffer>>> = OnceLock::new();
    OFFERS.get_or_init(|| parse("models/catalog.toml", SOURCE)).as_deref().map_err(Clone::clone)
}

/// Those whose id, name, family, repository or description hold every word.
pub fn search(query: &str) -> Result<Vec<&'static CatalogOffer>> {
    Ok(offers()?.iter().filter(|offer| offer.holds(query)).collect())
}

/// The list in the data folder.
const OWN: &str = "catalog.toml";

/// Of a list: the built-in one has less than 100 KB.
const MAX_CATALOG_BYTES: u64 = 16 << 20;

/// Of a signature: minisign's have less than 1 KB.
const MAX_SIGNATURE_BYTES: u64 = 64 << 10;

impl App {
    /// All offers: those of the data folder's list first, then those of plugins; of two with one id the first counts. Errors: a list whose
    /// signature doesn't hold, or that can't be read.
    pub fn catalogue(&self) -> Result<Vec<CatalogOffer>> {
        self.with_built_in(self.own_offers()?)
    }

    /// As `catalogue`, without a list that can't be used; and what is wrong with it, which is reported once.
    pub(crate) fn usable_catalogue(&self) -> Result<(Vec<CatalogOffer>, Option<Error>)> {
        let (own, fault) = match self.own_offers() {
            Ok(own) => (own, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        if let Some(error) = &fault
            && self.services().models.is_new_catalog_fault(error.message())
        {
            tracing::warn!(code = error.code(), "{error}");
            self.services().audit_refusal(OWN, &error.info);
            self.ctx().events.notice(error.info.clone());
        }
        Ok((self.with_built_in(own)?, fault))
    }

    /// Those of the list in the data folder, if there is one.
    fn own_offers(&self) -> Result<Vec<CatalogOffer>> {
        let path = self.dirs().data.join(OWN);
        let io = &*self.ctx().io;
        if !io.exists(&path)? {
            return Ok(Vec::new());
        }
        let bytes = io.read_within(&path, MAX_CATALOG_BYTES)?;
        let signature = self.dirs().data.join(format!("{OWN}{}", hub::SIGNATURE_ENDING));
        let signer = match io.exists(&signature)? {
            true => {
                let text =
                    String::from_utf8_lossy(&io.read_within(&signature, MAX_SIGNATURE_BYTES)?).into_owned();
                self.trusted_keys()?.signer(&bytes, &text, &path.display().to_string())?
            }
            false => None,
        };
        let mut own = parse(&path.display().to_string(), &String::from_utf8_lossy(&bytes))?;
        own.iter_mut().for_each(|offer| offer.signed_by.clone_from(&signer));
        Ok(own)
    }

    fn with_built_in(&self, own: Vec<CatalogOffer>) -> Result<Vec<CatalogOffer>> {
        let mut all = own;
        for offer in self.plugin_offers()? {
            if !all.iter().any(|other| other.id == offer.id) {
                all.push(offer);
            }
        }
        let n_own = all.len();
        for offer in offers()? {
            if !all[..n_own].iter().any(|own| own.id == offer.id) {
                all.push(offer.clone());
            }
        }
        Ok(all)
    }
}

/// Errors: what is no such file, an unknown key, an id or a repository's file twice, an empty field.
fn parse(name: &str, source: &str) -> Result<Vec<CatalogOffer>> {
    let CatalogFile { model: offers } =
        toml::from_str(source).map_err(|error| wrong(name, error.to_string()))?;
    check(name, &offers)?;
    Ok(offers)
}

fn wrong(name: &str, cause: String) -> Error {
    let message = format!("The catalog {name} can't be used: {cause}.");
    Error::input("catalog.wrong", message, "Download it again, or remove it.")
}

/// As `parse`, once the file is read.
pub(crate) fn check(name: &str, offers: &[CatalogOffer]) -> Result<()> {
    let wrong = |cause: String| wrong(name, cause);
    let mut ids = HashSet::new();
    let mut places = HashSet::new();
    for offer in offers {
        let CatalogOffer { id, name, family, architecture, repository, files, licence, good_at, .. } = offer;
        let texts = [id, name, family, architecture, files, licence, good_at];
        if texts.iter().any(|text| text.trim().is_empty()) {
            return Err(wrong(format!("{id} has an empty field")));
        }
        if hub::Repository::parse(repository).is_none() || !files.ends_with(".gguf") {
            return Err(wrong(format!("{id} has no Hugging Face repository")));
        }
        if !ids.insert(id) || !places.insert((repository, files)) {
            return Err(wrong(format!("{id} is listed twice")));
        }
        if offer.sha256.iter().any(|hash| hub::Hash::parse(hash).is_none()) {
            return Err(wrong(format!("{id} has an invalid SHA-256")));
        }
        let mut capabilities = offer.capabilities.clone();
        capabilities.dedup();
        if capabilities.len() != offer.capabilities.len() {
            return Err(wrong(format!("{id} lists a capability twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offer_has_its_sizes_and_nothing_else() {
        let facts = inference::estimate::offers::facts().unwrap();
        let offers = offers().unwrap();
        for offer in offers {
            assert!(facts.contains_key(&offer.id), "{} has no row in models/sizes.toml", offer.id);
        }
        assert_eq!(facts.len(), offers.len());
        for (id, row) in facts {
            let bits = row.bytes as f64 * 8.0 / row.parameters.unwrap() as f64;
            assert!((4.0..9.0).contains(&bits), "{id}: {bits} bits a parameter");
            assert!(row.active_parameters.is_none_or(|n| n < row.parameters.unwrap()), "{id}");
        }
    }

    #[test]
    fn what_is_offered_runs() {
        let known: Vec<&str> = engine::arch::ARCHITECTURES.iter().map(|a| a.gguf_name()).collect();
        for offer in offers().unwrap() {
            assert!(known.contains(&offer.architecture.as_str()), "{}: {}", offer.id, offer.architecture);
        }
    }

    #[test]
    fn every_family_of_the_mission_is_there() {
        let families = [
            ("SmolLM3", 1),
            ("SmolLM2", 3),
            ("Gemma 4", 4),
            ("Gemma 3", 4),
            ("gpt-oss", 2),
            ("Llama", 4),
            ("Qwen3.5", 8),
            ("Qwen3", 8),
            ("Qwen2.5-Coder", 6),
            ("Mistral", 5),
            ("Phi", 3),
        ];
        for (family, n) in families {
            let found = offers().unwrap().iter().filter(|offer| offer.family == family).count();
            assert_eq!(found, n, "{family}");
        }
        assert_eq!(search("gemma 4 e2b").unwrap().len(), 1);
        assert!(search("").unwrap().len() > 40 && search("no such model").unwrap().is_empty());
    }

    #[test]
    fn a_wrong_file_is_refused() {
        let row = SOURCE[SOURCE.find("[[model]]").unwrap()..].split("\n\n").next().unwrap();
        assert_eq!(parse("x", row).unwrap().len(), 1);
        let check = |source: String, word: &str| {
            let error = parse("x", &source).unwrap_err();
            assert!(error.message().contains(word), "{word}: {error}");
        };
        check(format!("{row}\n{row}"), "is listed twice");
        check(format!("{row}\nsize = 5"), "unknown field");
        check(row.replace("[[model]]", "[[models]]"), "unknown field");
        check(row.replace("licence =", "license ="), "unknown field");
        check(row.replace("\"tools\"", "\"magic\""), "unknown variant");
        check(row.replace("\"thinking\"", "\"tools\""), "a capability twice");
        check(row.replace("ggml-org/", ""), "no Hugging Face repository");
        check(row.replace("Apache-2.0", " "), "empty field");
        check(row.replace(".gguf", ".bin"), "no Hugging Face repository");
        check(format!("{row}\nsha256 = [\"ab\"]"), "SHA-256");
        check(format!("{row}\nsigned_by = \"me\""), "unknown field");
    }
}

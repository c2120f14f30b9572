//! `nook models`: the library.

use api::catalog::{self, Offer};
use api::types::{ModelEntry, ModelState};
use api::{App, Result};
use serde_json::json;

use crate::args::{Global, ModelsArgs, ModelsVerb};
use crate::{not_built, out, text};

pub fn models(global: &Global, args: &ModelsArgs) -> Result<()> {
    let open = || App::open(global.app_config()?);
    match &args.verb {
        ModelsVerb::List => list(&open()?.models_list()?, global.json),
        ModelsVerb::Add { path } => {
            let entry = open()?.model_add(path)?;
            if global.json { out::json(&entry) } else { out::line(&format!("added as {}", entry.id)) }
        }
        ModelsVerb::Rm { id } => {
            open()?.model_remove(id)?;
            if global.json {
                out::json(&json!({ "removed": id }))
            }
        }
        ModelsVerb::Search { query } => offers(&catalog::search(&query.join(" "))?, global.json),
        ModelsVerb::Pull(_) => return Err(not_built("nook models pull")),
        ModelsVerb::Import(_) => return Err(not_built("nook models import (`nook models add PATH` is)")),
        ModelsVerb::Verify(_) => return Err(not_built("nook models verify")),
    }
    Ok(())
}

fn offers(offers: &[&Offer], as_json: bool) {
    if as_json {
        return out::json(&json!({ "models": offers }));
    }
    let row = |offer: &&Offer| {
        [&offer.id, &offer.name, &offer.repository, &offer.good_at].map(String::clone).to_vec()
    };
    out::text(&text::table(&offers.iter().map(row).collect::<Vec<_>>()));
}

fn list(models: &[ModelEntry], as_json: bool) {
    if as_json {
        return out::json(&json!({ "models": models }));
    }
    let row = |model: &ModelEntry| {
        let note = match &model.state {
            ModelState::Unusable { error } => error.message.clone(),
            ModelState::Unloaded | ModelState::Loading { .. } | ModelState::Ready => String::new(),
        };
        vec![
            model.id.clone(),
            model.architecture.clone(),
            text::count(model.parameters),
            model.dtype.clone(),
            text::bytes(model.bytes),
            note,
        ]
    };
    out::text(&text::table(&models.iter().map(row).collect::<Vec<_>>()));
}

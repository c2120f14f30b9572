//! `nook models`: the model library.

use app::App;
use contract::Result;

use crate::args::{Global, ModelsArgs, ModelsVerb};
use crate::{library, out, pull, token};

pub fn models(global: &Global, args: &ModelsArgs) -> Result<()> {
    let open = || App::open(global.app_config()?);
    match &args.verb {
        ModelsVerb::List => library::list(&open()?, global.json)?,
        ModelsVerb::Add { path } => {
            let entry = open()?.model_add(path)?;
            if global.json { out::json(&entry) } else { out::line(&format!("added as {}", entry.id)) }
        }
        ModelsVerb::Import(flags) => library::import(&open()?, flags, global.json)?,
        ModelsVerb::Rm { id, purge } => library::rm(&open()?, id, *purge, global.json)?,
        ModelsVerb::Undo { id } => library::undo(&open()?, id.as_deref(), global.json)?,
        ModelsVerb::Fit { model } => library::fit(&open()?, model.as_deref(), global.json)?,
        ModelsVerb::Folders { path, rm } => library::folders(&open()?, path.as_deref(), *rm, global.json)?,
        ModelsVerb::Usage => library::usage(&open()?, global.json)?,
        ModelsVerb::Search { query, offline: true, .. } => {
            let all = open()?.catalogue()?;
            let query = query.join(" ");
            pull::offers(&all.iter().filter(|offer| offer.holds(&query)).collect::<Vec<_>>(), global.json)
        }
        ModelsVerb::Search { query, sort, .. } => {
            pull::search(&open()?, &query.join(" "), *sort, global.json)?
        }
        ModelsVerb::Pull { what } => pull::pull(&open()?, what, global.json)?,
        ModelsVerb::Token { stdin, rm } => token::token(&open()?, *stdin, *rm, global.json)?,
        ModelsVerb::Verify { id } => pull::verify(&open()?, id, global.json)?,
    }
    Ok(())
}

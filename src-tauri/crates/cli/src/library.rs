//! `nook models`: lists, imports, removes and restores models, and checks whether they fit.

use std::path::Path;
use std::sync::atomic::Ordering;

use app::App;
use contract::Result;
use contract::types::{
    AppEvent, ChoiceKind, FitArgs, FitVerdict, ImportArgs, ImportHow, ModelEntry, ModelFit, ModelState,
    OfferFit, RemovedModel,
};
use inference::estimate;
use serde_json::json;

use crate::args::ImportFlags;
use crate::{interrupt, out, text};

/// Lists the models after a scan of all folders.
pub fn list(app: &App, as_json: bool) -> Result<()> {
    let scan = app.models_scan()?;
    if as_json {
        out::json(&json!({ "models": scan.models, "folders": scan.folders }));
        return Ok(());
    }
    let row = |model: &ModelEntry| {
        let note = match &model.state {
            ModelState::Unusable { error } => error.message.clone(),
            ModelState::Unloaded | ModelState::Loading { .. } | ModelState::Ready if model.only_drafts => {
                "draft model".to_owned()
            }
            ModelState::Unloaded | ModelState::Loading { .. } | ModelState::Ready => {
                model.fit.as_deref().map_or_else(String::new, |fit| verdict(fit).to_owned())
            }
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
    out::text(&text::table(&scan.models.iter().map(row).collect::<Vec<_>>()));
    for folder in scan.folders {
        folder.error.inspect(|error| out::log(&format!("{} {}", error.message, error.remedy)));
    }
    Ok(())
}

pub fn import(app: &App, flags: &ImportFlags, as_json: bool) -> Result<()> {
    let how = match (flags.copy, flags.move_) {
        (true, _) => ImportHow::Copy,
        (false, true) => ImportHow::Move,
        (false, false) => ImportHow::Link,
    };
    let args = ImportArgs { path: flags.path.clone(), how };
    let following = (how != ImportHow::Link).then(|| show_import_progress(app, &args.path, as_json));
    let entry = app.model_import(&args)?;
    if following.is_some_and(|following| following.join().is_err()) {
        out::log("the progress display failed");
    }
    if as_json {
        out::json(&entry)
    } else {
        out::line(&format!("imported as {}", entry.id))
    }
    Ok(())
}

/// Shows the progress of an import, and cancels it on Ctrl+C. Ends with the import.
fn show_import_progress(app: &App, path: &str, as_json: bool) -> std::thread::JoinHandle<()> {
    let (watch, app, path, stop) = (app.watch_app(), app.clone(), path.to_owned(), interrupt::flag());
    std::thread::spawn(move || {
        for event in watch.flatten() {
            let AppEvent::ModelImport { progress } = event else { continue };
            if progress.error.is_some() || progress.done_bytes == progress.total_bytes {
                return;
            }
            if stop.load(Ordering::SeqCst) {
                // the import may have just finished
                let _ = app.model_import_cancel(&path);
            }
            if !as_json {
                let (done, total) = (text::bytes(progress.done_bytes), text::bytes(progress.total_bytes));
                out::log(&format!("{done} of {total}"));
            }
        }
    })
}

pub fn rm(app: &App, id: &str, purge: bool, as_json: bool) -> Result<()> {
    let removed = app.model_remove(id)?;
    let purged = if purge { app.models_purge()?.count } else { 0 };
    if as_json {
        out::json(&json!({ "removed": removed.id, "disk_bytes": removed.disk_bytes, "purged": purged }));
    } else if removed.disk_bytes > 0 && !purge {
        out::line(&format!("removed; restore it within a week with `nook models undo {id}`"));
    } else {
        out::line("removed");
    }
    Ok(())
}

pub fn undo(app: &App, id: Option<&str>, as_json: bool) -> Result<()> {
    match id {
        Some(id) => {
            let entry = app.model_restore(id)?;
            if as_json { out::json(&entry) } else { out::line(&format!("{} is restored", entry.id)) }
        }
        None => {
            let removed = app.models_removed()?;
            if as_json {
                out::json(&json!({ "removed": removed }));
                return Ok(());
            }
            let row = |model: &RemovedModel| {
                vec![model.id.clone(), model.name.clone(), text::bytes(model.disk_bytes)]
            };
            out::text(&text::table(&removed.iter().map(row).collect::<Vec<_>>()));
        }
    }
    Ok(())
}

pub fn fit(app: &App, model: Option<&str>, as_json: bool) -> Result<()> {
    let Some(name) = model else { return catalogue(app, as_json) };
    let id = |name: &str| FitArgs { id: Some(name.to_owned()), ..FitArgs::default() };
    let args = match estimate::offers::facts()?.get(name) {
        _ if Path::new(name).exists() => FitArgs { path: Some(name.to_owned()), ..FitArgs::default() },
        Some(facts) if app.model_get(name).is_err() => {
            FitArgs { facts: Some(facts.clone()), ..FitArgs::default() }
        }
        Some(_) | None => id(name),
    };
    let fit = app.model_fit(&args)?;
    if as_json {
        out::json(&fit);
        return Ok(());
    }
    let mut rows = vec![
        vec![verdict(&fit).to_owned(), fit.reason.clone()],
        vec!["weights".into(), text::bytes(fit.needs.weights)],
        vec![format!("context of {}, {}", fit.context, fit.kv), text::bytes(fit.needs.context)],
        vec!["activations and vocabulary".into(), text::bytes(fit.needs.activations + fit.needs.vocabulary)],
        vec!["total".into(), text::bytes(fit.needs.total)],
        vec!["free".into(), fit.free_bytes.map_or_else(|| "unknown".into(), text::bytes)],
        vec!["longest context".into(), fit.longest_context.map_or_else(|| "none".into(), |n| n.to_string())],
    ];
    if let Some(card) = &fit.card {
        let memory = card.memory_bytes.map_or_else(|| "unknown".into(), text::bytes);
        rows.push(vec!["GPU".into(), format!("{}, memory {memory}", card.name)]);
        let count = |n: Option<u32>| n.map_or_else(|| "unknown".into(), |n| n.to_string());
        rows.push(vec![
            "layers that fit".into(),
            format!("{} of {}", count(card.layers_fit), count(card.layers)),
        ]);
    }
    let speed = |speed: Option<f64>| {
        speed.map_or_else(|| "not measured".into(), |n| format!("{n} tokens per second"))
    };
    rows.push(vec!["speed".into(), speed(fit.tok_s)]);
    rows.push(vec!["speed with full context".into(), speed(fit.tok_s_full)]);
    if let Some(run) = fit.measured {
        let memory = run.memory_bytes.map_or_else(String::new, |n| format!(" in {}", text::bytes(n)));
        rows.push(vec!["measured".into(), format!("{:.1} tokens per second{memory}", run.tok_s)]);
    }
    out::text(&text::table(&rows));
    Ok(())
}

fn catalogue(app: &App, as_json: bool) -> Result<()> {
    let best = app.model_recommend()?;
    let offers = app.catalog_fits()?;
    if as_json {
        out::json(&json!({ "recommended": best, "offers": offers }));
        return Ok(());
    }
    let row = |offer: &OfferFit| {
        let is_best = best.as_ref().is_some_and(|best| best.id == offer.id);
        let mark = if is_best { "* " } else { "  " };
        vec![format!("{mark}{}", offer.id), verdict(&offer.fit).to_owned(), offer.fit.reason.clone()]
    };
    out::text(&text::table(&offers.iter().map(row).collect::<Vec<_>>()));
    if let Some(best) = &best {
        out::line(&format!("* suits this computer best: {}", best.id));
    }
    for choice in best.iter().flat_map(|best| &best.choices) {
        let kind = match choice.kind {
            ChoiceKind::Fast => "fast",
            ChoiceKind::Balanced => "balanced",
            ChoiceKind::Best => "best",
        };
        let speed = choice.fit.tok_s.map_or_else(String::new, |n| format!(", about {n} tokens per second"));
        out::line(&format!("{kind}: {} ({}{speed})", choice.id, text::bytes(choice.bytes)));
    }
    Ok(())
}

pub fn folders(app: &App, path: Option<&str>, rm: bool, as_json: bool) -> Result<()> {
    let folders = match path {
        Some(path) if rm => {
            app.model_folder_remove(path)?;
            app.model_folders()?
        }
        Some(path) => app.model_folder_add(path)?.folders,
        None => app.model_folders()?,
    };
    if as_json {
        out::json(&json!({ "folders": folders }));
        return Ok(());
    }
    let rows = folders.into_iter().map(|folder| {
        let note = folder.error.map_or_else(|| format!("{} models", folder.models), |error| error.message);
        vec![folder.path, note]
    });
    out::text(&text::table(&rows.collect::<Vec<_>>()));
    Ok(())
}

pub fn usage(app: &App, as_json: bool) -> Result<()> {
    let usage = app.library_use()?;
    if as_json {
        out::json(&usage);
        return Ok(());
    }
    let rows = usage.models.iter().map(|model| {
        let made = if model.made_bytes > 0 {
            format!("and {} of converted copies", text::bytes(model.made_bytes))
        } else {
            String::new()
        };
        vec![model.id.clone(), text::bytes(model.disk_bytes), made]
    });
    out::text(&text::table(&rows.collect::<Vec<_>>()));
    out::line(&format!("{} belong to Inglenook", text::bytes(usage.owned_bytes)));
    Ok(())
}

fn verdict(fit: &ModelFit) -> &'static str {
    match fit.verdict {
        FitVerdict::RunsWell => "runs well",
        FitVerdict::Slow => "slow",
        FitVerdict::WontFit => "won't fit",
    }
}

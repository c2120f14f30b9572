//! Whether models run here: for library entries, for files, for published models; and what past
//! runs taught.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use contract::protocol::{Backend, Kv, LoadSpec, Location, ModelRef, RunFacts};
use contract::settings::DEFAULT_CONTEXT;
use contract::types::{
    AppEvent, ChoiceKind, FitArgs, FitFacts, FitMeasured, ModelChoice, ModelFit, OfferFit, Recommendation,
    SpeedInfo,
};
use contract::{CatalogOffer, Error, ErrorKind, Result, STARTER_ID};
use engine::LoadOptions;
use engine::memory_estimate::MemoryEstimate;
use inference::estimate::{
    self, DraftEstimate, EstimateBasis, GpuShare, LoadDefaults, MachineFacts as Machine, MeasuredSpeeds,
    TargetGpu, offers,
};
use inference::machine::speeds::{self, SpeedCache};
use inference::machine::{self, Recall, gpus};
use platform::memory;
use records::model_reference::find_row;
use records::model_runs::{self, RunEstimate};
use session::Session;
use weights::{SharedBytes, WeightFile};

use super::catalog;
use super::machine_facts::KnownFacts;
use crate::App;
use crate::Services;

/// After a measurement beside other programs that computed, the next one waits so long.
const BUSY_PAUSE: Duration = Duration::from_mins(2);

/// No model's name: what holds for all of them.
const ANY: &str = "";

impl App {
    /// Whether a model runs here. Where this computer's speed with its formats is not known, it is measured first, which
    /// takes about a second; not while an answer is being written.
    pub fn model_fit(&self, args: &FitArgs) -> Result<ModelFit> {
        let asked = self.asked(args)?;
        let (memory_estimate, known, id) = match (&args.id, &args.path, &args.facts) {
            (Some(id), None, None) => {
                (self.services().memory_estimate(id)?, EstimateBasis::Exactly, Some(id.as_str()))
            }
            (None, Some(path), None) => {
                (MemoryEstimate::of(&WeightFile::open(Path::new(path))?)?, EstimateBasis::Exactly, None)
            }
            (None, None, Some(facts)) => (estimate::published(facts), EstimateBasis::About, None),
            _ => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    "fit.subject",
                    "Give exactly one of id, path and facts.",
                    "Remove the others from the request.",
                ));
            }
        };
        self.learn_speeds(&memory_estimate);
        self.services().fit(&memory_estimate, known, &asked, id)
    }

    /// As `model_fit`, of a GGUF that is not here: `header` is its beginning with all of its tables, `file_len` its whole
    /// length in bytes.
    pub fn fit_of_header(&self, header: Vec<u8>, file_len: u64, args: &FitArgs) -> Result<ModelFit> {
        let file = WeightFile::from_header("the file", SharedBytes::from_vec(header), file_len)?;
        self.services().fit(&MemoryEstimate::of(&file)?, EstimateBasis::Exactly, &self.asked(args)?, None)
    }

    /// How fast this computer is with the formats of most models; measured now where it isn't known.
    pub fn machine_measure(&self) -> Result<Vec<SpeedInfo>> {
        self.measure(&speeds::USUAL)?;
        let known = self.services().machine.known().speeds.clone();
        Ok(known.formats.into_iter().map(|(format, speed)| SpeedInfo { format, gb_s: speed / 1e9 }).collect())
    }

    /// Every offer of the catalogue that something is known of, in its order.
    pub fn catalog_fits(&self) -> Result<Vec<OfferFit>> {
        self.offer_fits(&self.services().here())
    }

    fn offer_fits(&self, here: &Machine) -> Result<Vec<OfferFit>> {
        let facts = offers::facts()?;
        let usual = self.services().machine.known().defaults.clone();
        // The draft model that is chosen is of models that are here.
        let asked = LoadDefaults { draft: None, ..usual };
        let fit = |facts: &FitFacts| {
            estimate::estimate(&estimate::published(facts), EstimateBasis::About, here, &asked, None)
        };
        let offers = catalog::offers()?.iter().filter_map(|offer| Some((offer, facts.get(&offer.id)?)));
        Ok(offers
            .map(|(offer, facts)| OfferFit { id: offer.id.clone(), facts: facts.clone(), fit: fit(facts) })
            .collect())
    }

    /// The one model of the catalogue for this computer, whose speed is measured where it isn't known. None: nothing fits.
    /// What other programs use at the moment does not count.
    pub fn model_recommend(&self) -> Result<Option<Recommendation>> {
        if let Err(error) = self.measure(&speeds::USUAL) {
            tracing::info!(code = error.code(), "speeds were not measured: {error}");
        }
        let (fits, shown) = (self.steady_fits()?, self.shown_fits()?);
        let choices = offers::choices(&fits).into_iter().map(|(kind, n)| choice_of(kind, &shown[n]));
        let choices = choices.collect::<Result<Vec<ModelChoice>>>()?;
        let balanced = choices.iter().find(|it| it.kind == ChoiceKind::Balanced);
        Ok(balanced.map(|ModelChoice { id, fit, .. }| Recommendation {
            id: id.clone(),
            reason: fit.reason.clone(),
            fit: fit.clone(),
            choices: choices.clone(),
        }))
    }

    /// As `model_recommend`, by what is known already: nothing is measured.
    pub(crate) fn known_recommendation(&self) -> Result<Option<(&'static CatalogOffer, u64)>> {
        let Some(best) = self.best_offer()? else { return Ok(None) };
        let offer = catalog::offers()?.iter().find(|offer| offer.id == best.id);
        Ok(offer.map(|offer| (offer, best.facts.bytes)))
    }

    /// Fits that do not depend on what other programs do at the moment. They decide what is recommended.
    fn steady_fits(&self) -> Result<Vec<OfferFit>> {
        self.offer_fits(&self.steady_machine().0)
    }

    /// The same with the speed that was measured, where it was. They are shown.
    fn shown_fits(&self) -> Result<Vec<OfferFit>> {
        let (steady, kept) = self.steady_machine();
        let speeds = if kept.formats.is_empty() { steady.speeds } else { kept };
        self.offer_fits(&Machine { speeds, ..steady })
    }

    fn steady_machine(&self) -> (Machine, MeasuredSpeeds) {
        let services = self.services();
        let (kept, n_cores) = {
            let known = services.machine.known();
            (known.kept.clone(), known.n_cores)
        };
        (offers::steady(services.here(), &kept, n_cores), kept)
    }

    fn best_offer(&self) -> Result<Option<OfferFit>> {
        let fits = self.steady_fits()?;
        let best = offers::best(fits.iter().map(|it| (it.id.as_str(), &it.facts, it.fit.clone())));
        let id = best.map(|(id, _)| id.to_owned());
        Ok(fits.into_iter().find(|it| Some(&it.id) == id.as_ref()))
    }

    /// What the caller says, else the model's own settings, else those for all.
    fn asked(&self, args: &FitArgs) -> Result<LoadDefaults> {
        let usual = match &args.id {
            Some(id) => self.load_defaults(&self.load_spec_of(id)?),
            None => self.services().machine.known().defaults.clone(),
        };
        let kv = match &args.kv {
            None => usual.kv,
            Some(name) => name.parse().map_err(|_| {
                let message = format!("\"{name}\" is not a KV cache precision.");
                let remedy =
                    "Choose f32, f16, q8_0 or q4_0, or one for keys and one for values such as q8_0/q4_0.";
                Error::input("fit.kv", message, remedy)
            })?,
        };
        let draft = usual.draft.filter(|_| args.facts.is_none());
        Ok(LoadDefaults { context: args.context.unwrap_or(usual.context), kv, draft, ..usual })
    }

    /// Applies the load defaults: the settings, overridden by flags.
    pub(crate) fn apply_load_defaults(&self) {
        // a setting that keeps models from loading must not keep the program from opening
        if let Err(error) = self.try_apply_load_defaults() {
            tracing::warn!(
                code = error.code(),
                "estimating which models fit with the default settings: {error}"
            );
        }
    }

    fn try_apply_load_defaults(&self) -> Result<()> {
        let load = self.load_spec_of(ANY)?;
        let machine = machine::prepare(&*self.ctx().io, &*self.ctx().clock, &load.machine, Recall::Only)?;
        let known = SpeedCache::of(&*self.ctx().io, &self.dirs().data, &machine).known();
        // Some systems do not list their cores.
        let n_cores = match machine.cores.n_physical() {
            0 => machine.threads,
            n => n,
        };
        let defaults = self.load_defaults(&load);
        let own = self.own_load_defaults()?;
        *self.services().machine.known() =
            KnownFacts { defaults, own, speeds: known.clone(), kept: known, n_cores };
        Ok(())
    }

    /// Applies the settings that single models are loaded with.
    pub(crate) fn apply_own_load_defaults(&self) -> Result<()> {
        let own = self.own_load_defaults()?;
        self.services().machine.known().own = own;
        Ok(())
    }

    /// Returns how each model is loaded that has its own settings, or drafts for the others, by id. Leaves out models that
    /// can't be loaded with them: loading reports why.
    fn own_load_defaults(&self) -> Result<HashMap<String, LoadDefaults>> {
        let rows = self.store().models()?;
        let draft = self.load_spec_of(ANY).ok().and_then(|load| load.draft).map(|draft| draft.id);
        let mut own = HashMap::new();
        for id in rows.into_iter().map(|row| row.id).chain([STARTER_ID.to_owned()]) {
            if (draft.as_ref() == Some(&id) || !self.model_overrides(&id)?.is_empty())
                && let Ok(load) = self.load_spec_of(&id)
            {
                own.insert(id, self.load_defaults(&load));
            }
        }
        Ok(own)
    }

    fn load_defaults(&self, load: &LoadSpec) -> LoadDefaults {
        let context = load.context.and_then(|n| u32::try_from(n).ok()).unwrap_or(DEFAULT_CONTEXT);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let gpu_share = match (load.backend, load.gpus.layers) {
            (Backend::Cpu | Backend::Scalar, _) => GpuShare::Nothing,
            (Backend::Auto, n) => GpuShare::IfFaster(n.map(count)),
            (Backend::Gpu, None) => GpuShare::Fitting,
            (Backend::Gpu, Some(n)) => GpuShare::Layers(count(n)),
        };
        let draft = load.draft.as_ref().and_then(|draft| self.draft_estimate(draft));
        LoadDefaults { context, kv: load.kv, gpu_share, gpu_limit: load.gpus.memory, draft }
    }

    /// What is kept of a draft model, else what its file says. None: it can't be read, which loading says.
    fn draft_estimate(&self, draft: &ModelRef) -> Option<DraftEstimate> {
        let row = self.store().models().ok()?.into_iter().find(|row| row.id == draft.id);
        let kept = row.and_then(|row| {
            let sizes = serde_json::from_str(row.sizes.as_deref()?).ok()?;
            Some(DraftEstimate::new(&row.architecture, sizes))
        });
        let open =
            || inference::guarded(|| DraftEstimate::of(&inference::model_file::open(&draft.location)?));
        kept.or_else(|| open().ok())
    }

    /// Measures the formats of one model. A failure is not reported: the estimate then has no
    /// speed.
    fn learn_speeds(&self, memory_estimate: &MemoryEstimate) {
        let formats: Vec<&str> = memory_estimate.read.keys().map(String::as_str).collect();
        if let Err(error) = self.measure(&formats) {
            tracing::info!(code = error.code(), "speeds were not measured: {error}");
        }
    }

    /// Errors: an answer is being written, no memory.
    fn measure(&self, formats: &[&str]) -> Result<()> {
        let services = self.services();
        let (io, clock) = (&*services.ctx.io, &*services.ctx.clock);
        let mut last_busy =
            services.machine.measuring.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let load = self.load_spec_of(ANY)?;
        let machine = machine::prepare(io, clock, &load.machine, Recall::Remember)?;
        let speeds = SpeedCache::of(io, &self.dirs().data, &machine);
        let unknown = speeds.unknown(formats.iter().copied());
        let mut estimated = services.machine.known().speeds.clone();
        let was_busy = last_busy.is_some_and(|at| clock.monotonic().saturating_sub(at) < BUSY_PAUSE)
            && unknown.iter().all(|format| estimated.formats.contains_key(*format));
        if !unknown.is_empty() && !was_busy {
            if services.turns.n_open() > 0 {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "fit.busy",
                    "An answer is being written, which would distort the measurement.",
                    "Try again when it is done.",
                ));
            }
            let mut options = LoadOptions::default();
            machine.apply(&mut options);
            let measured = speeds.learn(&unknown, &options, clock)?;
            *last_busy = (!measured.is_quiet).then(|| clock.monotonic());
            estimated = measured.speeds;
        }
        let kept = speeds.known();
        if !kept.formats.is_empty() {
            estimated.beside = kept.beside;
        }
        estimated.formats.extend(kept.formats.clone());
        estimated.cached.extend(kept.cached.clone());
        let differs = {
            let mut known = services.machine.known();
            known.kept = kept;
            std::mem::replace(&mut known.speeds, estimated.clone()) != estimated
        };
        if differs {
            services.publish_entries();
        }
        Ok(())
    }
}

impl Services {
    /// What this computer has now.
    pub(crate) fn here(&self) -> Machine {
        let (speeds, asked) = {
            let known = self.machine.known();
            (known.speeds.clone(), known.defaults.clone())
        };
        let gpu = match asked.gpu_share {
            GpuShare::Nothing => None,
            GpuShare::IfFaster(_) => gpus::remembered(&*self.ctx.io, &self.ctx.dirs.data),
            GpuShare::Fitting | GpuShare::Layers(_) => self.gpu(),
        };
        let gpu = gpu.map(|(name, room)| TargetGpu {
            name,
            memory_bytes: room.into_iter().chain(asked.gpu_limit).min(),
        });
        Machine { free_bytes: memory::free_bytes(), total_bytes: memory::total_bytes(), speeds, gpu }
    }

    /// The GPU that would be used, and how much of it a model may take; drivers are
    /// queried once.
    fn gpu(&self) -> Option<(String, Option<u64>)> {
        let first = self.machine.gpu.get_or_init(|| kernels::gpu::adapters().into_iter().next());
        first.as_ref().map(|info| (info.name.clone(), gpus::room(info, None)))
    }

    /// `id`: whose runs count.
    fn fit(
        &self,
        memory_estimate: &MemoryEstimate,
        known: EstimateBasis,
        asked: &LoadDefaults,
        id: Option<&str>,
    ) -> Result<ModelFit> {
        let here = self.here();
        let run = id.map(|id| best_run(&self.store(), id, asked.kv)).transpose()?.flatten();
        Ok(estimate::estimate(memory_estimate, known, &here, asked, run))
    }

    /// Of an entry of the library: kept ones, else the file's.
    fn memory_estimate(&self, id: &str) -> Result<MemoryEstimate> {
        if id == contract::STARTER_ID {
            return Ok(MemoryEstimate::of(&inference::model_file::open(&Location::BuiltIn)?)?);
        }
        let row = find_row(&self.store().models()?, id).cloned();
        let row = row.ok_or_else(|| {
            let message = format!("There is no model \"{id}\" in the library.");
            Error::not_found("model.unknown", message, "See `nook models list`.")
        })?;
        let kept = row.sizes.and_then(|json| serde_json::from_str(&json).ok());
        match kept {
            Some(memory_estimate) => Ok(memory_estimate),
            None => Ok(MemoryEstimate::of(&WeightFile::open(Path::new(&row.path))?)?),
        }
    }

    /// Records a finished run: the best one of each model is kept beside its estimate.
    pub(crate) fn keep_run(&self, ran: &RunFacts) {
        if !model_runs::is_telling(ran) {
            return;
        }
        let Ok(memory_estimate) = self.memory_estimate(&ran.model) else { return };
        let (speeds, draft) = {
            let known = self.machine.known();
            (known.speeds.clone(), known.load_of(&ran.model).draft)
        };
        let kv = estimate::kv_name(ran.kv);
        let estimate = || RunEstimate {
            // half of the answer stood before the token that took its mean time
            tok_s: estimate::tok_s(
                &memory_estimate,
                &speeds,
                ran.kv,
                ran.tokens.saturating_sub(ran.generated / 2),
            ),
            bytes: estimate::memory_at(&memory_estimate, draft.as_ref(), ran.tokens, ran.kv),
        };
        let mut store = self.store();
        let before = store.model_run(&ran.model, &kv).ok().flatten();
        let now_ms = self.ctx.clock.now_utc_ms();
        if let Some(row) = model_runs::better_run(before, ran, (kv, now_ms), estimate)
            && let Err(error) = store.put_model_run(&row)
        {
            tracing::warn!(code = error.code(), "what a run took was not kept: {error}");
        }
    }
}

fn choice_of(kind: ChoiceKind, offer: &OfferFit) -> Result<ModelChoice> {
    let known = catalog::offers()?.iter().find(|it| it.id == offer.id);
    Ok(ModelChoice {
        kind,
        id: offer.id.clone(),
        name: known.map_or_else(|| offer.id.clone(), |it| it.name.clone()),
        bytes: offer.facts.bytes,
        fit: offer.fit.clone(),
    })
}

fn best_run(session: &Session, id: &str, kv: Kv) -> Result<Option<FitMeasured>> {
    Ok(session.model_run(id, &estimate::kv_name(kv))?.map(model_runs::measured))
}

impl Services {
    /// Publishes all models, whose estimates have changed.
    pub(crate) fn publish_entries(&self) {
        match self.model_entries() {
            Ok(models) => {
                models.into_iter().for_each(|model| self.ctx.events.publish(AppEvent::ModelChanged { model }))
            }
            // A damaged database must not keep a setting from changing.
            Err(error) => tracing::warn!(code = error.code(), "new estimates are not shown: {error}"),
        }
    }

    /// The fit of a library entry, from its stored memory estimate. None: there is none.
    pub(crate) fn entry_fit(
        &self,
        id: &str,
        memory_estimate: Option<&str>,
        here: &Machine,
    ) -> Option<Box<ModelFit>> {
        let memory_estimate: MemoryEstimate = serde_json::from_str(memory_estimate?).ok()?;
        let asked = self.machine.known().load_of(id);
        let run = best_run(&self.store(), id, asked.kv).ok().flatten();
        Some(Box::new(estimate::estimate(&memory_estimate, EstimateBasis::Exactly, here, &asked, run)))
    }
}

//! Whether models run here: for entries of the library, for files, for what is published; and what runs taught.

use std::path::Path;

use engine::LoadOptions;
use engine::memory_estimate::MemoryEstimate;
use session::ModelRunRow;
use weights::{SharedBytes, WeightFile};

use crate::catalog;
use crate::error::{Error, ErrorKind, Result};
use crate::estimate::{self, Asked, Card, Here, Known, OnCard, offers};
use crate::machine::speeds::{self, Speeds};
use crate::machine::{self, Recall, cards};
use crate::settings::DEFAULT_CONTEXT;
use crate::types::{AppEvent, FitArgs, FitFacts, FitMeasured, ModelFit, OfferFit, Recommendation, SpeedInfo};
use crate::worker::protocol::{Backend, Kv, LoadSpec, Location, Ran};
use crate::{App, Shared, State, resident, starter};

/// Runs of fewer tokens say little about speed.
const LEAST_TOKENS: u32 = 16;

/// No model's name: what holds for all of them.
const ANY: &str = "";

impl App {
    /// Whether a model runs here. Where this computer's speed with its formats is not known, it is measured first, which
    /// takes about a second; not while an answer is being written.
    pub fn model_fit(&self, args: &FitArgs) -> Result<ModelFit> {
        let asked = self.asked(args)?;
        let (sizes, known, id) = match (&args.id, &args.path, &args.facts) {
            (Some(id), None, None) => (self.shared().sizes(id)?, Known::Exactly, Some(id.as_str())),
            (None, Some(path), None) => {
                (MemoryEstimate::of(&WeightFile::open(Path::new(path))?)?, Known::Exactly, None)
            }
            (None, None, Some(facts)) => (estimate::published(facts), Known::About, None),
            _ => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    "fit.subject",
                    "Give exactly one of id, path and facts.",
                    "Remove the others from the request.",
                ));
            }
        };
        self.learn_speeds(&sizes);
        self.shared().fit(&sizes, known, asked, id)
    }

    /// As `model_fit`, of a GGUF that is not here: `header` is its beginning with all of its tables, `file_len` its whole
    /// length in bytes.
    pub fn fit_of_header(&self, header: Vec<u8>, file_len: u64, args: &FitArgs) -> Result<ModelFit> {
        let file = WeightFile::from_header("the file", SharedBytes::from_vec(header), file_len)?;
        self.shared().fit(&MemoryEstimate::of(&file)?, Known::Exactly, self.asked(args)?, None)
    }

    /// How fast this computer is with the formats of most models; measured now where it isn't known.
    pub fn machine_measure(&self) -> Result<Vec<SpeedInfo>> {
        self.measure(&speeds::USUAL)?;
        let known = self.shared().state().speeds.clone();
        Ok(known.formats.into_iter().map(|(format, speed)| SpeedInfo { format, gb_s: speed / 1e9 }).collect())
    }

    /// Every offer of the catalogue that something is known of, in its order.
    pub fn catalog_fits(&self) -> Result<Vec<OfferFit>> {
        let (facts, here) = (offers::facts()?, self.shared().here());
        let asked = self.shared().state().asked;
        let fit = |facts: &FitFacts| {
            estimate::estimate(&estimate::published(facts), Known::About, &here, asked, None)
        };
        let offers = catalog::offers()?.iter().filter_map(|offer| Some((offer, facts.get(&offer.id)?)));
        Ok(offers
            .map(|(offer, facts)| OfferFit { id: offer.id.clone(), facts: facts.clone(), fit: fit(facts) })
            .collect())
    }

    /// The one model of the catalogue for this computer, whose speed is measured where it isn't known. None: nothing fits.
    pub fn model_recommend(&self) -> Result<Option<Recommendation>> {
        if let Err(error) = self.measure(&speeds::USUAL) {
            tracing::info!(code = error.code(), "speeds were not measured: {error}");
        }
        let fits = self.catalog_fits()?;
        let best = offers::best(fits.iter().map(|it| (it.id.as_str(), &it.facts, it.fit.clone())));
        Ok(best.map(|(id, fit)| Recommendation { id: id.into(), reason: fit.reason.clone(), fit }))
    }

    /// What the caller says, else the model's own settings, else those for all.
    fn asked(&self, args: &FitArgs) -> Result<Asked> {
        let usual = match &args.id {
            Some(id) => asked_of(&self.load_spec_of(id)?),
            None => self.shared().state().asked,
        };
        let kv = match &args.kv {
            None => usual.kv,
            Some(name) => serde_json::from_value(name.as_str().into()).map_err(|_| {
                let message = format!("\"{name}\" is not a KV cache precision.");
                Error::input("fit.kv", message, "Choose f32, f16, q8_0 or q4_0.")
            })?,
        };
        Ok(Asked { context: args.context.unwrap_or(usual.context), kv, ..usual })
    }

    /// What is asked for where nobody says: the settings, or flags over them.
    pub(crate) fn apply_asked(&self) {
        // a setting that keeps models from loading must not keep the program from opening
        if let Err(error) = self.try_apply_asked() {
            tracing::warn!(code = error.code(), "whether models fit is told for the usual settings: {error}");
        }
    }

    fn try_apply_asked(&self) -> Result<()> {
        let load = self.load_spec_of(ANY)?;
        let machine =
            machine::prepare(&*self.shared().io, &*self.shared().clock, &load.machine, Recall::Only)?;
        let known = Speeds::of(&*self.shared().io, &self.dirs().data, &machine).known();
        let mut state = self.shared().state();
        state.asked = asked_of(&load);
        state.speeds = known;
        Ok(())
    }

    /// Formats of one model; nobody is told where that can't be done: the estimate has no speed then.
    fn learn_speeds(&self, sizes: &MemoryEstimate) {
        let formats: Vec<&str> = sizes.read.keys().map(String::as_str).collect();
        if let Err(error) = self.measure(&formats) {
            tracing::info!(code = error.code(), "speeds were not measured: {error}");
        }
    }

    /// Errors: an answer is being written, no memory.
    fn measure(&self, formats: &[&str]) -> Result<()> {
        let shared = self.shared();
        let _alone = shared.measuring.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let load = self.load_spec_of(ANY)?;
        let machine = machine::prepare(&*shared.io, &*shared.clock, &load.machine, Recall::Remember)?;
        let speeds = Speeds::of(&*shared.io, &self.dirs().data, &machine);
        let unknown = speeds.unknown(formats.iter().copied());
        if !unknown.is_empty() {
            if shared.state().n_open() > 0 {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "fit.busy",
                    "An answer is being written, which would distort the measurement.",
                    "Try again when it is done.",
                ));
            }
            let mut options = LoadOptions::default();
            machine.apply(&mut options);
            speeds.learn(&unknown, &options, &*shared.clock)?;
        }
        let known = speeds.known();
        let differs = std::mem::replace(&mut shared.state().speeds, known.clone()) != known;
        if differs {
            for model in shared.model_entries()? {
                shared.tell(AppEvent::ModelChanged { model });
            }
        }
        Ok(())
    }
}

impl Shared {
    /// What this computer has now.
    pub(crate) fn here(&self) -> Here {
        let (speeds, asked) = {
            let state = self.state();
            (state.speeds.clone(), state.asked)
        };
        let card = match asked.on_card {
            OnCard::Nothing => None,
            OnCard::IfFaster(_) => cards::remembered(&*self.io, &self.data),
            OnCard::Fitting | OnCard::Layers(_) => self.card(),
        };
        let card = card
            .map(|(name, room)| Card { name, memory_bytes: room.into_iter().chain(asked.card_limit).min() });
        Here { free_bytes: resident::free_bytes(), total_bytes: resident::total_bytes(), speeds, card }
    }

    /// The graphics card that would be asked, and what a model may have of it; drivers are looked for once.
    fn card(&self) -> Option<(String, Option<u64>)> {
        let first = self.card.get_or_init(|| kernels::gpu::adapters().into_iter().next());
        first.as_ref().map(|info| (info.name.clone(), cards::room(info, None)))
    }

    /// `id`: whose runs count.
    fn fit(&self, sizes: &MemoryEstimate, known: Known, asked: Asked, id: Option<&str>) -> Result<ModelFit> {
        let here = self.here();
        let run = id.map(|id| self.state().run(id, asked.kv)).transpose()?.flatten();
        Ok(estimate::estimate(sizes, known, &here, asked, run))
    }

    /// Of an entry of the library: kept ones, else the file's.
    fn sizes(&self, id: &str) -> Result<MemoryEstimate> {
        if id == starter::ID {
            return Ok(MemoryEstimate::of(&crate::worker::open(&Location::BuiltIn)?)?);
        }
        let row = self.state().session.models()?.into_iter().find(|row| row.id == id);
        let row = row.ok_or_else(|| {
            let message = format!("There is no model \"{id}\" in the library.");
            Error::not_found("model.unknown", message, "See `nook models list`.")
        })?;
        let kept = row.sizes.and_then(|json| serde_json::from_str(&json).ok());
        match kept {
            Some(sizes) => Ok(sizes),
            None => Ok(MemoryEstimate::of(&WeightFile::open(Path::new(&row.path))?)?),
        }
    }

    /// A run has ended: the best one of each model is kept beside what was foretold for it.
    pub(crate) fn ran(&self, ran: &Ran) {
        if ran.generated < LEAST_TOKENS || ran.tok_s <= 0.0 {
            return;
        }
        let Ok(sizes) = self.sizes(&ran.model) else { return };
        let mut state = self.state();
        let before = state.session.model_run(&ran.model, &estimate::kv_name(ran.kv)).ok().flatten();
        let is_better = before.as_ref().is_none_or(|before| ran.tok_s > before.tok_s);
        let is_first_memory =
            ran.memory_bytes.is_some() && before.as_ref().is_none_or(|it| it.memory_bytes.is_none());
        if !is_better && !is_first_memory {
            return;
        }
        let foretold = |depth| estimate::tok_s(&sizes, &state.speeds, ran.kv, depth);
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut row = before.unwrap_or_else(|| ModelRunRow {
            model: ran.model.clone(),
            kv: estimate::kv_name(ran.kv),
            ..ModelRunRow::default()
        });
        row.at_ms = self.clock.now_utc_ms();
        if is_better {
            row.tok_s = ran.tok_s;
            // half of the answer stood before the token that took its mean time
            row.foretold_tok_s = foretold(ran.tokens.saturating_sub(ran.generated / 2));
        }
        if is_first_memory || row.memory_bytes.is_none() {
            row.memory_bytes = ran.memory_bytes.map(signed);
            row.foretold_bytes = signed(estimate::memory_at(&sizes, ran.tokens, ran.kv));
            row.tokens = ran.tokens;
        }
        if let Err(error) = state.session.put_model_run(&row) {
            tracing::warn!(code = error.code(), "what a run took was not kept: {error}");
        }
    }
}

fn asked_of(load: &LoadSpec) -> Asked {
    let context = load.context.and_then(|n| u32::try_from(n).ok()).unwrap_or(DEFAULT_CONTEXT);
    let on_card = match (load.backend, load.cards.layers) {
        (Backend::Cpu | Backend::Scalar, _) => OnCard::Nothing,
        (Backend::Auto, n) => OnCard::IfFaster(n.map(|n| u32::try_from(n).unwrap_or(u32::MAX))),
        (Backend::Gpu, None) => OnCard::Fitting,
        (Backend::Gpu, Some(n)) => OnCard::Layers(u32::try_from(n).unwrap_or(u32::MAX)),
    };
    Asked { context, kv: load.kv, on_card, card_limit: load.cards.memory }
}

impl State {
    fn run(&self, id: &str, kv: Kv) -> Result<Option<FitMeasured>> {
        let row = self.session.model_run(id, &estimate::kv_name(kv))?;
        Ok(row.map(|row| FitMeasured {
            tok_s: row.tok_s,
            estimated_tok_s: row.foretold_tok_s,
            memory_bytes: row.memory_bytes.and_then(|n| u64::try_from(n).ok()),
            estimated_memory_bytes: u64::try_from(row.foretold_bytes).unwrap_or(0),
            tokens: row.tokens,
            at_ms: row.at_ms,
        }))
    }

    /// The fit of an entry, from what is kept of it. None: nothing is.
    pub(crate) fn entry_fit(&self, id: &str, sizes: Option<&str>, here: &Here) -> Option<Box<ModelFit>> {
        let sizes: MemoryEstimate = serde_json::from_str(sizes?).ok()?;
        let run = self.run(id, self.asked.kv).ok().flatten();
        Some(Box::new(estimate::estimate(&sizes, Known::Exactly, here, self.asked, run)))
    }
}

//! Text embeddings, and scores of passages, by one model on a separate thread, in parallel to answers. It stays in memory
//! while in use, and is evicted at once if another model needs the memory.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use engine::{GpuHealth, KvDType, LoadOptions, Model};
use io::{Clock, RealIo};

use super::model::{devices, gpu_notices};
use super::{Worker, guarded, loading};
use crate::machine::gpus;
use crate::machine::{self, Recall};
use crate::memory_budget;
use contract::protocol::{
    Backend, EmbedAs, EmbedInput, EmbedRequest, EmbeddingBatch, LoadSpec, ModelRef, PassageScores,
    RankRequest, WorkerEvent,
};
use contract::{Error, ErrorKind, GpuRequest, GpuSpread, Result};

/// How long a model stays that is asked nothing.
const STAYS: Duration = Duration::from_secs(300);

/// Tokens that a text may have: several pages. More would make the vectors of what looks ahead costly.
const MAX_TOKENS: usize = 2048;

/// Requests for vectors that wait at once: far more than callers have threads.
const MAX_OPEN: usize = 1024;

fn too_many() -> Error {
    Error::new(
        ErrorKind::Limit,
        "request.queue_full",
        "Too many requests for text embeddings are waiting.",
        "Wait a moment and try again.",
    )
}

/// Work for the thread.
pub enum TextJob {
    Embed(EmbedRequest),
    Rank(RankRequest),
}

/// What came of a job.
enum TextOutcome {
    Embedded(Result<EmbeddingBatch>),
    Ranked(Result<PassageScores>),
}

/// The kind of a job, to say that it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextJobKind {
    Embed,
    Rank,
}

impl TextJob {
    fn kind(&self) -> TextJobKind {
        match self {
            Self::Embed(_) => TextJobKind::Embed,
            Self::Rank(_) => TextJobKind::Rank,
        }
    }

    fn model(&self) -> (&ModelRef, &LoadSpec) {
        match self {
            Self::Embed(EmbedRequest { model, load, .. }) | Self::Rank(RankRequest { model, load, .. }) => {
                (model, load)
            }
        }
    }
}

impl TextJobKind {
    fn failed(self, error: Error) -> TextOutcome {
        match self {
            Self::Embed => TextOutcome::Embedded(Err(error)),
            Self::Rank => TextOutcome::Ranked(Err(error)),
        }
    }
}

impl TextOutcome {
    fn event(self, request: u64) -> WorkerEvent {
        match self {
            Self::Embedded(outcome) => WorkerEvent::EmbeddingBatch { request, outcome },
            Self::Ranked(outcome) => WorkerEvent::PassageScores { request, outcome },
        }
    }
}

/// The thread, and what it has been asked.
pub struct Embedding {
    jobs: SyncSender<(u64, TextJob)>,
    heard: Receiver<(u64, TextOutcome)>,
    /// The model that was asked last, by its id.
    model: String,
    /// Requests without an answer.
    open: Vec<(u64, TextJobKind)>,
}

impl Embedding {
    fn begin(clock: Arc<dyn Clock>, gpu_health: GpuHealth) -> Result<Self> {
        // With room for every open request neither side ever waits for the other.
        let (jobs, asked) = mpsc::sync_channel(MAX_OPEN);
        let (tell, heard) = mpsc::sync_channel(MAX_OPEN);
        let thread = std::thread::Builder::new().name("inglenook-embed".into());
        let begun = thread.spawn(move || work(&asked, &tell, (&*clock, &gpu_health)));
        begun.map_err(|error| loading::no_thread(&error))?;
        Ok(Self { jobs, heard, model: String::new(), open: Vec::new() })
    }
}

impl Worker<'_> {
    pub fn embed(&mut self, request: u64, job: TextJob) {
        let kind = job.kind();
        let embedding = match self.embedding.take() {
            Some(embedding) => Ok(embedding),
            None => Embedding::begin(self.clock.clone(), self.gpu_health.clone()),
        };
        let sent = embedding.and_then(|mut embedding| {
            if embedding.open.len() >= MAX_OPEN {
                self.embedding = Some(embedding);
                self.not_embedded(vec![(request, kind)], &too_many());
                return Ok(());
            }
            embedding.model.clone_from(&job.model().0.id);
            embedding.open.push((request, kind));
            let sent = embedding.jobs.send((request, job));
            self.embedding = Some(embedding);
            sent.map_err(|_| ended())
        });
        if let Err(error) = sent {
            let open = self.embedding.take().map_or(vec![(request, kind)], |embedding| embedding.open);
            self.not_embedded(open, &error);
        }
    }

    /// What has come of it since the last look.
    pub fn hear_embedded(&mut self) {
        while let Some(embedding) = &mut self.embedding {
            match embedding.heard.try_recv() {
                Ok((request, outcome)) => {
                    embedding.open.retain(|(open, _)| *open != request);
                    self.say(outcome.event(request));
                }
                Err(mpsc::TryRecvError::Empty) => return,
                Err(mpsc::TryRecvError::Disconnected) => {
                    let open = self.embedding.take().map_or(Vec::new(), |embedding| embedding.open);
                    self.not_embedded(open, &ended());
                }
            }
        }
    }

    pub fn is_embedding(&self) -> bool {
        self.embedding.as_ref().is_some_and(|embedding| !embedding.open.is_empty())
    }

    /// The model goes, unless it is at work. Whether there was one.
    pub fn let_go_of_embedding(&mut self) -> bool {
        self.embedding.take_if(|embedding| embedding.open.is_empty()).is_some()
    }

    /// A model was taken off the library.
    pub fn unwant_embedding(&mut self, id: &str) {
        if let Some(embedding) = self.embedding.take_if(|embedding| embedding.model == id) {
            self.not_embedded(embedding.open, &loading::removed());
        }
    }

    fn not_embedded(&mut self, open: Vec<(u64, TextJobKind)>, error: &Error) {
        for (request, kind) in open {
            self.say(kind.failed(error.clone()).event(request));
        }
    }
}

/// A model that makes vectors or scores.
struct Embedder {
    reference: ModelRef,
    load: LoadSpec,
    model: Model,
    /// What the user should know and wasn't told.
    notices: Vec<Error>,
}

/// Runs until the requests end.
fn work(
    asked: &Receiver<(u64, TextJob)>,
    tell: &SyncSender<(u64, TextOutcome)>,
    session: (&dyn Clock, &GpuHealth),
) {
    let mut kept: Option<Embedder> = None;
    loop {
        let job = match &kept {
            None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => asked.recv_timeout(STAYS),
        };
        let (request, job) = match job {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) => {
                kept = None;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let (model, load) = job.model();
        // taken out while it works: one that a panic left half done is not used again
        let ready = kept.take().filter(|it| it.reference == *model && it.load == *load);
        let outcome = guarded(|| {
            let mut embedder = match ready {
                Some(embedder) => embedder,
                None => Embedder::load(model.clone(), load.clone(), session)?,
            };
            let outcome = embedder.run(&job);
            Ok((embedder, outcome))
        });
        let outcome = match outcome {
            Ok((embedder, outcome)) => {
                kept = Some(embedder);
                outcome
            }
            Err(error) => job.kind().failed(error),
        };
        if tell.send((request, outcome)).is_err() {
            return;
        }
    }
}

impl Embedder {
    fn load(
        reference: ModelRef,
        load: LoadSpec,
        (clock, gpu_health): (&dyn Clock, &GpuHealth),
    ) -> Result<Self> {
        let file = crate::model_file::open(&reference.location)?;
        let mut options = LoadOptions {
            devices: devices(&load),
            resident: memory_budget::budget(load.resident, file.len_bytes()),
            small_pages: true,
            // what chats may hold says nothing of texts
            ctx: Some(MAX_TOKENS),
            max_sequences: 1,
            rewind_bytes: 0,
            // a text is short: exact keys and values cost little
            kv: KvDType::F32.both(),
            memory: load.memory.or_else(platform::memory::free_bytes),
            gpu_health: gpu_health.clone(),
            ..LoadOptions::default()
        };
        let refused = match load.backend {
            Backend::Auto | Backend::Cpu | Backend::Gpu => {
                let machine = machine::prepare(&RealIo, clock, &load.machine, Recall::Remember)?;
                machine.apply(&mut options);
                machine.place_memory()
            }
            Backend::Scalar => None,
        };
        // texts run one after the other: a second GPU with the whole model would be idle
        let asked = GpuRequest { spread: GpuSpread::Layers, ..load.gpus.clone() };
        let cards = gpus::GpuPlanner::of(&load.machine, &asked, clock);
        let placed = cards.place(load.backend, &file, &mut options)?;
        let loaded = Model::load(Arc::new(file), &options, &mut |_| {});
        cards.keep(&placed, loaded.is_ok());
        let mut model = loaded?;
        let notices =
            refused.into_iter().chain(placed.notice).chain(gpu_notices::loaded(&mut model)).collect();
        Ok(Self { reference, load, model, notices })
    }

    fn run(&mut self, job: &TextJob) -> TextOutcome {
        match job {
            TextJob::Embed(embed) => TextOutcome::Embedded(self.embed(embed.kind, &embed.texts)),
            TextJob::Rank(rank) => TextOutcome::Ranked(self.rank(&rank.query, &rank.passages)),
        }
    }

    fn rank(&mut self, query: &str, passages: &[String]) -> Result<PassageScores> {
        self.model.check_ranks()?;
        let mut ranked = PassageScores::default();
        for (index, passage) in (0..).zip(passages) {
            let score = self.model.rank(query, passage)?;
            ranked.scores.push(score.score);
            ranked.tokens = ranked.tokens.saturating_add(u32::try_from(score.n_tokens).unwrap_or(u32::MAX));
            if score.is_cut {
                ranked.cut.push(index);
            }
        }
        ranked.notices = self.take_notices();
        Ok(ranked)
    }

    /// What the user should know of loading and running.
    fn take_notices(&mut self) -> Vec<Error> {
        let mut notices = std::mem::take(&mut self.notices);
        let incidents = std::iter::from_fn(|| self.model.take_gpu_incident());
        notices.extend(incidents.map(|incident| gpu_notices::told(&incident)));
        notices
    }

    fn embed(&mut self, kind: EmbedAs, texts: &[EmbedInput]) -> Result<EmbeddingBatch> {
        self.model.check_embeds()?;
        let mut embedded = EmbeddingBatch::default();
        let before = match kind {
            EmbedAs::Text => "",
            EmbedAs::Question => self.model.embedding_prefixes().question,
            EmbedAs::Passage => self.model.embedding_prefixes().passage,
        };
        for text in texts {
            let ids = match text {
                EmbedInput::Text(text) => self.model.embedding_tokens(&format!("{before}{text}"))?,
                EmbedInput::Ids(ids) => ids.clone(),
            };
            embedded.tokens = embedded.tokens.saturating_add(u32::try_from(ids.len()).unwrap_or(u32::MAX));
            embedded.vectors.push(self.model.embed(&ids)?);
        }
        embedded.notices = self.take_notices();
        Ok(embedded)
    }
}

fn ended() -> Error {
    Error::bug("the thread that makes vectors ended without a word")
}

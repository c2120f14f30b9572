//! Text embeddings by one model on a separate thread, in parallel to answers. It stays in memory
//! while in use, and is evicted at once if another model needs the memory.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use engine::{GpuHealth, LoadOptions, Model};
use io::{Clock, RealIo};

use super::model::{devices, gpu_notices};
use super::{Worker, guarded, loading};
use crate::machine::gpus;
use crate::machine::{self, Recall};
use crate::memory_budget;
use contract::protocol::{Backend, EmbedAs, EmbedRequest, EmbeddingBatch, LoadSpec, ModelRef, WorkerEvent};
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

/// The thread, and what it has been asked.
pub struct Embedding {
    jobs: SyncSender<(u64, EmbedRequest)>,
    heard: Receiver<(u64, Result<EmbeddingBatch>)>,
    /// The model that was asked last, by its id.
    model: String,
    /// Requests without an answer.
    open: Vec<u64>,
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
    pub fn embed(&mut self, request: u64, embed: EmbedRequest) {
        let embedding = match self.embedding.take() {
            Some(embedding) => Ok(embedding),
            None => Embedding::begin(self.clock.clone(), self.gpu_health.clone()),
        };
        let sent = embedding.and_then(|mut embedding| {
            if embedding.open.len() >= MAX_OPEN {
                self.embedding = Some(embedding);
                self.not_embedded(vec![request], &too_many());
                return Ok(());
            }
            embedding.model.clone_from(&embed.model.id);
            embedding.open.push(request);
            let sent = embedding.jobs.send((request, embed));
            self.embedding = Some(embedding);
            sent.map_err(|_| ended())
        });
        if let Err(error) = sent {
            let open = self.embedding.take().map_or(vec![request], |embedding| embedding.open);
            self.not_embedded(open, &error);
        }
    }

    /// What has come of it since the last look.
    pub fn hear_embedded(&mut self) {
        while let Some(embedding) = &mut self.embedding {
            match embedding.heard.try_recv() {
                Ok((request, outcome)) => {
                    embedding.open.retain(|open| *open != request);
                    self.say(WorkerEvent::EmbeddingBatch { request, outcome });
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

    fn not_embedded(&mut self, open: Vec<u64>, error: &Error) {
        for request in open {
            self.say(WorkerEvent::EmbeddingBatch { request, outcome: Err(error.clone()) });
        }
    }
}

/// A model that makes vectors.
struct Embedder {
    reference: ModelRef,
    load: LoadSpec,
    model: Model,
    /// What the user should know and wasn't told.
    notices: Vec<Error>,
}

/// Runs until the requests end.
fn work(
    asked: &Receiver<(u64, EmbedRequest)>,
    tell: &SyncSender<(u64, Result<EmbeddingBatch>)>,
    session: (&dyn Clock, &GpuHealth),
) {
    let mut kept: Option<Embedder> = None;
    loop {
        let job = match &kept {
            None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => asked.recv_timeout(STAYS),
        };
        let (request, embed) = match job {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) => {
                kept = None;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        // taken out while it works: one that a panic left half done is not used again
        let is_it = |it: &Embedder| it.reference == embed.model && it.load == embed.load;
        let ready = kept.take().filter(is_it);
        let outcome = guarded(|| {
            let mut embedder = match ready {
                Some(embedder) => embedder,
                None => Embedder::load(embed.model.clone(), embed.load.clone(), session)?,
            };
            let embedded = embedder.embed(embed.kind, &embed.texts);
            Ok((embedder, embedded))
        });
        let outcome = outcome.and_then(|(embedder, embedded)| {
            kept = Some(embedder);
            embedded
        });
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
            memory: load.memory.or_else(platform::memory::free_bytes),
            gpu_health: gpu_health.clone(),
            ..LoadOptions::default()
        };
        match load.backend {
            Backend::Auto | Backend::Cpu | Backend::Gpu => {
                machine::prepare(&RealIo, clock, &load.machine, Recall::Remember)?.apply(&mut options);
            }
            Backend::Scalar => {}
        }
        // texts run one after the other: a second GPU with the whole model would be idle
        let asked = GpuRequest { spread: GpuSpread::Layers, ..load.gpus.clone() };
        let cards = gpus::GpuPlanner::of(&load.machine, &asked, clock);
        let placed = cards.place(load.backend, &file, &mut options)?;
        let loaded = Model::load(Arc::new(file), &options, &mut |_| {});
        cards.keep(&placed, loaded.is_ok());
        let mut model = loaded?;
        model.check_embeds()?;
        let notices = placed.notice.into_iter().chain(gpu_notices::loaded(&mut model)).collect();
        Ok(Self { reference, load, model, notices })
    }

    fn embed(&mut self, kind: EmbedAs, texts: &[String]) -> Result<EmbeddingBatch> {
        let mut embedded = EmbeddingBatch::default();
        let before = match kind {
            EmbedAs::Text => "",
            EmbedAs::Question => self.model.embedding_prefixes().question,
            EmbedAs::Passage => self.model.embedding_prefixes().passage,
        };
        for text in texts {
            let ids = self.model.embedding_tokens(&format!("{before}{text}"))?;
            embedded.tokens = embedded.tokens.saturating_add(u32::try_from(ids.len()).unwrap_or(u32::MAX));
            embedded.vectors.push(self.model.embed(&ids)?);
        }
        embedded.notices = std::mem::take(&mut self.notices);
        let troubles = std::iter::from_fn(|| self.model.take_gpu_incident());
        embedded.notices.extend(troubles.map(|trouble| gpu_notices::told(&trouble)));
        Ok(embedded)
    }
}

fn ended() -> Error {
    Error::bug("the thread that makes vectors ended without a word")
}

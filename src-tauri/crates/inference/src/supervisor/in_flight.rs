//! Requests to a worker process that have no answer yet: enough to replay them in another process
//! without repeating events to listeners. Pure bookkeeping.

use std::collections::{BTreeMap, VecDeque};

use contract::protocol::{
    Backend, GenerateRequest, KvStats, LoadSpec, LoadState, Resume, Step, WorkerEvent, WorkerRequest,
};
use contract::{Error, ErrorKind};

/// Processes that one request may bring down before it fails.
const MAX_WORKER_ENDS: u32 = 2;

/// Everything in flight.
#[derive(Default)]
pub struct InFlight {
    /// In order of arrival.
    turns: Vec<Turn>,
    questions: BTreeMap<u64, Question>,
    /// Those of them that ask for the pages of a file, in order of arrival: the process draws one file at a time.
    files: VecDeque<u64>,
    /// In the process's memory, or on the way there.
    models: Vec<String>,
}

struct Turn {
    request: GenerateRequest,
    /// Its moment, for templates that write the date.
    asked_ms: i64,
    cancelled: bool,
    n_worker_ends: u32,
    /// Tokens of the answer so far.
    ids: Vec<u32>,
    /// What the listener has received, and what this process has sent.
    told: Counts,
    said: Counts,
}

/// Steps of a turn that come once, by kind.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    begins: usize,
    tokens: usize,
    calls: usize,
    notices: usize,
    compactions: usize,
    rests: usize,
}

/// Whether a replayed step is passed on.
enum Replay {
    Forward,
    /// It was heard before, from a process that died.
    Duplicate,
    /// It is, and nothing follows.
    Final,
}

struct Question {
    request: WorkerRequest,
    n_worker_ends: u32,
}

impl InFlight {
    /// Nothing is waited for.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty() && self.questions.is_empty()
    }

    pub fn asked(&mut self, request: &WorkerRequest, now_ms: i64) {
        match request {
            WorkerRequest::Generate(request) => self.turns.push(Turn {
                request: (**request).clone(),
                asked_ms: now_ms,
                cancelled: false,
                n_worker_ends: 0,
                ids: Vec::new(),
                told: Counts::default(),
                said: Counts::default(),
            }),
            WorkerRequest::Cancel { turn } => {
                let turn = self.turns.iter_mut().find(|it| it.request.turn == *turn);
                turn.into_iter().for_each(|turn| turn.cancelled = true);
            }
            WorkerRequest::Inspect { request: id, .. }
            | WorkerRequest::Count { request: id, .. }
            | WorkerRequest::Logprobs { request: id, .. }
            | WorkerRequest::Vocabulary { request: id, .. }
            | WorkerRequest::Embed { request: id, .. }
            | WorkerRequest::Rank { request: id, .. }
            | WorkerRequest::Fit { request: id, .. }
            | WorkerRequest::Store { request: id, .. }
            | WorkerRequest::KvStats { request: id }
            | WorkerRequest::RenderPages { request: id, .. }
            | WorkerRequest::ReadImage { request: id, .. } => {
                if matches!(request, WorkerRequest::RenderPages { .. } | WorkerRequest::ReadImage { .. }) {
                    self.files.push_back(*id);
                }
                self.questions.insert(*id, Question { request: request.clone(), n_worker_ends: 0 });
            }
            WorkerRequest::Unload { .. }
            | WorkerRequest::Forget { .. }
            | WorkerRequest::Prefetch(_)
            | WorkerRequest::Stop => {}
        }
    }

    /// The event, if it is news.
    pub fn heard(&mut self, event: WorkerEvent) -> Option<WorkerEvent> {
        match &event {
            WorkerEvent::Turn { turn, step } => {
                let at = self.turns.iter().position(|it| it.request.turn == *turn)?;
                match self.turns[at].is_news(step) {
                    Replay::Duplicate => return None,
                    Replay::Forward => {}
                    Replay::Final => _ = self.turns.remove(at),
                }
            }
            WorkerEvent::Model { id, state } => {
                self.models.retain(|it| it != id);
                match state {
                    LoadState::Loading { .. } | LoadState::Ready => self.models.push(id.clone()),
                    LoadState::Unloaded | LoadState::Failed { .. } => {}
                }
            }
            WorkerEvent::Inspected { request, .. }
            | WorkerEvent::TokenCounts { request, .. }
            | WorkerEvent::TokenAlternatives { request, .. }
            | WorkerEvent::VocabularyAnswer { request, .. }
            | WorkerEvent::EmbeddingBatch { request, .. }
            | WorkerEvent::PassageScores { request, .. }
            | WorkerEvent::PageImages { request, .. }
            | WorkerEvent::ImageInfo { request, .. }
            | WorkerEvent::FitOutcome { request, .. }
            | WorkerEvent::Stored { request, .. }
            | WorkerEvent::KvStats { request, .. } => {
                self.files.retain(|id| id != request);
                self.questions.remove(request)?;
            }
            WorkerEvent::Checkpoints(_) | WorkerEvent::RunFacts(_) | WorkerEvent::MeasuredAnswer(_) => {}
        }
        Some(event)
    }

    /// Models that a process took with it.
    pub fn models(&mut self) -> Vec<String> {
        std::mem::take(&mut self.models)
    }

    /// The process is gone: what to ask the next one, and what to tell.
    pub fn worker_ended(&mut self, error: &Error) -> (Vec<WorkerRequest>, Vec<WorkerEvent>) {
        let (mut again, mut told) = (Vec::new(), Vec::new());
        // A file that was being decoded is not tried again, and nothing else is blamed. Each end takes one file away.
        let file = self.files.pop_front().and_then(|id| self.questions.remove(&id));
        let n_blamed = u32::from(file.is_none());
        told.extend(file.and_then(|file| unanswered(file.request, error)));
        for turn in &mut self.turns {
            turn.n_worker_ends += n_blamed;
        }
        for turn in self.turns.extract_if(.., |turn| turn.n_worker_ends >= MAX_WORKER_ENDS) {
            told.push(failed(turn.request.turn, error));
        }
        for turn in &mut self.turns {
            let how = ease(&mut turn.request.load, error);
            told.push(WorkerEvent::Turn {
                turn: turn.request.turn.clone(),
                step: Step::Notice { error: restarted(error, how) },
            });
            again.extend(turn.again());
        }
        for question in self.questions.values_mut() {
            question.n_worker_ends += n_blamed;
        }
        for (_, question) in
            self.questions.extract_if(.., |_, question| question.n_worker_ends >= MAX_WORKER_ENDS)
        {
            told.extend(unanswered(question.request, error));
        }
        again.extend(self.questions.values().map(|question| question.request.clone()));
        (again, told)
    }

    /// There is no process to ask.
    pub fn fail_all(&mut self, error: &Error) -> Vec<WorkerEvent> {
        let turns = std::mem::take(&mut self.turns).into_iter();
        let mut told: Vec<_> = turns.map(|turn| failed(turn.request.turn, error)).collect();
        self.files.clear();
        let questions = std::mem::take(&mut self.questions).into_values();
        told.extend(questions.filter_map(|question| unanswered(question.request, error)));
        told
    }
}

impl Turn {
    /// Counts a step.
    fn is_news(&mut self, step: &Step) -> Replay {
        let (said, told) = match step {
            Step::Queued { .. } | Step::Loading { .. } | Step::Prefill { .. } => return Replay::Forward,
            // One that wants a summary is asked for again.
            Step::Done(_) | Step::Failed { .. } | Step::Wanting { .. } => return Replay::Final,
            Step::Began { .. } => (&mut self.said.begins, &mut self.told.begins),
            Step::Token { .. } => (&mut self.said.tokens, &mut self.told.tokens),
            Step::ToolCall { .. } => (&mut self.said.calls, &mut self.told.calls),
            Step::Notice { .. } => (&mut self.said.notices, &mut self.told.notices),
            Step::Compacted { .. } => (&mut self.said.compactions, &mut self.told.compactions),
            Step::Rest { .. } => (&mut self.said.rests, &mut self.told.rests),
        };
        *said += 1;
        if *said <= *told {
            return Replay::Duplicate;
        }
        *told = *said;
        if let Step::Token { id, .. } = step {
            self.ids.push(*id);
        }
        Replay::Forward
    }

    /// The request for the next process.
    fn again(&mut self) -> Vec<WorkerRequest> {
        self.said = Counts::default();
        let resume = Some(Resume { ids: self.ids.clone(), asked_ms: self.asked_ms });
        let request = GenerateRequest { resume, ..self.request.clone() };
        let cancel = self.cancelled.then(|| WorkerRequest::Cancel { turn: self.request.turn.clone() });
        std::iter::once(WorkerRequest::Generate(Box::new(request))).chain(cancel).collect()
    }
}

/// Changes how a model is loaded after what ended its process: never what an answer says, only what it needs. Returns how
/// the answer goes on, as the end of a sentence.
fn ease(load: &mut LoadSpec, error: &Error) -> &'static str {
    match error.code() {
        // A GPU that answers no more would hang again.
        "worker.hung" if matches!(load.backend, Backend::Auto | Backend::Gpu) => {
            load.backend = Backend::Cpu;
            " on the CPU"
        }
        // Most likely memory ran out: no draft model, no rounding up to large pages, half the room for contexts.
        "worker.killed" => {
            (load.draft, load.draft_block, load.small_pages) = (None, false, true);
            load.context_bytes = load.context_bytes.map(|bytes| bytes / 2);
            " with less memory"
        }
        _ => "",
    }
}

fn failed(turn: String, error: &Error) -> WorkerEvent {
    WorkerEvent::Turn { turn, step: Step::Failed { error: error.clone() } }
}

fn unanswered(request: WorkerRequest, error: &Error) -> Option<WorkerEvent> {
    match request {
        WorkerRequest::Inspect { request, .. } => {
            Some(WorkerEvent::Inspected { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::Count { request, .. } => {
            Some(WorkerEvent::TokenCounts { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::Logprobs { request, .. } => {
            Some(WorkerEvent::TokenAlternatives { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::Vocabulary { request, .. } => {
            Some(WorkerEvent::VocabularyAnswer { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::Embed { request, .. } => {
            Some(WorkerEvent::EmbeddingBatch { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::Rank { request, .. } => {
            Some(WorkerEvent::PassageScores { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::RenderPages { request, .. } => {
            Some(WorkerEvent::PageImages { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::ReadImage { request, .. } => {
            Some(WorkerEvent::ImageInfo { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::Fit { request, .. } => {
            Some(WorkerEvent::FitOutcome { request, outcome: Err(error.clone()) })
        }
        WorkerRequest::Store { request, .. } => {
            Some(WorkerEvent::Stored { request, outcome: Err(error.clone()) })
        }
        // What it kept went with it.
        WorkerRequest::KvStats { request } => {
            Some(WorkerEvent::KvStats { request, stats: KvStats::default() })
        }
        WorkerRequest::Prefetch(_)
        | WorkerRequest::Generate(_)
        | WorkerRequest::Cancel { .. }
        | WorkerRequest::Unload { .. }
        | WorkerRequest::Forget { .. }
        | WorkerRequest::Stop => None,
    }
}

fn restarted(error: &Error, how: &str) -> Error {
    Error::new(
        ErrorKind::Device,
        "worker.restarted",
        format!("{} It was restarted, and the answer continues{how}.", error.message()),
        "No action is needed. If this happens often, choose another model or restart the computer.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(turn: &str) -> WorkerRequest {
        let text = format!(
            r#"{{"type":"generate","turn":"{turn}","model":{{"id":"m","location":"built_in"}},
            "load":{{"backend":"auto","kv":"f16","kv_window":null,"rope_scaling":null,"context":null}},
            "conversation":null,"prompt":{{"raw":"a"}},"sampling":{{}},"max_tokens":null,"stop":[],
            "ignore_eos":false,"chat":{{"tools":null,"kwargs":{{}},"reasoning_budget":null,"template":null,
            "template_fallback":false}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn token(turn: &str, id: u32) -> WorkerEvent {
        let step = Step::Token { id, text: id.to_string(), reasoning: String::new(), logprobs: Vec::new() };
        WorkerEvent::Turn { turn: turn.into(), step }
    }

    fn resumed(request: &WorkerRequest) -> &[u32] {
        match request {
            WorkerRequest::Generate(request) => request.resume.as_ref().map_or(&[], |resume| &resume.ids),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_heard_is_not_heard_again_and_a_second_fall_is_the_last() {
        let error = Error::bug("it broke");
        let mut flights = InFlight::default();
        flights.asked(&request("a"), 5);
        for id in [7, 8, 9] {
            assert_eq!(flights.heard(token("a", id)), Some(token("a", id)));
        }
        assert_eq!(flights.heard(token("stranger", 1)), None);
        let (again, told) = flights.worker_ended(&error);
        assert_eq!((again.len(), resumed(&again[0])), (1, &[7, 8, 9][..]));
        assert!(
            matches!(&told[..], [WorkerEvent::Turn { step: Step::Notice { error }, .. }] if error.code() == "worker.restarted")
        );

        flights.asked(&request("b"), 6);
        for id in [7, 8, 9] {
            assert_eq!(flights.heard(token("a", id)), None, "heard before");
        }
        assert_eq!(flights.heard(token("a", 10)), Some(token("a", 10)));
        let (again, told) = flights.worker_ended(&error);
        assert_eq!((again.len(), resumed(&again[0])), (1, &[][..]), "the other turn goes on");
        assert!(matches!(&told[0], WorkerEvent::Turn { turn, step: Step::Failed { .. } } if turn == "a"));
        assert!(!flights.is_empty());
        assert_eq!(flights.fail_all(&error).len(), 1);
        assert!(flights.is_empty());
    }

    #[test]
    fn what_ended_a_process_is_avoided_in_the_next() {
        let next = |code: &'static str, words: &str| {
            let mut flights = InFlight::default();
            let WorkerRequest::Generate(mut request) = request("a") else { panic!("it generates") };
            request.load.context_bytes = Some(1000);
            request.load.draft_block = true;
            flights.asked(&WorkerRequest::Generate(request), 5);
            let error = Error::new(ErrorKind::Device, code, "It ended.", "Try again.");
            let (mut again, told) = flights.worker_ended(&error);
            assert!(format!("{told:?}").contains(&format!("the answer continues{words}.")), "{told:?}");
            match again.remove(0) {
                WorkerRequest::Generate(request) => request.load,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(next("worker.hung", " on the CPU").backend, Backend::Cpu);
        let small = next("worker.killed", " with less memory");
        assert_eq!((small.backend, small.context_bytes), (Backend::Auto, Some(500)));
        assert!(!small.draft_block && small.small_pages);
        let same = next("worker.crashed", "");
        assert!((same.backend, same.context_bytes) == (Backend::Auto, Some(1000)) && same.draft_block);
    }

    /// Each end takes the file that was being drawn, and costs no other file and no answer anything.
    #[test]
    fn a_file_that_ended_a_process_is_not_tried_again() {
        let draw = |request: u64| {
            let file = contract::protocol::Base64Text("".into());
            let render = Box::new(contract::protocol::RenderRequest { file, pages: vec![1] });
            match request {
                7 | 6 => WorkerRequest::RenderPages { request, render },
                _ => WorkerRequest::ReadImage { request, file: render.file },
            }
        };
        let error = Error::bug("it broke");
        let mut flights = InFlight::default();
        flights.asked(&request("a"), 0);
        // The order of arrival counts, not the numbers.
        [8, 7, 9, 6].into_iter().for_each(|id| flights.asked(&draw(id), 0));
        let drawn = WorkerEvent::ImageInfo { request: 8, outcome: Err(Error::bug("it is damaged")) };
        assert!(flights.heard(drawn).is_some());
        for (refused, left) in [(7, vec![6, 9]), (9, vec![6]), (6, vec![])] {
            let (again, told) = flights.worker_ended(&error);
            let failed: Vec<u64> = told
                .iter()
                .filter_map(|event| match event {
                    WorkerEvent::PageImages { request, outcome: Err(_) }
                    | WorkerEvent::ImageInfo { request, outcome: Err(_) } => Some(*request),
                    _ => None,
                })
                .collect();
            let drawn_again: Vec<u64> = again
                .iter()
                .filter_map(|request| match request {
                    WorkerRequest::RenderPages { request, .. } | WorkerRequest::ReadImage { request, .. } => {
                        Some(*request)
                    }
                    _ => None,
                })
                .collect();
            assert_eq!((failed, drawn_again), (vec![refused], left));
            assert_eq!(again.iter().filter(|it| matches!(it, WorkerRequest::Generate(_))).count(), 1);
        }
        let (again, _) = flights.worker_ended(&error);
        assert!(
            matches!(&again[..], [WorkerRequest::Generate(_)]),
            "now the answer itself may be the reason"
        );
        assert!(flights.worker_ended(&error).0.is_empty() && flights.is_empty());
    }

    #[test]
    fn questions_are_asked_again_and_cancels_hold() {
        let mut flights = InFlight::default();
        let location = contract::protocol::Location::BuiltIn;
        flights.asked(&WorkerRequest::Inspect { request: 3, location }, 0);
        flights.asked(&request("a"), 0);
        flights.asked(&WorkerRequest::Cancel { turn: "a".into() }, 0);
        let error = Error::bug("it broke");
        let (again, _) = flights.worker_ended(&error);
        assert!(matches!(
            &again[..],
            [
                WorkerRequest::Generate(_),
                WorkerRequest::Cancel { .. },
                WorkerRequest::Inspect { request: 3, .. }
            ]
        ));
        let (again, told) = flights.worker_ended(&error);
        assert!(again.is_empty() && flights.is_empty());
        assert_eq!(told.len(), 2);
    }
}

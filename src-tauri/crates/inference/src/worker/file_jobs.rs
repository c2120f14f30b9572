//! Scanned pages of PDFs, drawn on a thread of their own, one file at a time, beside running answers.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use contract::protocol::{Base64Text, PageImage, PageImages, RenderRequest, WorkerEvent};
use contract::{Error, ErrorKind, Result};
use documents::{ExtractError, base64};
use pdf_pages::{PageChoice, PageLimits, RenderedPages, render};

use super::{Worker, loading};

/// Files that wait: a draft has ten.
const MAX_WAITING_FILES: usize = 64;

type PageOutcome = Result<PageImages>;

/// The file that is being drawn, and those that wait.
#[derive(Default)]
pub struct PageJobs {
    running: Option<(u64, Receiver<PageOutcome>)>,
    waiting: VecDeque<(u64, RenderRequest)>,
    /// Of files that could not be begun.
    ended: Vec<(u64, PageOutcome)>,
}

impl PageJobs {
    /// Begins a request, or has it wait for the one before.
    pub fn start(&mut self, request: u64, render: RenderRequest) {
        if self.waiting.len() >= MAX_WAITING_FILES {
            self.ended.push((request, Err(too_many())));
            return;
        }
        self.waiting.push_back((request, render));
        self.begin_next();
    }

    /// Something is being drawn.
    pub fn is_busy(&self) -> bool {
        self.running.is_some() || !self.ended.is_empty()
    }

    /// What has ended since the last look.
    fn take_ended(&mut self) -> Vec<(u64, PageOutcome)> {
        if let Some((request, outcome)) = &self.running {
            let ended = match outcome.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(TryRecvError::Disconnected) => {
                    Some(Err(Error::bug("a thread that draws pages panicked")))
                }
                Err(TryRecvError::Empty) => None,
            };
            if let Some(outcome) = ended {
                self.ended.push((*request, outcome));
                self.running = None;
            }
        }
        self.begin_next();
        std::mem::take(&mut self.ended)
    }

    fn begin_next(&mut self) {
        while self.running.is_none() {
            let Some((request, render)) = self.waiting.pop_front() else { return };
            let (tell, outcome) = mpsc::sync_channel(1);
            let thread = std::thread::Builder::new().name("inglenook-pages".into());
            let begun = thread.spawn(move || {
                // The worker may have ended.
                let _ = tell.send(draw(&render));
            });
            match begun {
                Ok(_) => self.running = Some((request, outcome)),
                Err(error) => self.ended.push((request, Err(loading::no_thread(&error)))),
            }
        }
    }
}

impl Worker<'_> {
    /// Tells what has come of the pages since the last look.
    pub fn hear_page_images(&mut self) {
        for (request, outcome) in self.page_jobs.take_ended() {
            self.say(WorkerEvent::PageImages { request, outcome });
        }
    }
}

fn draw(request: &RenderRequest) -> PageOutcome {
    let bytes = base64::decode(&request.file.0).ok_or_else(|| Error::bug("a PDF is not valid base64"))?;
    let choice = PageChoice::Scanned(request.pages.clone());
    let RenderedPages { images, left_out } =
        render(&bytes, choice, PageLimits::default()).map_err(unreadable)?;
    let image = |it: pdf_pages::PageImage| PageImage {
        page: it.page,
        file: Base64Text(base64::encode(&it.file).into()),
    };
    Ok(PageImages { images: images.into_iter().map(image).collect(), left_out })
}

fn unreadable(error: ExtractError) -> Error {
    Error::input("document.unreadable", format!("The PDF can't be used: {}.", error.why), error.remedy)
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::Limit,
        "request.queue_full",
        "Too many PDFs with scanned pages are waiting.",
        "Wait a moment and try again.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str) -> RenderRequest {
        let path = format!("{}/../pdf-pages/tests/files/{name}", env!("CARGO_MANIFEST_DIR"));
        let file = base64::encode(&std::fs::read(path).unwrap());
        RenderRequest { file: Base64Text(file.into()), pages: vec![1, 2] }
    }

    fn ended(jobs: &mut PageJobs) -> Vec<(u64, PageOutcome)> {
        let mut all = Vec::new();
        while jobs.is_busy() {
            all.extend(jobs.take_ended());
            std::thread::yield_now();
        }
        all
    }

    #[test]
    fn files_are_drawn_one_after_the_other() {
        let mut jobs = PageJobs::default();
        for (number, name) in (1..).zip(["jpeg.pdf", "locked.pdf", "mixed.pdf"]) {
            jobs.start(number, request(name));
        }
        let ended = ended(&mut jobs);
        assert_eq!(ended.iter().map(|(request, _)| *request).collect::<Vec<_>>(), [1, 2, 3]);
        let pages = |at: usize| ended[at].1.as_ref().map(|it| it.images.iter().map(|it| it.page).collect());
        assert_eq!((pages(0), pages(2)), (Ok(vec![1]), Ok(vec![2])));
        assert!(ended[1].1.as_ref().unwrap_err().message().contains("password"));
    }

    #[test]
    fn the_queue_has_a_limit() {
        let mut jobs = PageJobs::default();
        for number in 0..MAX_WAITING_FILES as u64 + 3 {
            jobs.start(number, RenderRequest { file: Base64Text("".into()), pages: Vec::new() });
        }
        let ended = ended(&mut jobs);
        let refused =
            ended.iter().filter(|(_, it)| it.as_ref().is_err_and(|e| e.code() == "request.queue_full"));
        assert_eq!((ended.len(), refused.count()), (MAX_WAITING_FILES + 3, 2));
    }
}

//! Files that users attach, decoded on a thread of their own, one at a time, beside running answers: one that takes too
//! much ends this process, not the window.

mod image_info;
mod page_images;

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use contract::protocol::{Base64Text, RenderRequest, WorkerEvent};
use contract::{Error, ErrorKind};

use super::{Worker, loading};

/// Files that wait: a draft has ten.
const MAX_WAITING_FILES: usize = 64;

/// What is to be done with a file.
pub enum FileJob {
    /// Draws scanned pages of a PDF.
    Pages(Box<RenderRequest>),
    /// Reads the size of an image, and makes its thumbnail.
    Image(Base64Text),
}

/// Where the outcome of a job goes.
#[derive(Debug, Clone, Copy)]
enum ReplyTo {
    Pages(u64),
    Image(u64),
}

/// The file that is being decoded, and those that wait.
#[derive(Default)]
pub struct FileJobs {
    running: Option<(ReplyTo, Receiver<WorkerEvent>)>,
    waiting: VecDeque<(ReplyTo, FileJob)>,
    /// Replies that have not been sent.
    replies: Vec<WorkerEvent>,
}

impl FileJobs {
    /// Begins a job, or has it wait for those before: their order is that in which they came.
    pub fn start(&mut self, request: u64, job: FileJob) {
        let reply_to = match &job {
            FileJob::Pages(_) => ReplyTo::Pages(request),
            FileJob::Image(_) => ReplyTo::Image(request),
        };
        if self.waiting.len() >= MAX_WAITING_FILES {
            self.replies.push(reply_to.refuse(too_many()));
            return;
        }
        self.waiting.push_back((reply_to, job));
        self.begin_next();
    }

    /// A file is being decoded, or a reply has not been sent.
    pub fn is_busy(&self) -> bool {
        self.running.is_some() || !self.replies.is_empty()
    }

    /// Replies since the last call.
    fn take_replies(&mut self) -> Vec<WorkerEvent> {
        if let Some((reply_to, outcome)) = &self.running {
            let reply = match outcome.try_recv() {
                Ok(reply) => Some(reply),
                Err(TryRecvError::Disconnected) => {
                    Some(reply_to.refuse(Error::bug("a thread that decodes files panicked")))
                }
                Err(TryRecvError::Empty) => None,
            };
            if let Some(reply) = reply {
                self.replies.push(reply);
                self.running = None;
            }
        }
        self.begin_next();
        std::mem::take(&mut self.replies)
    }

    fn begin_next(&mut self) {
        while self.running.is_none() {
            let Some((reply_to, job)) = self.waiting.pop_front() else { return };
            let (tell, outcome) = mpsc::sync_channel(1);
            let begun = std::thread::Builder::new().name("inglenook-files".into()).spawn(move || {
                // The worker may have ended.
                let _ = tell.send(reply_to.run(&job));
            });
            match begun {
                Ok(_) => self.running = Some((reply_to, outcome)),
                Err(error) => self.replies.push(reply_to.refuse(loading::no_thread(&error))),
            }
        }
    }
}

impl ReplyTo {
    fn run(self, job: &FileJob) -> WorkerEvent {
        let (Self::Pages(request) | Self::Image(request)) = self;
        match job {
            FileJob::Pages(render) => WorkerEvent::PageImages { request, outcome: page_images::draw(render) },
            FileJob::Image(file) => WorkerEvent::ImageInfo { request, outcome: image_info::read(file) },
        }
    }

    fn refuse(self, error: Error) -> WorkerEvent {
        match self {
            Self::Pages(request) => WorkerEvent::PageImages { request, outcome: Err(error) },
            Self::Image(request) => WorkerEvent::ImageInfo { request, outcome: Err(error) },
        }
    }
}

impl Worker<'_> {
    /// Sends what has come of files since the last call.
    pub fn send_file_replies(&mut self) {
        for reply in self.file_jobs.take_replies() {
            self.say(reply);
        }
    }
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::Limit,
        "request.queue_full",
        "Too many attached files are waiting to be read.",
        "Wait a moment and try again.",
    )
}

#[cfg(test)]
mod tests {
    use documents::base64;

    use super::*;

    fn pages_of(name: &str) -> FileJob {
        let path = format!("{}/../pdf-pages/tests/files/{name}", env!("CARGO_MANIFEST_DIR"));
        let file = base64::encode(&std::fs::read(path).unwrap());
        FileJob::Pages(Box::new(RenderRequest { file: Base64Text(file.into()), pages: vec![1, 2] }))
    }

    fn all_replies(jobs: &mut FileJobs) -> Vec<WorkerEvent> {
        let mut all = Vec::new();
        while jobs.is_busy() {
            all.extend(jobs.take_replies());
            std::thread::yield_now();
        }
        all
    }

    #[test]
    fn files_are_decoded_one_after_the_other() {
        let mut jobs = FileJobs::default();
        jobs.start(1, pages_of("jpeg.pdf"));
        jobs.start(2, FileJob::Image(Base64Text("aGVsbG8gd29ybGQh".into())));
        jobs.start(3, pages_of("locked.pdf"));
        jobs.start(4, pages_of("mixed.pdf"));
        let replies = all_replies(&mut jobs);
        let [
            WorkerEvent::PageImages { request: 1, outcome: Ok(scan) },
            WorkerEvent::ImageInfo { request: 2, outcome: Ok(None) },
            WorkerEvent::PageImages { request: 3, outcome: Err(locked) },
            WorkerEvent::PageImages { request: 4, outcome: Ok(mixed) },
        ] = &replies[..]
        else {
            panic!("{replies:?}")
        };
        assert_eq!((scan.images[0].page, mixed.images[0].page), (1, 2));
        let info = &scan.images[0].info;
        assert!(info.width > 0 && info.height > 0 && info.thumbnail.starts_with("data:image/jpeg;base64,"));
        assert!(locked.message().contains("password"));
    }

    #[test]
    fn the_queue_has_a_limit() {
        let mut jobs = FileJobs::default();
        for number in 0..MAX_WAITING_FILES as u64 + 3 {
            jobs.start(number, FileJob::Image(Base64Text("".into())));
        }
        let replies = all_replies(&mut jobs);
        let refused = replies.iter().filter(|it| {
            matches!(it, WorkerEvent::ImageInfo { outcome: Err(e), .. } if e.code() == "request.queue_full")
        });
        assert_eq!((replies.len(), refused.count()), (MAX_WAITING_FILES + 3, 2));
    }
}

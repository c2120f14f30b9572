//! The request channel to the worker. Cancellations interrupt a running batch.

use std::sync::mpsc::{
    self, Receiver, RecvError, RecvTimeoutError, SendError, SyncSender, TryRecvError, TrySendError,
};
use std::time::Duration;

use engine::Interrupt;

use contract::protocol::WorkerRequest;

/// Requests that wait for the worker: it takes them within milliseconds, in the middle of a run too. One that leaves that
/// many has hung.
const MAX_WAITING_REQUESTS: usize = 4096;

/// Where requests are sent.
#[derive(Clone)]
pub struct Requests {
    send: SyncSender<WorkerRequest>,
    interrupt: Interrupt,
}

/// Where they arrive.
pub struct Inbox {
    requests: Receiver<WorkerRequest>,
    interrupt: Interrupt,
}

pub fn channel() -> (Requests, Inbox) {
    let (send, requests) = mpsc::sync_channel(MAX_WAITING_REQUESTS);
    let interrupt = Interrupt::default();
    (Requests { send, interrupt: interrupt.clone() }, Inbox { requests, interrupt })
}

impl Requests {
    /// Error: the worker has ended, or takes nothing more.
    pub fn send(&self, request: WorkerRequest) -> Result<(), Box<SendError<WorkerRequest>>> {
        if interrupts(&request) {
            self.interrupt.request();
        }
        // Waiting for room could block the thread that empties the worker's events, and so the worker.
        self.send.try_send(request).map_err(|error| match error {
            TrySendError::Full(request) | TrySendError::Disconnected(request) => Box::new(SendError(request)),
        })
    }
}

impl Inbox {
    /// What runs of a model end by when somebody sends what can't wait.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    pub fn recv(&self) -> Result<WorkerRequest, RecvError> {
        self.requests.recv().inspect(|request| self.hear(request))
    }

    pub fn recv_timeout(&self, timeout: Duration) -> Result<WorkerRequest, RecvTimeoutError> {
        self.requests.recv_timeout(timeout).inspect(|request| self.hear(request))
    }

    pub fn try_recv(&self) -> Result<WorkerRequest, TryRecvError> {
        self.requests.try_recv().inspect(|request| self.hear(request))
    }

    /// Unwraps the channel, for code that forwards requests.
    pub fn into_receiver(self) -> Receiver<WorkerRequest> {
        self.requests
    }

    fn hear(&self, request: &WorkerRequest) {
        if interrupts(request) {
            self.interrupt.acknowledge();
        }
    }
}

/// It ends something that may be running.
fn interrupts(request: &WorkerRequest) -> bool {
    match request {
        WorkerRequest::Cancel { .. } | WorkerRequest::Unload { .. } | WorkerRequest::Stop => true,
        WorkerRequest::Generate(_)
        | WorkerRequest::Forget { .. }
        | WorkerRequest::Store { .. }
        | WorkerRequest::Prefetch(_)
        | WorkerRequest::KvStats { .. }
        | WorkerRequest::Inspect { .. }
        | WorkerRequest::Count { .. }
        | WorkerRequest::Logprobs { .. }
        | WorkerRequest::Vocabulary { .. }
        | WorkerRequest::Embed { .. }
        | WorkerRequest::Rank { .. }
        | WorkerRequest::RenderPages { .. }
        | WorkerRequest::ReadImage { .. }
        | WorkerRequest::Fit { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_something_interrupts_until_it_is_heard() {
        let (send, inbox) = channel();
        let asked = |inbox: &Inbox| inbox.interrupt().is_requested();
        send.send(WorkerRequest::KvStats { request: 1 }).unwrap();
        assert!(!asked(&inbox), "figures can wait");
        for _ in 0..2 {
            send.clone().send(WorkerRequest::Cancel { turn: "a".into() }).unwrap();
        }
        assert!(asked(&inbox), "before anything was received");
        inbox.recv().unwrap();
        inbox.try_recv().unwrap();
        assert!(asked(&inbox), "the second has not been heard");
        inbox.recv_timeout(Duration::ZERO).unwrap();
        assert!(!asked(&inbox));
        drop(inbox);
        assert!(send.send(WorkerRequest::Stop).is_err());
    }
}

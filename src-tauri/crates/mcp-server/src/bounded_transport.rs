//! Limits around a transport of `rmcp`: how many requests of a client run, and what it may send before the first.
//!
//! A request counts until its answer is written, so a client that sends without reading cannot fill the memory.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

/// Requests of one client that are answered at the same time.
const MAX_RUNNING: usize = 64;

/// Ids of requests whose answers are not yet written.
#[derive(Clone, Default)]
struct RunningIds(Arc<Mutex<HashSet<RequestId>>>);

impl RunningIds {
    fn table(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. Errors: too many run, or one with this id does.
    fn add(&self, id: &RequestId) -> Result<(), ErrorData> {
        let mut table = self.table();
        if table.len() >= MAX_RUNNING {
            let message = format!("{MAX_RUNNING} requests are running. Wait for an answer.");
            return Err(ErrorData::internal_error(message, None));
        }
        if !table.insert(id.clone()) {
            return Err(ErrorData::invalid_request(format!("Request {id} is still running."), None));
        }
        Ok(())
    }
}

/// An answer that is written before the next message is read. Stays across futures that are dropped.
#[derive(Default)]
pub struct PendingReply(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl PendingReply {
    /// Replaces the answer.
    pub fn set<E>(&mut self, sending: impl Future<Output = Result<(), E>> + Send + 'static) {
        self.0 = Some(Box::pin(async {
            // A client that left is noticed by the next read.
            let _ = sending.await;
        }));
    }

    /// Returns once nothing is left to write.
    pub async fn written(&mut self) {
        if let Some(sending) = &mut self.0 {
            sending.await;
            self.0 = None;
        }
    }
}

/// A transport with limits.
pub struct BoundedTransport<T> {
    inner: T,
    running: RunningIds,
    refusal: PendingReply,
    /// Whether a request has begun a lifecycle. `rmcp` ends where a notification comes before it.
    has_begun: bool,
    /// Cancelled once the client has closed its end.
    client_left: CancellationToken,
}

impl<T> BoundedTransport<T> {
    /// Limits a transport. `client_left` is cancelled once the client has closed its end.
    pub fn new(inner: T, client_left: CancellationToken) -> Self {
        let (running, refusal) = (RunningIds::default(), PendingReply::default());
        Self { inner, running, refusal, has_begun: false, client_left }
    }

    /// Whether a message goes on to `rmcp`. Errors: its request is refused.
    fn admit(&mut self, message: &ClientJsonRpcMessage) -> Result<bool, (RequestId, ErrorData)> {
        match message {
            JsonRpcMessage::Request(request) => {
                self.running.add(&request.id).map_err(|error| (request.id.clone(), error))?;
                self.has_begun |= begins_lifecycle(&request.request);
                Ok(true)
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.running.table().remove(id);
                }
                Ok(self.has_begun)
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(self.has_begun),
        }
    }
}

/// Whether `rmcp` leaves its opening for a request: a handshake, or a request that says its revision.
fn begins_lifecycle(request: &ClientRequest) -> bool {
    let meta = request.get_meta();
    let is_complete = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        _ => {
            is_complete
                && meta.protocol_version().is_some_and(|it| ProtocolVersion::KNOWN_VERSIONS.contains(&it))
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for BoundedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (running, sending) = (self.running.clone(), self.inner.send(message));
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                running.table().remove(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.refusal.written().await;
            let Some(message) = self.inner.receive().await else {
                self.client_left.cancel();
                return None;
            };
            match self.admit(&message) {
                Ok(true) => return Some(message),
                Ok(false) => {}
                Err((id, error)) => {
                    self.refusal.set(self.inner.send(ServerJsonRpcMessage::error(error, Some(id))));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rmcp::model::{ErrorCode, ServerResult};
    use serde_json::{Value, json};

    use super::*;

    /// Keeps what is sent. Ends where nothing is left to receive.
    #[derive(Default)]
    struct QueueTransport {
        incoming: VecDeque<ClientJsonRpcMessage>,
        sent: Arc<Mutex<Vec<ServerJsonRpcMessage>>>,
    }

    impl Transport<RoleServer> for QueueTransport {
        type Error = std::io::Error;

        fn send(
            &mut self,
            message: ServerJsonRpcMessage,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            let sent = Arc::clone(&self.sent);
            async move {
                sent.lock().unwrap().push(message);
                Ok(())
            }
        }

        async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
            self.incoming.pop_front()
        }

        async fn close(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    fn transport() -> BoundedTransport<QueueTransport> {
        BoundedTransport::new(QueueTransport::default(), CancellationToken::new())
    }

    fn message(value: Value) -> ClientJsonRpcMessage {
        serde_json::from_value(value).unwrap()
    }

    fn request(id: usize) -> ClientJsonRpcMessage {
        message(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }))
    }

    fn cancelled(id: usize) -> ClientJsonRpcMessage {
        let params = json!({ "requestId": id });
        message(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
    }

    /// The id of the next message, null for a notification; `None`: there is none.
    async fn next_id(transport: &mut BoundedTransport<QueueTransport>) -> Option<Value> {
        let message = transport.receive().await?;
        Some(serde_json::to_value(message).unwrap()["id"].clone())
    }

    /// Ids and codes of the refusals.
    fn refusals(transport: &BoundedTransport<QueueTransport>) -> Vec<(Option<RequestId>, ErrorCode)> {
        let sent = transport.inner.sent.lock().unwrap();
        let errors = sent.iter().filter_map(|message| match message {
            JsonRpcMessage::Error(error) => Some((error.id.clone(), error.error.code)),
            _ => None,
        });
        errors.collect()
    }

    #[tokio::test]
    async fn a_request_counts_until_it_is_answered_or_cancelled() {
        let mut transport = transport();
        transport.inner.incoming.extend((0..=MAX_RUNNING).map(request));
        for id in 0..MAX_RUNNING {
            assert_eq!(next_id(&mut transport).await, Some(json!(id)));
        }
        assert_eq!(next_id(&mut transport).await, None);
        let too_many = (Some(RequestId::Number(MAX_RUNNING as i64)), ErrorCode::INTERNAL_ERROR);
        assert_eq!(refusals(&transport), [too_many]);

        let answer = ServerJsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(0));
        transport.send(answer).await.unwrap();
        transport.inner.incoming.extend([request(100), cancelled(1), request(101), request(102)]);
        for id in [100, 101] {
            assert_eq!(next_id(&mut transport).await, Some(json!(id)));
        }
        assert_eq!(next_id(&mut transport).await, None);
        assert_eq!(refusals(&transport).len(), 2);
    }

    #[tokio::test]
    async fn an_id_that_is_in_use_is_refused() {
        let mut transport = transport();
        transport.inner.incoming.extend([request(1), request(1)]);
        assert_eq!(next_id(&mut transport).await, Some(json!(1)));
        assert_eq!(next_id(&mut transport).await, None);
        assert_eq!(refusals(&transport), [(Some(RequestId::Number(1)), ErrorCode::INVALID_REQUEST)]);
    }

    #[tokio::test]
    async fn notifications_wait_for_the_first_request() {
        let mut transport = transport();
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" },
        });
        let first = message(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
        transport.inner.incoming.extend([cancelled(9), first, cancelled(9)]);
        assert_eq!(next_id(&mut transport).await, Some(json!(1)));
        assert_eq!(next_id(&mut transport).await, Some(json!(null)));
        assert!(!transport.client_left.is_cancelled());
        assert_eq!(next_id(&mut transport).await, None);
        assert!(transport.client_left.is_cancelled());
    }
}

//! The operations of the OpenAPI document, one row each.

/// An operation.
#[derive(Debug)]
pub struct Operation {
    /// In lower case, as in the document.
    pub method: &'static str,
    pub path: &'static str,
    pub summary: &'static str,
    /// The interface that it belongs to.
    pub tag: &'static str,
    /// Names of query parameters.
    pub query: &'static [&'static str],
    /// Schema of the body, which is a form where the name ends so.
    pub body: Option<&'static str>,
    pub response: ResponseKind,
    /// Needs no key.
    pub is_public: bool,
}

/// What an operation answers with, by the name of its schema.
#[derive(Debug, Clone, Copy)]
pub enum ResponseKind {
    Json(&'static str),
    /// Server-sent events if the request says so.
    JsonOrEvents(&'static str),
    /// An object on each line unless the request says otherwise.
    JsonOrLines(&'static str),
    /// An object on each line.
    Lines,
    /// Server-sent events.
    Events,
    /// Plain text.
    Text,
    /// The bytes of a file.
    Bytes,
}

use ResponseKind::{Bytes, Events, Json, JsonOrEvents, Text};

const PAGE: &[&str] = &["after", "limit", "order"];

/// An operation of OpenAI's interface without a body.
pub const fn get(path: &'static str, summary: &'static str, response: ResponseKind) -> Operation {
    Operation {
        method: "get",
        path,
        summary,
        tag: "OpenAI",
        query: &[],
        body: None,
        response,
        is_public: false,
    }
}

/// An operation of OpenAI's interface that takes a body.
pub const fn post(
    path: &'static str,
    summary: &'static str,
    body: Option<&'static str>,
    response: ResponseKind,
) -> Operation {
    Operation { method: "post", body, ..get(path, summary, response) }
}

pub const fn delete(path: &'static str, summary: &'static str) -> Operation {
    Operation { method: "delete", ..get(path, summary, Json("Deleted")) }
}

const fn paged(operation: Operation) -> Operation {
    Operation { query: PAGE, ..operation }
}

const fn ours(operation: Operation) -> Operation {
    Operation { tag: "Inglenook", ..operation }
}

const fn public(operation: Operation) -> Operation {
    Operation { is_public: true, ..ours(operation) }
}

/// Those of OpenAI's interface and the application's.
pub static OPERATIONS: &[Operation] = &[
    get("/v1/models", "Lists the models of this machine.", Json("ModelList")),
    get("/v1/models/{id}", "Reads a model.", Json("Model")),
    delete("/v1/models/{id}", "Removes a model from the library."),
    post(
        "/v1/chat/completions",
        "Answers a conversation.",
        Some("ChatRequest"),
        JsonOrEvents("ChatCompletion"),
    ),
    paged(get("/v1/chat/completions", "Lists stored chat completions.", Json("List"))),
    post(
        "/v1/chat/completions/input_tokens",
        "Counts the tokens of a conversation.",
        Some("ChatRequest"),
        Json("InputTokens"),
    ),
    get("/v1/chat/completions/{id}", "Reads a stored chat completion.", Json("ChatCompletion")),
    post(
        "/v1/chat/completions/{id}",
        "Replaces the metadata of a stored chat completion.",
        Some("Metadata"),
        Json("ChatCompletion"),
    ),
    delete("/v1/chat/completions/{id}", "Deletes a stored chat completion."),
    paged(get(
        "/v1/chat/completions/{id}/messages",
        "Lists the messages of a stored chat completion.",
        Json("List"),
    )),
    post("/v1/completions", "Continues texts.", Some("CompletionRequest"), JsonOrEvents("Completion")),
    post("/v1/responses", "Creates a response.", Some("ResponseRequest"), JsonOrEvents("Response")),
    Operation {
        query: &["stream", "starting_after"],
        ..get("/v1/responses/{id}", "Reads a response.", JsonOrEvents("Response"))
    },
    delete("/v1/responses/{id}", "Deletes a response."),
    post(
        "/v1/responses/{id}/cancel",
        "Cancels a response that runs in the background.",
        None,
        Json("Response"),
    ),
    paged(get("/v1/responses/{id}/input_items", "Lists the items of a response's request.", Json("List"))),
    post(
        "/v1/responses/input_tokens",
        "Counts the tokens of a response's request.",
        Some("ResponseRequest"),
        Json("InputTokens"),
    ),
    post("/v1/responses/compact", "Summarizes items.", Some("ResponseRequest"), Json("Object")),
    post("/v1/conversations", "Creates a conversation.", Some("ConversationRequest"), Json("Conversation")),
    get("/v1/conversations/{id}", "Reads a conversation.", Json("Conversation")),
    post(
        "/v1/conversations/{id}",
        "Replaces the metadata of a conversation.",
        Some("Metadata"),
        Json("Conversation"),
    ),
    delete("/v1/conversations/{id}", "Deletes a conversation with its items."),
    paged(get("/v1/conversations/{id}/items", "Lists the items of a conversation.", Json("List"))),
    post("/v1/conversations/{id}/items", "Adds items to a conversation.", Some("ItemsRequest"), Json("List")),
    get("/v1/conversations/{id}/items/{item}", "Reads an item.", Json("Object")),
    Operation {
        response: Json("Conversation"),
        ..delete("/v1/conversations/{id}/items/{item}", "Deletes an item.")
    },
    post("/v1/embeddings", "Computes embedding vectors.", Some("EmbeddingsRequest"), Json("EmbeddingList")),
    post(
        "/v1/reranking",
        "Scores how well documents answer a query.",
        Some("RerankRequest"),
        Json("Anything"),
    ),
    post("/v1/rerank", "Scores how well documents answer a query.", Some("RerankRequest"), Json("Anything")),
    post("/v1/files", "Stores a file.", Some("FileForm"), Json("File")),
    Operation {
        query: &["after", "limit", "order", "purpose"],
        ..get("/v1/files", "Lists stored files.", Json("FileList"))
    },
    get("/v1/files/{id}", "Reads what is known of a file.", Json("File")),
    delete("/v1/files/{id}", "Deletes a file."),
    get("/v1/files/{id}/content", "Reads the content of a file.", Bytes),
    post("/v1/uploads", "Begins a file that comes in parts.", Some("UploadRequest"), Json("Upload")),
    post("/v1/uploads/{id}/parts", "Adds a part to an upload.", Some("PartForm"), Json("Object")),
    post("/v1/uploads/{id}/complete", "Makes a file of the parts.", Some("CompleteRequest"), Json("Upload")),
    post("/v1/uploads/{id}/cancel", "Cancels an upload.", None, Json("Upload")),
    post(
        "/v1/batches",
        "Answers the requests of a stored file while no client waits.",
        Some("FileBatchRequest"),
        Json("Batch"),
    ),
    paged(get("/v1/batches", "Lists batches.", Json("List"))),
    get("/v1/batches/{id}", "Reads how far a batch is.", Json("Batch")),
    post("/v1/batches/{id}/cancel", "Begins no more of a batch.", None, Json("Batch")),
    ours(post("/api/{name}", "Runs a use case of the application.", Some("Arguments"), Json("Anything"))),
    ours(post("/api/v1/{name}", "Runs a use case of the application.", Some("Arguments"), Json("Anything"))),
    ours(Operation {
        query: &["after"],
        ..get("/api/turns/{turn}/events", "Streams the events of a turn.", Events)
    }),
    ours(get("/api/events", "Streams the events of the application.", Events)),
    ours(get("/api/v1/tunes", "Lists fine-tuning runs.", Json("Anything"))),
    ours(post("/api/v1/tunes", "Starts a fine-tuning run.", Some("TuneRequest"), Json("Object"))),
    ours(post(
        "/api/v1/tunes/preview",
        "Shows what a run would learn and how long it would take.",
        Some("TuneRequest"),
        Json("Object"),
    )),
    ours(get("/api/v1/tunes/{id}", "Reads a run with all its steps.", Json("Object"))),
    ours(Operation {
        response: Json("Anything"),
        ..delete("/api/v1/tunes/{id}", "Deletes a run with its adapter.")
    }),
    ours(post("/api/v1/tunes/{id}/pause", "Pauses a run.", None, Json("Object"))),
    ours(post("/api/v1/tunes/{id}/resume", "Continues a run.", None, Json("Object"))),
    ours(post("/api/v1/tunes/{id}/stop", "Ends a run with what it has learned.", None, Json("Object"))),
    ours(get("/api/v1/stats", "Reads what the server has answered and is doing.", Json("Object"))),
    ours(get("/metrics", "Reads figures in Prometheus' text format.", Text)),
    public(get("/health", "Says that the server runs.", Json("Object"))),
    public(get("/v1/health", "Says that the server runs.", Json("Object"))),
    public(get("/openapi.json", "Reads this document.", Json("Object"))),
];

//! `GET /openapi.json`: the HTTP interface as an OpenAPI document.
//!
//! Guarantees that every operation in it has a route; a test compares them.

mod contents;
mod operations;
mod other_interfaces;
mod schemas;
mod shapes;

use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::fault::json_response;
use operations::{OPERATIONS, Operation, ResponseKind};
use other_interfaces::{OTHER_OPERATIONS, error_schema};

/// Version of OpenAPI.
const OPENAPI: &str = "3.1.0";

/// Handles `GET /openapi.json`.
pub async fn document() -> Response {
    json_response(axum::http::StatusCode::OK, &value())
}

/// The document.
pub fn value() -> Value {
    let mut paths = Map::new();
    for operation in operations() {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described(operation);
    }
    json!({
        "openapi": OPENAPI,
        "info": {
            "title": "Inglenook",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Local language models over HTTP. The routes of OpenAI's interface also exist without /v1.",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "schemas": all_schemas(),
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn all_schemas() -> Value {
    let mut all = schemas::all();
    for (name, schema) in other_interfaces::schemas().as_object().into_iter().flatten() {
        all[name] = schema.clone();
    }
    all
}

fn operations() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().chain(OTHER_OPERATIONS)
}

fn described(operation: &Operation) -> Value {
    let mut value = json!({
        "operationId": format!("{}_{}", operation.method, operation.path.trim_matches('/').replace(['/', '{', '}', '.'], "_")),
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": responses(operation),
    });
    let in_path = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> =
        in_path.map(|name| parameter(name, "path", json!({ "type": "string", "minLength": 1 }))).collect();
    parameters.extend(
        operation.query.iter().map(|name| parameter(name, "query", query_schema(operation.tag, name))),
    );
    if !parameters.is_empty() {
        value["parameters"] = parameters.into();
    }
    if let Some(schema) = operation.body {
        let kind = if schema.ends_with("Form") { "multipart/form-data" } else { "application/json" };
        let content = json!({ kind: { "schema": reference(schema) } });
        // A body whose fields are all optional may be missing.
        let schemas = all_schemas();
        let is_required = schemas[schema]["required"].is_array() || schemas[schema]["anyOf"].is_array();
        value["requestBody"] = json!({ "required": is_required, "content": content });
    }
    if operation.is_public {
        value["security"] = json!([]);
    }
    value
}

fn parameter(name: &str, place: &str, schema: Value) -> Value {
    json!({ "name": name, "in": place, "required": place == "path", "schema": schema })
}

fn query_schema(tag: &str, name: &str) -> Value {
    match name {
        "limit" if tag == "Anthropic" => json!({ "type": "integer", "minimum": 1, "maximum": 1000 }),
        "limit" | "starting_after" => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        "order" => json!({ "enum": ["asc", "desc"] }),
        "stream" => json!({ "type": "boolean" }),
        "after" if tag == "Inglenook" => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        _ => json!({ "type": "string" }),
    }
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn responses(operation: &Operation) -> Value {
    let json_of = |schema: &str| json!({ "application/json": { "schema": reference(schema) } });
    // Of any form: version 3.1 can't describe one event of a stream.
    let events = || json!({});
    let content = match operation.response {
        ResponseKind::Json(schema) => json_of(schema),
        ResponseKind::JsonOrEvents(schema) => {
            let mut content = json_of(schema);
            content["text/event-stream"] = events();
            content
        }
        ResponseKind::JsonOrLines(schema) => {
            let mut content = json_of(schema);
            content["application/x-ndjson"] = events();
            content
        }
        ResponseKind::Lines => json!({ "application/x-jsonl": events() }),
        ResponseKind::Events => json!({ "text/event-stream": events() }),
        ResponseKind::Bytes => json!({ "application/octet-stream": {} }),
        ResponseKind::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
    };
    json!({
        "200": { "description": "Done.", "content": content },
        "default": { "description": "An error that names its field.", "content": json_of(error_schema(operation.tag)) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_its_schema() {
        let document = value();
        let text = document.to_string();
        let names: Vec<&str> =
            text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(names.len() > operations().count());
        for name in names {
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
    }

    /// Routes that are not in the document, and why.
    const LEFT_OUT: &[(&str, &str)] = &[
        ("/", "a page for people"),
        ("/preview/{frame}", "a page for people"),
        ("/slots", "answers 501"),
        ("/api/copy", "answers 501"),
        ("/api/create", "answers 501"),
        ("/api/push", "answers 501"),
        ("/api/blobs/{digest}", "answers 501"),
        ("/api/pull", "programs that try every operation would download"),
        ("/api/delete", "programs that try every operation would delete models"),
    ];

    /// Paths in the source of the routes: the first text of each `.route(` and of each pair of OpenAI's table.
    fn served_paths() -> Vec<String> {
        let with_v1 = include_str!("openai.rs");
        let sources = [
            include_str!("lib.rs"),
            include_str!("tunes.rs"),
            include_str!("ollama.rs"),
            include_str!("llama_cpp.rs"),
            include_str!("anthropic.rs"),
            include_str!("anthropic/batches.rs"),
        ];
        let after = |source: &str, start: &str| -> Vec<String> {
            let rest = source.split(start).skip(1);
            rest.filter_map(|rest| rest.split_once('"')).map(|(path, _)| format!("/{path}")).collect()
        };
        let mut paths: Vec<String> = sources.iter().flat_map(|source| after(source, ".route(\"/")).collect();
        paths.extend(after(with_v1, "        (\"/").into_iter().map(|path| format!("/v1{path}")));
        paths.iter().map(|path| path.replace("{*id}", "{id}")).collect()
    }

    #[test]
    fn every_route_is_in_the_document_or_left_out_for_a_reason() {
        let paths = served_paths();
        for path in
            ["/v1/messages/batches/{id}/results", "/api/chat", "/v1/embeddings", "/infill", "/v1/models/{id}"]
        {
            assert!(paths.iter().any(|it| it == path), "the source has no {path}: {paths:?}");
        }
        for path in &paths {
            let is_described = operations().any(|operation| operation.path == path);
            let is_left_out = LEFT_OUT.iter().any(|(left_out, _)| left_out == path);
            assert!(is_described != is_left_out, "{path}: described {is_described}, left out {is_left_out}");
        }
    }

    #[test]
    fn ids_of_operations_are_unique() {
        let document = value();
        let paths = document["paths"].as_object().unwrap().values();
        let mut ids: Vec<String> = paths
            .flat_map(|path| path.as_object().unwrap().values().map(|it| it["operationId"].to_string()))
            .collect();
        assert_eq!(ids.len(), operations().count());
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), operations().count());
    }

    #[test]
    fn the_guide_to_http_has_every_path() {
        let guide =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/HTTP.md")).unwrap();
        for operation in operations() {
            let line = format!("`{} {}", operation.method.to_uppercase(), operation.path);
            assert!(guide.contains(&line), "docs/HTTP.md lacks {line}");
        }
    }
}

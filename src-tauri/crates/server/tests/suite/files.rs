//! Stored files through the real server: both interfaces, uploads in parts, files in messages.
#![allow(clippy::unwrap_used)] // a test

use serde_json::{Value, json};

use crate::fixture::{Answer, Fixture, KEY};

/// A form with fields and a file.
fn form(fields: &[(&str, &str)], field: &str, filename: &str, content: &str) -> String {
    let mut body = String::new();
    for (name, value) in fields {
        body.push_str(&format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        ));
    }
    body + &format!(
        "--xyz\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{filename}\"\r\n\
         Content-Type: text/plain\r\n\r\n{content}\r\n--xyz--\r\n"
    )
}

/// Uploads a form; `more`: further headers.
pub fn send_form(server: &Fixture, path: &str, more: &[(&str, &str)], body: &str) -> Answer {
    let authorization = format!("Bearer {KEY}");
    let kind = ("content-type", "multipart/form-data; boundary=xyz");
    let headers = [&[("authorization", authorization.as_str()), kind], more].concat();
    server.raw("POST", path, &headers, body)
}

/// Stores a file for OpenAI's clients; its id.
pub fn stored(server: &Fixture, purpose: &str, filename: &str, content: &str) -> String {
    let answer =
        send_form(server, "/v1/files", &[], &form(&[("purpose", purpose)], "file", filename, content));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["id"].as_str().unwrap().into()
}

fn get(server: &Fixture, path: &str) -> Answer {
    server.ask("GET", path, &Value::Null)
}

fn chat(part: &Value) -> Value {
    json!({ "model": "starter", "max_tokens": 4, "messages": [{ "role": "user", "content": [part] }] })
}

#[test]
fn files_are_stored_listed_and_deleted() {
    let server = Fixture::new("files");
    let first = stored(&server, "user_data", "a.txt", "first");
    let second = stored(&server, "batch", "b.jsonl", "{}\n");
    let ids = |path: &str| -> Vec<String> {
        let list = get(&server, path).json();
        list["data"].as_array().unwrap().iter().map(|file| file["id"].as_str().unwrap().into()).collect()
    };
    assert_eq!(ids("/v1/files"), [second.clone(), first.clone()]);
    assert_eq!(ids("/files?order=asc&limit=1"), std::slice::from_ref(&first));
    assert_eq!(ids("/v1/files?purpose=batch"), [second]);
    let file = get(&server, &format!("/v1/files/{first}")).json();
    assert_eq!((&file["filename"], &file["bytes"]), (&json!("a.txt"), &json!(5)));
    let content = get(&server, &format!("/v1/files/{first}/content"));
    assert_eq!((content.status, content.body.as_str()), (200, "first"));
    assert!(content.headers.contains("content-type: application/octet-stream"), "{content:?}");
    let deleted = server.ask("DELETE", &format!("/v1/files/{first}"), &Value::Null).json();
    assert_eq!(deleted, json!({ "id": first, "object": "file", "deleted": true }));
    for path in
        [format!("/v1/files/{first}"), format!("/v1/files/{first}/content"), "/v1/files/..%2Fx".into()]
    {
        let answer = get(&server, &path);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!("file.unknown")), "{path}");
    }
    assert_eq!(server.ask("DELETE", &format!("/v1/files/{first}"), &Value::Null).status, 404);
}

#[test]
fn a_form_that_is_wrong_says_why() {
    let server = Fixture::new("file-forms");
    for (body, part) in [
        (form(&[], "file", "a.txt", "x"), "`purpose`"),
        (form(&[("purpose", "x")], "file", "a.txt", "x"), "`purpose`"),
        (form(&[("purpose", "batch")], "other", "a.txt", "x"), "`file`"),
        (form(&[("purpose", "batch"), ("expires_after[seconds]", "1")], "file", "a", "x"), "`anchor`"),
        ("{}".into(), "boundary"),
    ] {
        let answer = send_form(&server, "/v1/files", &[], &body);
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(answer.status == 400 && message.contains(part), "{part}: {answer:?}");
    }
    let json = server.ask("POST", "/v1/files", &json!({ "purpose": "batch" }));
    assert!(json.status == 400 && json.body.contains("multipart/form-data"), "{json:?}");
}

#[test]
fn messages_name_stored_files() {
    let server = Fixture::new("file-parts");
    let id = stored(&server, "user_data", "a.txt", "The stove is green.");
    let data = "data:text/plain;base64,VGhlIHN0b3ZlIGlzIGdyZWVuLg==";
    let by_id = json!({ "type": "file", "file": { "file_id": id } });
    let whole = json!({ "type": "file", "file": { "filename": "a.txt", "file_data": data } });
    let tokens = |path: &str, body: &Value| {
        let answer = server.ask("POST", path, body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["input_tokens"].as_u64().unwrap()
    };
    let path = "/v1/chat/completions/input_tokens";
    assert_eq!(tokens(path, &chat(&by_id)), tokens(path, &chat(&whole)));
    let input = |part: Value| json!({ "model": "starter", "input": [{ "role": "user", "content": [part] }] });
    let path = "/v1/responses/input_tokens";
    assert_eq!(
        tokens(path, &input(json!({ "type": "input_file", "file_id": id }))),
        tokens(path, &input(json!({ "type": "input_file", "filename": "a.txt", "file_data": data })))
    );
    let path = "/v1/messages/count_tokens";
    let document = |source: Value| chat(&json!({ "type": "document", "title": "a.txt", "source": source }));
    let base64 =
        json!({ "type": "base64", "media_type": "text/plain", "data": data.split_once(',').unwrap().1 });
    assert_eq!(
        tokens(path, &document(json!({ "type": "file", "file_id": id }))),
        tokens(path, &document(base64))
    );
    let unknown = json!({ "type": "file", "file": { "file_id": "file-none" } });
    let answer = server.ask("POST", "/v1/chat/completions", &chat(&unknown));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!("file.unknown")));
}

#[test]
fn clients_of_anthropic_have_their_own_form() {
    let server = Fixture::new("file-anthropic");
    let version = [("anthropic-version", "2023-06-01")];
    let body = form(&[("expires_in_seconds", "3600")], "file", "a.txt", "hello");
    let file = send_form(&server, "/v1/files", &version, &body).json();
    assert_eq!((&file["type"], &file["size_bytes"]), (&json!("file"), &json!(5)), "{file}");
    let id = file["id"].as_str().unwrap();
    let authorization = format!("Bearer {KEY}");
    let ask = |method: &str, path: &str| {
        server.raw(method, path, &[("authorization", authorization.as_str()), version[0]], "")
    };
    assert_eq!(ask("GET", "/v1/files?limit=5").json()["data"][0], file);
    assert_eq!(ask("GET", &format!("/v1/files/{id}")).json(), file);
    assert_eq!(ask("GET", &format!("/v1/files/{id}/content")).body, "hello");
    let deleted = ask("DELETE", &format!("/v1/files/{id}")).json();
    assert_eq!(deleted, json!({ "id": id, "type": "file_deleted" }));
    let missing = ask("GET", &format!("/v1/files/{id}"));
    assert_eq!((missing.status, &missing.json()["error"]["type"]), (404, &json!("not_found_error")));
}

#[test]
fn parts_become_a_file_in_the_order_that_the_client_names() {
    let server = Fixture::new("uploads");
    let upload = |bytes: u64| {
        let body =
            json!({ "bytes": bytes, "filename": "a.txt", "mime_type": "text/plain", "purpose": "user_data" });
        server.ask("POST", "/v1/uploads", &body).json()["id"].as_str().unwrap().to_owned()
    };
    let part = |id: &str, content: &str| {
        let path = format!("/v1/uploads/{id}/parts");
        send_form(&server, &path, &[], &form(&[], "data", "blob", content))
    };
    let id = upload(5);
    let parts: Vec<String> =
        ["lo", "hel"].iter().map(|text| part(&id, text).json()["id"].as_str().unwrap().into()).collect();
    assert_eq!(part(&id, "!").status, 409, "longer than it was created with");
    let complete = |id: &str, ids: &[&String]| {
        server.ask("POST", &format!("/v1/uploads/{id}/complete"), &json!({ "part_ids": ids }))
    };
    assert_eq!(complete(&id, &[&parts[0]]).status, 409, "a part is missing");
    assert_eq!(complete(&id, &[&"part_x".to_owned()]).status, 400);
    let done = complete(&id, &[&parts[1], &parts[0]]).json();
    assert_eq!((&done["status"], &done["file"]["bytes"]), (&json!("completed"), &json!(5)), "{done}");
    let file = done["file"]["id"].as_str().unwrap();
    assert_eq!(get(&server, &format!("/v1/files/{file}/content")).body, "hello");
    assert_eq!(complete(&id, &[&parts[1], &parts[0]]).status, 409, "it has ended");
    assert_eq!(std::fs::read_dir(server.home.join("api-files")).unwrap().count(), 1, "the parts are gone");
    let other = upload(9);
    let cancelled = server.ask("POST", &format!("/v1/uploads/{other}/cancel"), &Value::Null).json();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!((part(&other, "x").status, part("upload_x", "x").status), (409, 404));
}

//! Exports with broken parts: what can be used is found, and the rest is named.

use std::io::Cursor;

use contract::ErrorKind;
use serde_json::{Value, json};

use super::*;

/// What a file holds.
struct ImportOutcome {
    conversations: Vec<ImportedConversation>,
    faults: Vec<ImportFault>,
    outcome: Result<()>,
}

fn find(bytes: &[u8]) -> ImportOutcome {
    let (mut conversations, mut faults) = (Vec::new(), Vec::new());
    let outcome = read(
        &mut Cursor::new(bytes),
        &mut |item| match item {
            Ok(conversation) => conversations.push(conversation),
            Err(fault) => faults.push(fault),
        },
        &mut |_| {},
    );
    ImportOutcome { conversations, faults, outcome }
}

/// Titles, and names with codes of what could not be read.
fn check(bytes: &[u8], titles: &[&str], faults: &[(&str, &str)]) -> Vec<ImportedConversation> {
    let found = find(bytes);
    found.outcome.unwrap();
    let found_titles: Vec<_> =
        found.conversations.iter().map(|it| it.archive.conversation.title.as_str()).collect();
    assert_eq!(found_titles, titles);
    let found_faults: Vec<_> = found.faults.iter().map(|it| (it.name.as_str(), it.code)).collect();
    assert_eq!(found_faults, faults);
    found.conversations
}

/// Id, parent and text of each message.
fn messages(conversation: &ImportedConversation) -> Vec<(&str, Option<&str>, &str)> {
    let rows = conversation.archive.messages.iter().map(|(row, _)| row);
    rows.map(|row| (row.id.as_str(), row.parent.as_deref(), row.text.as_str())).collect()
}

#[test]
fn one_broken_conversation_costs_no_other() {
    let found = check(
        include_bytes!("../tests/import/onenull.json"),
        &["good", "good"],
        &[("Number 2", "import.unknown")],
    );
    assert_eq!(messages(&found[1]), [("u", None, "hello?"), ("a", Some("u"), "hi there")]);
    check(
        include_bytes!("../tests/import/manybroken.zip"),
        &["part 0", "part 2"],
        &[("conversations-001.json, Number 1", "import.broken")],
    );
    let good = json!({"title": "good", "mapping": {"a": {"message":
        {"author": {"role": "user"}, "content": {"parts": ["x"]}}, "parent": null, "children": []}}});
    let broken = [
        ("7", ("Number 2", "import.unknown")),
        ("\"text\"", ("Number 2", "import.unknown")),
        ("[[]]", ("Number 2", "import.unknown")),
        ("{\"a\":1}", ("Number 2", "import.unknown")),
        ("{\"title\":\"T\",\"mapping\":null}", ("T", "import.conversation")),
        ("{\"title\":\"T\",\"mapping\":{\"a\":7}}", ("T", "import.conversation")),
        ("{\"name\":\"N\",\"chat_messages\":{}}", ("N", "import.conversation")),
        ("{\"title\" \"T\"}", ("Number 2", "import.broken")),
    ];
    for (item, fault) in broken {
        check(format!("[{good},{item},{good}]").as_bytes(), &["good", "good"], &[fault]);
        check(
            format!("{{\"conversations\":[{good},{item},{good}]}}").as_bytes(),
            &["good", "good"],
            &[fault],
        );
    }
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    check(format!("[{deep},{good}]").as_bytes(), &["good"], &[("Number 1", "import.broken")]);
    let cut = format!("[{good},{good}");
    check(&cut.as_bytes()[..cut.len() - 9], &["good"], &[("Number 2", "import.broken")]);
    // One after another, and alone.
    check(format!("{good}\n{good}").as_bytes(), &["good", "good"], &[]);
    check(good.to_string().as_bytes(), &["good"], &[]);
}

#[test]
fn our_own_export_is_read_conversation_by_conversation() {
    let message = json!({"id": "m", "parent": null, "role": "user", "text": "x", "state": "complete"});
    let good = json!({"id": "c", "title": "good", "messages": [message]});
    let wrong = json!({"id": "d", "title": "wrong", "messages": [{"id": "m"}]});
    let list = format!("[{good},{wrong},null,{good}]");
    let faults = [("wrong", "import.conversation"), ("Number 3", "import.conversation")];
    let format = "\"format\":\"inglenook.conversations\"";
    check(
        format!("{{{format},\"version\":1,\"conversations\":{list}}}").as_bytes(),
        &["good", "good"],
        &faults,
    );
    check(
        format!("{{\"conversations\":{list},\"version\":1,{format}}}").as_bytes(),
        &["good", "good"],
        &faults,
    );
    let refused = |rest: &str, code: &str| {
        let found = find(format!("{{\"conversations\":{list}{rest}}}").as_bytes());
        assert_eq!(found.outcome.unwrap_err().code(), code, "{rest}");
        assert!(found.conversations.is_empty());
    };
    refused(&format!(",{format},\"version\":9"), "import.newer");
    refused(&format!(",{format}"), "import.broken");
    refused(",\"format\":\"other\",\"version\":1", "import.broken");
}

#[test]
fn half_characters_become_the_replacement_character() {
    let found = check(include_bytes!("../tests/import/surrogate.json"), &["good", "sur"], &[]);
    assert_eq!(messages(&found[1])[0].2, "cut emoji \u{fffd}");
    let of = |text: &str| {
        format!(
            "[{{\"title\":\"t\",\"create_time\":NaN,\"mapping\":{{\"a\":{{\"message\":{{\"author\":{{\"role\":\"user\"}},\
             \"content\":{{\"parts\":[\"{text}\"]}}}}}}}}}}]"
        )
    };
    for (text, expected) in [
        (r"\ud83d\ude00", "😀"),
        (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (r"\ud83d\ud83d\ude00!", "\u{fffd}😀!"),
        (r"\\ud83d \ud83d", "\\ud83d \u{fffd}"),
    ] {
        assert_eq!(messages(&check(of(text).as_bytes(), &["t"], &[])[0])[0].2, expected, "{text}");
    }
    let bytes =
        [of("x").replace('x', "").split("[\"\"]").collect::<Vec<_>>().join("[\"a\u{1}\"]").as_bytes(), b""]
            .concat();
    let mut bytes = bytes;
    let at = bytes.iter().position(|byte| *byte == 1).unwrap();
    bytes[at] = 0xff;
    assert_eq!(messages(&check(&bytes, &["t"], &[])[0])[0].2, "a\u{fffd}");
    let own = br#"{"format":"inglenook.conversations","version":1,"conversations":[{"id":"c","title":"t","messages":[{"id":"m","parent":null,"role":"user","text":"\udc00","state":"complete"}]}]}"#;
    assert_eq!(messages(&check(own, &["t"], &[])[0])[0].2, "\u{fffd}");
    let claude = br#"[{"name":"t","chat_messages":[{"uuid":"m","sender":"human","text":"\ud800x"}]}]"#;
    assert_eq!(messages(&check(claude, &["t"], &[])[0])[0].2, "\u{fffd}x");
}

#[test]
fn citation_marks_do_not_stay() {
    let found = check(include_bytes!("../tests/import/cite.json"), &["cite"], &[]);
    let expected = "Paris is the capital ([Wiki](https://en.wikipedia.org/wiki/Paris)). See Paris too.";
    assert_eq!(messages(&found[0])[1].2, expected);
}

#[test]
fn claudes_messages_may_come_in_any_order_and_twice() {
    let found = check(include_bytes!("../tests/import/claude-order.json"), &["order"], &[]);
    assert_eq!(
        messages(&found[0]),
        [
            ("a", None, "question second in file"),
            ("b", Some("a"), "answer first in file"),
            ("c", Some("b"), "third"),
        ]
    );
    let found = check(include_bytes!("../tests/import/claude-dup.json"), &["dup"], &[]);
    assert_eq!(
        messages(&found[0]),
        [("a", None, "q"), ("a-1", None, "q edited"), ("b", Some("a-1"), "an")],
        "an edit is another version"
    );
    let message = |id: Value, parent: Value, sender: &str| json!({"uuid": id, "parent_message_uuid": parent, "sender": sender, "text": sender});
    let chat = |messages: Value| json!([{"name": "t", "chat_messages": messages}]).to_string();
    // Left out: what no one said. What follows it stays in its place.
    let text = chat(json!([
        message(json!("a"), json!("0"), "human"),
        message(json!("x"), json!("a"), "narrator"),
        null,
        message(json!("b"), json!("x"), "assistant"),
        message(json!("b"), json!("x"), "assistant"),
    ]));
    let found = check(text.as_bytes(), &["t"], &[]);
    assert_eq!(messages(&found[0]), [("a", None, "human"), ("b", Some("a"), "assistant")]);
    assert_eq!(found[0].omissions.len(), 2, "{:?}", found[0].omissions);
    // A cycle is left out; alone it is a fault.
    let cycle = [message(json!("c"), json!("d"), "human"), message(json!("d"), json!("c"), "human")];
    let text = chat(json!([message(json!("a"), json!("0"), "human"), cycle[0], cycle[1]]));
    let found = check(text.as_bytes(), &["t"], &[]);
    assert_eq!((messages(&found[0]).len(), found[0].omissions.len()), (1, 1));
    check(chat(json!(cycle)).as_bytes(), &[], &[("t", "import.conversation")]);
    // Without parents: a line.
    let line = chat(json!([
        {"uuid": "a", "sender": "human", "text": "1"}, {"uuid": "a", "sender": "assistant", "text": "2"}]));
    let found = check(line.as_bytes(), &["t"], &[]);
    assert_eq!(messages(&found[0]), [("a", None, "1"), ("a-1", Some("a"), "2")]);
}

#[test]
fn chatgpts_nodes_that_are_none_cost_no_other() {
    let user = json!({"author": {"role": "user"}, "content": {"parts": ["hi"]}});
    let nodes = json!({
        "r": null,
        "u": {"message": user, "parent": "r", "children": null},
        "n": 5,
        "x": {"message": 7, "parent": "u", "children": ["a"]},
        "a": {"message": {"author": {"role": "assistant"}, "content": {"parts": [null, "yes", {}]}}, "parent": "x"},
        "c": {"parent": "d"}, "d": {"parent": "c"},
    });
    let text = json!([{"title": "t", "mapping": nodes, "current_node": "gone"}]).to_string();
    let found = check(text.as_bytes(), &["t"], &[]);
    assert_eq!(messages(&found[0]), [("u", None, "hi"), ("a", Some("u"), "yes\n\n[attachment]")]);
    assert_eq!(found[0].omissions.len(), 1, "the cycle");
}

#[test]
fn damaged_archives_give_what_is_whole() {
    let whole = include_bytes!("../tests/import/manybroken.zip");
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << bit;
            let found = find(&bytes);
            assert!(found.conversations.len() <= 2);
        }
    }
    // A bit of the first file's content: the third file is still found.
    let mut bytes = whole.to_vec();
    bytes[60] ^= 1;
    let found = find(&bytes);
    assert_eq!(found.conversations.len(), 1, "{:?}", found.faults);
}

/// A conversation of one message with an image, and the image's hash.
fn with_image(name: &str, bytes: &[u8]) -> (ConversationArchive, String) {
    let sha256 = documents::sha256(bytes);
    let record = json!({"sha256": sha256, "width": 1, "height": 1, "thumbnail": "data:,"}).to_string();
    let document = documents::sha256(&record);
    let file = session::AttachmentRow {
        id: "f".into(),
        message: "m".into(),
        document: document.clone(),
        name: name.into(),
        kind: "image".into(),
        bytes: bytes.len() as i64,
        findings: None,
        is_whole: true,
        tokens: None,
        is_about: false,
        from_project: false,
    };
    let attached = session::MessageAttachments { files: vec![file], passages: Vec::new() };
    let files = session::ArchivedFiles {
        by_message: [("m".into(), attached)].into(),
        documents: [(document, record.into())].into(),
    };
    let row = session::MessageRow { text: "Look".into(), ..session::MessageRow::new("m".into()) };
    let conversation = session::ConversationRow {
        title: "seen".into(),
        leaf: Some("m".into()),
        ..session::ConversationRow::new("c".into())
    };
    (ConversationArchive { conversation, folder: None, messages: vec![(row, Vec::new())], files }, sha256)
}

fn written(archives: &[ConversationArchive], format: ExportFormat, read: Option<&ReadImageFn<'_>>) -> String {
    let mut text = Vec::new();
    write(&mut text, archives, format, read, 0).unwrap();
    String::from_utf8(text).unwrap()
}

/// Imports a text into a new folder: the stored originals, and what was told of the import.
fn imported(name: &str, text: &str, hashes: &[&str]) -> (Vec<Option<Vec<u8>>>, ImportFailures) {
    let data = std::env::temp_dir().join(format!("inglenook-interchange-{name}-{}", std::process::id()));
    let images = session::images::ImageStore::new(&data, &io::RealIo);
    let mut adopt = |_: ConversationArchive| -> Result<()> { Ok(()) };
    let target = ImportTarget { model: "m", now_ms: 1, images: images.clone(), adopt: &mut adopt };
    let failures = import(&mut Cursor::new(text), target).unwrap();
    let stored = hashes.iter().map(|hash| images.read(hash).unwrap()).collect();
    let _ = std::fs::remove_dir_all(&data);
    (stored, failures)
}

#[test]
fn a_full_disk_is_told_as_such_and_is_no_fault_of_a_chat() {
    let (archive, _) = with_image("a.png", b"\x89PNG\r\n\x1a\nnot decoded here");
    let text = written(&[archive.clone(), archive], ExportFormat::Json, None);
    let mut n_tried = 0;
    let mut adopt = |_: ConversationArchive| -> Result<()> {
        n_tried += 1;
        let full =
            || Error::new(ErrorKind::Limit, "session.disk_full", "The disk is full.", "Free up disk space.");
        if n_tried == 1 { Ok(()) } else { Err(full()) }
    };
    let images = session::images::ImageStore::new(&std::env::temp_dir(), &io::RealIo);
    let target = ImportTarget { model: "m", now_ms: 1, images, adopt: &mut adopt };
    let failures = import(&mut Cursor::new(text), target).unwrap();
    let told = failures.listed.iter().find(|it| it.code == "session.disk_full").unwrap();
    assert_eq!(
        (told.message.as_str(), told.remedy.as_str()),
        ("seen: The disk is full.", "Free up disk space.")
    );
    assert_eq!(failures.n_failed, 1);
}

#[test]
fn images_leave_and_come_back_with_every_byte() {
    let png = b"\x89PNG\r\n\x1a\nnot decoded here";
    let (archive, sha256) = with_image("a [big]\nfox.png", png);
    let read = |hash: &str| (hash == sha256).then(|| png.to_vec());
    // The same image in two conversations is written once.
    let both = [archive.clone(), archive.clone()];
    let text = written(&both, ExportFormat::Json, Some(&read));
    assert_eq!(text.matches(&documents::base64::encode(png)).count(), 1);
    let (stored, failures) = imported("whole", &text, &[&sha256]);
    assert_eq!((stored, failures.listed), (vec![Some(png.to_vec())], Vec::new()));

    // Without the original, with a damaged one, with one that nothing refers to.
    let (stored, failures) = imported("none", &written(&both[..1], ExportFormat::Json, None), &[&sha256]);
    assert_eq!((stored, failures.n_failed, failures.listed.len()), (vec![None], 0, 1));
    assert!(failures.listed[0].message.contains("seen: 1 images are missing"), "{failures:?}");
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let stray = documents::sha256(b"stray");
    value["images"] = json!({ sha256.clone(): "Zm9v", stray.clone(): "c3RyYXk=", "../x": 7 });
    let (stored, failures) = imported("damaged", &value.to_string(), &[&sha256, &stray]);
    assert_eq!((stored, failures.n_failed), (vec![None, None], 2));
    assert!(failures.listed.iter().any(|it| it.code == "import.image" && it.message.contains(&sha256)));
    assert!(find(text.as_bytes()).outcome.is_ok());
}

#[test]
fn markdown_shows_images_and_has_their_bytes_at_the_end() {
    let jpeg = b"\xff\xd8\xffabc";
    let (archive, sha256) = with_image("a [big]\nfox.jpg", jpeg);
    let read = |hash: &str| (hash == sha256).then(|| jpeg.to_vec());
    let text = written(std::slice::from_ref(&archive), ExportFormat::Md, Some(&read));
    let label = format!("image-{}", &sha256[..16]);
    let end = format!("\n[{label}]: data:image/jpeg;base64,/9j/YWJj\n");
    assert!(text.ends_with(&end), "{text}");
    assert!(text.contains(&format!("- ![a \\[big\\] fox.jpg][{label}]\n")), "{text}");
    for text in [
        written(std::slice::from_ref(&archive), ExportFormat::Md, None),
        written(&[archive], ExportFormat::Md, Some(&|_| None)),
    ] {
        assert!(text.contains("- Attached: a [big]") && !text.contains("base64"), "{text}");
    }
}

#[test]
fn markdown_has_each_message_of_a_cycle_once() {
    let message = |id: &str, parent: &str| json!({ "id": id, "parent": parent, "role": "user", "text": id, "state": "complete" });
    let chat =
        json!({ "id": "c", "title": "t", "leaf": "n", "messages": [message("m", "n"), message("n", "m")] });
    let file = json!({ "format": "inglenook.conversations", "version": 1, "conversations": [chat] });
    let found = check(file.to_string().as_bytes(), &["t"], &[]);
    let mut markdown = Vec::new();
    write(&mut markdown, &[found[0].archive.clone()], ExportFormat::Md, None, 1).unwrap();
    let markdown = String::from_utf8(markdown).unwrap();
    assert!(markdown.ends_with("\n## You\n\nm\n\n## You\n\nn\n"), "{markdown}");
}

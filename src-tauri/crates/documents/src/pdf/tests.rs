//! Reading PDFs made here: valid, odd, hostile and broken ones.

use std::time::Duration;

use lopdf::content::{Content, Operation};
use lopdf::{Document, Object, Stream, dictionary};

mod producers;

use super::{PAGE_BREAK, read, within};

/// A page for each list of operations.
fn pdf(pages: &[Vec<Operation>]) -> Vec<u8> {
    let encode = |operations: &Vec<Operation>| Content { operations: operations.clone() }.encode().unwrap();
    drawn(pages.iter().map(encode).collect())
}

/// A page for each stream.
fn drawn(pages: Vec<Vec<u8>>) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica", "Encoding" => "WinAnsiEncoding",
    });
    let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let mut kids: Vec<Object> = Vec::new();
    for content in pages {
        let content = document.add_object(Stream::new(dictionary! {}, content));
        let page = dictionary! {
            "Type" => "Page", "Parent" => tree, "Contents" => content, "Resources" => resources,
            "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
        };
        kids.push(document.add_object(page).into());
    }
    let n = kids.len() as i64;
    document.objects.insert(tree, dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => n }.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    document.compress();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn operation(operator: &str, operands: Vec<Object>) -> Operation {
    Operation::new(operator, operands)
}

/// Lines of text, one below the other.
fn lines(lines: &[&str]) -> Vec<Operation> {
    let mut page = vec![
        operation("BT", vec![]),
        operation("Tf", vec!["F1".into(), 12.into()]),
        operation("Td", vec![72.into(), 770.into()]),
    ];
    for line in lines {
        page.push(operation("Tj", vec![Object::string_literal(*line)]));
        page.push(operation("Td", vec![0.into(), (-14).into()]));
    }
    page.push(operation("ET", vec![]));
    page
}

#[test]
fn pages_and_lines_are_kept() {
    let bytes = pdf(&[lines(&["First line", "second line"]), lines(&[]), lines(&["On page three"])]);
    let expected = format!("First line\nsecond line{PAGE_BREAK}{PAGE_BREAK}On page three");
    assert_eq!(read(&bytes).unwrap(), expected);
}

#[test]
fn places_make_spaces_lines_and_paragraphs() {
    let text = |piece: &str| operation("Tj", vec![Object::string_literal(piece)]);
    let to = |x: i64, y: i64| operation("Td", vec![x.into(), y.into()]);
    let page = vec![
        operation("BT", vec![]),
        operation("Tf", vec!["F1".into(), 10.into()]),
        to(50, 700),
        text("left"),
        to(200, 0),
        text("right"),
        to(-200, -12),
        operation(
            "TJ",
            vec![Object::Array(vec![
                Object::string_literal("ker"),
                20.into(),
                Object::string_literal("ned"),
                (-300).into(),
                Object::string_literal("word"),
            ])],
        ),
        to(0, -40),
        text("new paragraph"),
        operation("TL", vec![12.into()]),
        operation("'", vec![Object::string_literal("next")]),
        operation("ET", vec![]),
    ];
    assert_eq!(read(&pdf(&[page])).unwrap(), "left right\nkerned word\n\nnew paragraph\nnext");
}

#[test]
fn forms_are_read_and_those_in_circles_end() {
    let mut document = Document::load_mem(&pdf(&[lines(&["outside"])])).unwrap();
    let page = document.page_iter().next().unwrap();
    let font = document.get_page_resources(page).unwrap().1[0];
    let font = document.get_dictionary(font).unwrap().get(b"Font").unwrap().clone();
    let form = document.new_object_id();
    let content =
        Content { operations: [lines(&["inside"]), vec![operation("Do", vec!["X".into()])]].concat() };
    let own = dictionary! { "Font" => font.clone(), "XObject" => dictionary! { "X" => form } };
    let dict = dictionary! { "Type" => "XObject", "Subtype" => "Form", "Resources" => own };
    document.objects.insert(form, Stream::new(dict, content.encode().unwrap()).into());
    let resources = dictionary! { "Font" => font, "XObject" => dictionary! { "X" => form } };
    let dictionary = document.get_object_mut(page).unwrap().as_dict_mut().unwrap();
    dictionary.set("Resources", resources);
    let content = [lines(&["outside"]), vec![operation("Do", vec!["X".into()]); 4000]].concat();
    document.change_page_content(page, Content { operations: content }.encode().unwrap()).unwrap();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    let text = read(&bytes).unwrap();
    assert!(text.starts_with("outside\n") && text.contains("inside"), "{:?}", &text[..40.min(text.len())]);
}

#[test]
fn what_is_no_pdf_or_has_no_text_is_refused() {
    let whole = pdf(&[lines(&["text"])]);
    let cases: &[(&[u8], &str)] = &[
        (b"%PDF-1.7\n", "not a readable PDF"),
        (
            b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 1 0 R>>\nendobj\ntrailer<</Root 1 0 R>>\n",
            "not a readable PDF",
        ),
        (&whole[..whole.len() / 2], ""),
    ];
    for (bytes, why) in cases {
        let problem = read(bytes).unwrap_err();
        assert!(problem.why.contains(why) && !problem.remedy.is_empty(), "{problem:?}");
    }
    assert_eq!(read(&pdf(&[lines(&[]), lines(&[])])).unwrap(), "\u{c}");
    let late = within(&pdf(&vec![lines(&["x"; 50]); 400]), Duration::ZERO).unwrap_err();
    assert!(late.why.contains("longer than"), "{late:?}");
}

#[test]
fn a_stream_that_unpacks_to_too_much_is_an_empty_page() {
    let page = Content { operations: lines(&["a page"]) }.encode().unwrap();
    let bytes = drawn(vec![page, b"n\n".repeat(20 << 20)]);
    assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
    assert_eq!(read(&bytes).unwrap(), format!("a page{PAGE_BREAK}"));
}

/// Damages of every kind: none ends more than the reading, and none takes long.
#[test]
fn damaged_files_end_in_words() {
    let bytes = pdf(&[lines(&["First line", "second (line)"]), lines(&["third"])]);
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let pieces: &[&[u8]] =
        &[b"<<", b">>", b"[", b"]", b"(", b"-99999999999", b"/Kids", b" 1 0 R", b"stream\n", b"\0", b"1e999"];
    for _ in 0..400 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + next(8) {
            let at = next(damaged.len());
            match next(4) {
                0 => damaged[at] = next(256) as u8,
                1 => drop(damaged.splice(at..at, pieces[next(pieces.len())].iter().copied())),
                2 => drop(damaged.drain(at..(at + next(40)).min(damaged.len()))),
                _ => damaged.truncate(at.max(8)),
            }
        }
        // Whatever it says, the reader returns.
        let _ = read(&damaged);
    }
    for nested in [b"[".as_slice(), b"<</A ", b"("] {
        let deep = [b"%PDF-1.4\n1 0 obj\n".as_slice(), &nested.repeat(200_000)].concat();
        assert!(read(&deep).is_err());
    }
}

//! Files of real programs and of the odd habits of some, against the text that they were made from.

use std::fs;
use std::path::Path;

use lopdf::{Dictionary, Document, Object, Stream, dictionary};
use unicode_normalization::UnicodeNormalization as _;

use super::super::read;

/// Letters in order, each with its accents in canonical order; spaces and line breaks are a matter of layout.
fn letters(text: &str) -> String {
    text.nfc().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn files_of_many_programs_give_the_text_they_were_made_from() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pdf");
    let mut n = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "pdf") {
            continue;
        }
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
        let found = read(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(letters(&found), letters(&expected), "{}", path.display());
        n += 1;
    }
    assert_eq!(n, 40);
}

/// Thai lines end within words, and two files lean letters over blanks.
const WITH_OTHER_WORDS: [&str; 4] =
    ["chromium-nastaliq.pdf", "lualatex-arabic-vowels.pdf", "weasyprint-thai.pdf", "xelatex-thai.pdf"];

#[test]
fn words_end_where_they_end_on_the_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pdf");
    let words = |text: &str| text.nfc().collect::<String>().split_whitespace().map(str::to_owned).collect();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let is_other = WITH_OTHER_WORDS.iter().any(|name| path.ends_with(name));
        if is_other || path.extension().is_none_or(|it| it != "pdf") {
            continue;
        }
        let expected: Vec<String> = words(&fs::read_to_string(path.with_extension("txt")).unwrap());
        let found: Vec<String> = words(&read(&fs::read(&path).unwrap()).unwrap());
        assert_eq!(found, expected, "{}", path.display());
    }
}

/// A page that draws `bytes` with `font`, and a stream that the font may refer to as object 1.
fn page(font: Dictionary, referred: Stream, bytes: &[u8]) -> Document {
    let mut document = Document::with_version("1.5");
    assert_eq!(document.add_object(referred), (1, 0));
    let mut content = b"BT /F1 12 Tf 50 700 Td <".to_vec();
    content.extend(bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    content.extend(b"> Tj ET");
    let content = document.add_object(Stream::new(Dictionary::new(), content));
    let tree = document.new_object_id();
    let page = document.add_object(dictionary! {
        "Type" => "Page", "Parent" => tree, "Contents" => content,
        "Resources" => dictionary! { "Font" => dictionary! { "F1" => font } },
    });
    let kids: Vec<Object> = vec![page.into()];
    document.objects.insert(tree, dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => 1 }.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    document
}

fn text(mut document: Document) -> String {
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    read(&bytes).unwrap()
}

fn map(entries: &str) -> Stream {
    Stream::new(Dictionary::new(), entries.as_bytes().to_vec())
}

#[test]
fn codes_of_simple_fonts_are_single_bytes_whatever_their_map_says() {
    let font = |encoding: Object| {
        dictionary! {
            "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "X", "Encoding" => encoding, "ToUnicode" => (1, 0),
        }
    };
    let two_bytes = "1 begincodespacerange <0000> <FFFF> endcodespacerange
        2 beginbfrange <0041> <0042> <0061> <0043> <0043> <00660069> endbfrange";
    assert_eq!(text(page(font("WinAnsiEncoding".into()), map(two_bytes), b"ABCD")), "abfiD");
    let names = vec![1.into(), Object::Name(b"ff".to_vec()), Object::Name(b"quoteright".to_vec())];
    let differences = dictionary! { "Type" => "Encoding", "Differences" => names };
    let partial = "1 beginbfchar <03> <0078> endbfchar";
    assert_eq!(text(page(font(differences.into()), map(partial), b"\x01\x02\x03a")), "ff’xa");
}

#[test]
fn composite_fonts_are_read_by_their_own_map_of_codes() {
    let font = |encoding: Object, ordering: &str| {
        let info = dictionary! {
            "Registry" => Object::string_literal("Adobe"), "Ordering" => Object::string_literal(ordering),
            "Supplement" => 0,
        };
        let descendant =
            dictionary! { "Type" => "Font", "Subtype" => "CIDFontType0", "CIDSystemInfo" => info };
        let descendants: Vec<Object> = vec![descendant.into()];
        dictionary! { "Type" => "Font", "Subtype" => "Type0", "Encoding" => encoding, "DescendantFonts" => descendants }
    };
    let own = "/90ms-RKSJ-H usecmap 1 begincodespacerange <00> <7f> endcodespacerange
        1 begincodespacerange <8140> <9ffc> endcodespacerange 1 begincidchar <41> 843 endcidchar";
    let embedded = font(Object::Reference((1, 0)), "Japan1");
    assert_eq!(text(page(embedded, map(own), b"A\x82\xa0")), "ああ");
    let identity = font("Identity-H".into(), "Japan1");
    assert_eq!(text(page(identity, map(""), b"\x03\x4b\x04\x65")), "あ亜");
    let mut unknown = font("Identity-H".into(), "Identity");
    assert_eq!(text(page(unknown.clone(), map(""), b"\x00\x05\x00\x06")), "\u{fffd}\u{fffd}");
    // XeTeX maps what its font lacks to U+FFFF.
    unknown.set("ToUnicode", Object::Reference((1, 0)));
    let lacking = map("2 beginbfchar <0005> <FFFF> <0006> <0041> endbfchar");
    assert_eq!(text(page(unknown, lacking, b"\x00\x05\x00\x06")), "\u{fffd}A");
}

#[test]
fn filters_may_stand_elsewhere_in_the_file() {
    let font = dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica" };
    let mut document = page(font, map(""), b"plain");
    let filter =
        document.add_object(vec![Object::Name(b"AHx".to_vec()), Object::Name(b"ASCII85Decode".to_vec())]);
    let content = "BT /F1 9 Tf (far) Tj ET";
    let encoded: String = ascii85(content.as_bytes()).bytes().map(|byte| format!("{byte:02x}")).collect();
    let stream = Stream::new(dictionary! { "Filter" => filter }, format!("{encoded}>").into_bytes());
    let page = document.page_iter().next().unwrap();
    let stream = document.add_object(stream.with_compression(false));
    document.get_dictionary_mut(page).unwrap().set("Contents", stream);
    assert_eq!(text(document), "far");
}

fn ascii85(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(4) {
        let mut word = [0_u8; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        let mut value = u32::from_be_bytes(word);
        let mut digits = [0_u8; 5];
        for digit in digits.iter_mut().rev() {
            *digit = b'!' + (value % 85) as u8;
            value /= 85;
        }
        text.extend(digits[..=chunk.len()].iter().map(|digit| char::from(*digit)));
    }
    text + "~>"
}

#[test]
fn text_is_read_in_the_direction_it_runs() {
    let font = dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica" };
    let mut document = page(font, map(""), b"");
    let content = b"BT /F1 10 Tf 0 1 -1 0 300 100 Tm [(up) -600 (wards)] TJ
        1 0 0 1 50 50 Tm (twice) Tj 1 0 0 1 50.3 50 Tm (twice) Tj ET
        /Span <</ActualText (office)>> BDC BT /F1 10 Tf 50 20 Td (o\xdece) Tj (x) Tj ET EMC";
    let page = document.page_iter().next().unwrap();
    let stream = document.add_object(Stream::new(Dictionary::new(), content.to_vec()));
    document.get_dictionary_mut(page).unwrap().set("Contents", stream);
    assert_eq!(text(document), "up wards\n\ntwice\n\noffice");
}

#[test]
fn damaged_fonts_and_fields_cost_themselves() {
    let broken = [
        dictionary! { "Type" => "Font", "Subtype" => "Type0", "DescendantFonts" => vec![Object::Reference((1, 0))] },
        dictionary! { "Type" => "Font", "Subtype" => "TrueType", "FontDescriptor" => dictionary! { "FontFile2" => (1, 0) } },
        dictionary! { "Type" => "Font", "Subtype" => "Type1", "ToUnicode" => (1, 0), "FirstChar" => i64::MAX, "Widths" => vec![1.into()] },
    ];
    for font in broken {
        let mut document = page(font, map("beginbfrange <00> <ff> [ endbfrange"), b"A");
        let id = document.new_object_id();
        let loop_field = dictionary! { "Subtype" => "Widget", "Parent" => id, "FT" => "Tx", "V" => Object::string_literal("value") };
        document.objects.insert(id, loop_field.into());
        let page = document.page_iter().next().unwrap();
        let annotations: Vec<Object> = vec![Object::Null, id.into(), Object::Reference((999, 0))];
        document.get_dictionary_mut(page).unwrap().set("Annots", annotations);
        assert!(text(document).ends_with("value"));
    }
}

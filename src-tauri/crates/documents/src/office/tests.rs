//! Tests of what all office formats share.

use contract::types::AttachmentKind;

use super::read;
use super::test_archive::{docx, markdown_of, office, open_document, relationship, zip};
use crate::extract;
use crate::extract_error::ExtractError;

const SLIDES: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml";

fn presentation(slide: &str) -> Vec<u8> {
    let list = "<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"b\"/><p:sldId id=\"257\" r:id=\"a\"/></p:sldIdLst></p:presentation>";
    let links =
        [relationship("a", "slide", "slides/slide1.xml"), relationship("b", "slide", "slides/slide2.xml")];
    let links = format!("<Relationships>{}</Relationships>", links.concat());
    let notes = format!(
        "<Relationships>{}</Relationships>",
        relationship("n", "notesSlide", "../notesSlides/n1.xml")
    );
    office(
        "ppt/presentation.xml",
        SLIDES,
        &[
            ("ppt/presentation.xml", list),
            ("ppt/_rels/presentation.xml.rels", &links),
            ("ppt/slides/slide2.xml", slide),
            (
                "ppt/slides/slide1.xml",
                "<p:sld show=\"0\"><p:sp><a:p><a:r><a:t>last</a:t></a:r></a:p></p:sp></p:sld>",
            ),
            ("ppt/slides/_rels/slide2.xml.rels", &notes),
            (
                "ppt/notesSlides/n1.xml",
                "<p:notes><p:sp><p:ph type=\"body\"/><a:p><a:r><a:t>Say it.</a:t></a:r></a:p></p:sp><p:sp><p:ph type=\"sldNum\"/><a:p><a:r><a:t>1</a:t></a:r></a:p></p:sp></p:notes>",
            ),
        ],
    )
}

#[test]
fn slides_come_in_their_order_with_titles_and_notes() {
    let slide = r#"<p:sld><p:sp><p:ph idx="1"/><a:p><a:r><a:t>point</a:t></a:r></a:p><a:p><a:pPr lvl="1"/><a:r><a:t>below</a:t></a:r></a:p>
        <a:p><a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr><a:r><a:t>one</a:t></a:r></a:p><a:p><a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr><a:r><a:t>two</a:t></a:r></a:p></p:sp>
        <p:sp><p:ph type="title"/><a:p><a:r><a:t>The</a:t></a:r><a:br/><a:r><a:t>title</a:t></a:r></a:p></p:sp>
        <p:graphicFrame><a:tbl><a:tr><a:tc><a:p><a:r><a:t>a</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>b</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:graphicFrame></p:sld>"#;
    assert_eq!(
        markdown_of(&presentation(slide)).unwrap(),
        "## Slide 1: The title\n\n- point\n  - below\n1. one\n2. two\n\n| a | b |\n| --- | --- |\n\n### Notes\n\nSay it.\n\n## Slide 2 (hidden)\n\nlast"
    );
    let text = markdown_of(&presentation("<p:sld><p:sp></p:sld>")).unwrap();
    assert!(
        text.contains("[This slide can't be read: it is damaged: its part ppt/slides/slide2.xml"),
        "{text}"
    );
    assert!(text.ends_with("## Slide 2 (hidden)\n\nlast"), "{text}");
}

fn book(encryption: &str) -> Vec<u8> {
    zip(&[
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", "<container><rootfile full-path=\"OPS/book.opf\"/></container>"),
        ("META-INF/encryption.xml", encryption),
        (
            "OPS/book.opf",
            "<package><metadata><dc:title>My  book</dc:title><dc:creator>A. Writer</dc:creator></metadata><manifest>
             <item id=\"a\" href=\"a%20b.xhtml\" media-type=\"application/xhtml+xml\"/><item id=\"b\" href=\"b.xhtml\" media-type=\"application/xhtml+xml\"/>
             <item id=\"c\" href=\"none.xhtml\" media-type=\"application/xhtml+xml\"/></manifest>
             <spine><itemref idref=\"b\"/><itemref idref=\"c\"/><itemref idref=\"a\"/></spine></package>",
        ),
        ("OPS/a b.xhtml", "<html><title/><body><h2>Two</h2><p>x&nbsp;y</p></body></html>"),
        ("OPS/b.xhtml", "<html><body><h2>One</h2></body></html>"),
    ])
}

#[test]
fn chapters_come_in_the_order_of_the_spine() {
    let fonts = "<encryption><EncryptedData><EncryptionMethod Algorithm=\"http://www.idpf.org/2008/embedding\"/></EncryptedData></encryption>";
    assert_eq!(
        markdown_of(&book(fonts)).unwrap(),
        "# My book\n\nA. Writer\n\n## One\n\n[A chapter can't be read: it is damaged: its part OPS/none.xhtml is missing.]\n\n## Two\n\nx y"
    );
    let drm =
        fonts.replace("http://www.idpf.org/2008/embedding", "http://www.w3.org/2001/04/xmlenc#aes128-cbc");
    assert!(markdown_of(&book(&drm)).unwrap_err().why.contains("copy-protected"));
}

#[test]
fn files_are_told_by_their_contents() {
    let document = docx("<w:p><w:r><w:t>x</w:t></w:r></w:p>", &[]);
    for (name, bytes, kind) in [
        ("a.docx", document.clone(), AttachmentKind::Document),
        ("a.zip", document.clone(), AttachmentKind::Document),
        ("a.bin", presentation("<p:sld/>"), AttachmentKind::Presentation),
        ("a.epub", book("<encryption/>"), AttachmentKind::Document),
    ] {
        assert_eq!(extract::read(name, &bytes).unwrap().kind, kind, "{name}");
    }
    assert_eq!(read(&zip(&[("a.txt", "text")])), Ok(None));
    let error = extract::read("a.docx", &zip(&[("a.txt", "text")])).unwrap_err();
    assert!(error.why.contains("archive"), "{error:?}");
}

#[test]
fn what_can_not_be_read_says_why() {
    let encrypted = "<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>";
    let locked = open_document("text", &[("META-INF/manifest.xml", encrypted), ("content.xml", "noise")]);
    assert_eq!(markdown_of(&locked), Err(ExtractError::locked()));
    let binary = "application/vnd.ms-excel.sheet.binary.macroEnabled.main";
    for (bytes, why) in [
        (docx("", &[]), "contains no text"),
        (docx("<w:p>", &[]), "word/document.xml can't be read"),
        (office("xl/workbook.bin", binary, &[]), ".xlsb"),
        (open_document("chart", &[]), "kind chart"),
        (open_document("text", &[]), "content.xml is missing"),
        (docx(&"<w:p>".repeat(3000), &[]), "nested"),
    ] {
        let error = markdown_of(&bytes).unwrap_err();
        assert!(error.why.contains(why) && error.remedy.ends_with('.'), "{error:?}");
    }
    let whole = docx("<w:p><w:r><w:t>x</w:t></w:r></w:p>", &[]);
    for n in 4..whole.len() - 2 {
        assert!(extract::read("a.docx", &whole[..n]).is_err(), "cut at {n}");
    }
}

#[test]
fn text_has_an_end_whatever_unpacks() {
    // A few kilobytes that unpack to forty megabytes of text.
    let paragraph = format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", "x".repeat(4000));
    let bytes = docx(&paragraph.repeat(10_000), &[]);
    assert!(bytes.len() < 1 << 20);
    assert!(markdown_of(&bytes).unwrap_err().why.contains("the maximum is"));
    let deep = "<w:tbl><w:tr><w:tc>".repeat(100)
        + "<w:p><w:r><w:t>deep</w:t></w:r></w:p>"
        + &"</w:tc></w:tr></w:tbl>".repeat(100);
    assert_eq!(markdown_of(&docx(&deep, &[])).unwrap(), "deep");
}

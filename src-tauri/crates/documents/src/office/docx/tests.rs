//! Tests of reading Word files.

use crate::office::test_archive::{docx, markdown_of};

const STYLES: &str = r#"<w:styles>
<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:basedOn w:val="Standard"/></w:style>
<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="berschrift1"/></w:style>
<w:style w:type="paragraph" w:styleId="Numbered"><w:name w:val="Numbered"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
</w:styles>"#;

const NUMBERING: &str = r#"<w:numbering>
<w:abstractNum w:abstractNumId="0">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>
</w:numbering>"#;

const FOOTNOTES: &str = r#"<w:footnotes>
<w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:t>no</w:t></w:r></w:p></w:footnote>
<w:footnote w:id="2"><w:p><w:r><w:footnoteRef/><w:t> The second note.</w:t></w:r></w:p></w:footnote>
<w:footnote w:id="1"><w:p><w:r><w:t>The first note.</w:t></w:r></w:p><w:p><w:r><w:t>More.</w:t></w:r></w:p></w:footnote>
</w:footnotes>"#;

const COMMENTS: &str = r#"<w:comments><w:comment w:id="0" w:author="Ada"><w:p><w:r><w:t>Really?</w:t></w:r></w:p></w:comment></w:comments>"#;

fn check(body: &str, expected: &str) {
    let parts =
        [("styles", STYLES), ("numbering", NUMBERING), ("footnotes", FOOTNOTES), ("comments", COMMENTS)];
    assert_eq!(markdown_of(&docx(body, &parts)).unwrap(), expected, "{body}");
}

fn paragraph(properties: &str, text: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

fn item(list: u32, level: u32, text: &str) -> String {
    paragraph(&format!("<w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"{list}\"/></w:numPr>"), text)
}

#[test]
fn headings_are_told_by_their_styles() {
    let heading = |style: &str, text: &str| paragraph(&format!("<w:pStyle w:val=\"{style}\"/>"), text);
    let body = [
        heading("Titel", "T"),
        heading("berschrift1", "H"),
        heading("Mine", "M"),
        heading("Standard", "text"),
        paragraph("<w:outlineLvl w:val=\"2\"/>", "O"),
        paragraph("<w:pStyle w:val=\"Mine\"/><w:outlineLvl w:val=\"9\"/>", "body"),
    ];
    check(&body.concat(), "# T\n\n# H\n\n# M\n\ntext\n\n### O\n\nbody");
}

#[test]
fn lists_are_numbered_as_word_does() {
    let body = [
        item(1, 0, "a"),
        item(1, 1, "b"),
        item(1, 1, "c"),
        item(1, 0, "d"),
        item(1, 1, "e"),
        item(2, 0, "bullet"),
        item(3, 0, "restarted"),
        item(0, 0, "in no list"),
        paragraph("<w:pStyle w:val=\"Numbered\"/>", "by style"),
    ];
    let expected =
        "1. a\n  1.a) b\n  1.b) c\n2. d\n  2.a) e\n- bullet\n7. restarted\n\nin no list\n\n8. by style";
    check(&body.concat(), expected);
}

#[test]
fn notes_and_comments_stand_at_the_end() {
    let reference = |kind: &str, id: u32| format!("<w:r><w:{kind}Reference w:id=\"{id}\"/></w:r>");
    let body = format!(
        "<w:p><w:r><w:t>One</w:t></w:r>{}<w:r><w:t xml:space=\"preserve\"> two</w:t></w:r>{}{}{}</w:p>",
        reference("footnote", 1),
        reference("footnote", 2),
        reference("footnote", 1),
        reference("comment", 0),
    );
    check(
        &body,
        "One[^1] two[^2][^1][^c1]\n\n[^1]: The first note.\n  More.\n[^2]: The second note.\n[^c1]: Ada: Really?",
    );
}

#[test]
fn tables_with_merged_cells() {
    let cell = |properties: &str, text: &str| {
        format!("<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>")
    };
    let body = format!(
        "<w:tbl><w:tblPr/><w:tr>{}{}</w:tr><w:tr>{}{}{}</w:tr></w:tbl>",
        cell("<w:gridSpan w:val=\"2\"/>", "wide"),
        cell("<w:vMerge w:val=\"restart\"/>", "high"),
        cell("", "a|b"),
        cell("", "c"),
        cell("<w:vMerge/>", ""),
    );
    check(&body, "| wide | | high |\n| --- | --- | --- |\n| a\\|b | c |");
}

#[test]
fn what_is_deleted_hidden_or_said_twice_is_left_out() {
    check(
        r#"<w:p><w:r><w:t xml:space="preserve">a </w:t></w:r>
        <w:del><w:r><w:delText>no</w:delText></w:r></w:del><w:ins><w:r><w:t>b</w:t></w:r></w:ins>
        <w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>c</w:t></w:r>
        <w:r><w:instrText>PAGE</w:instrText><w:tab/><w:t>d</w:t><w:br/><w:t>e</w:t></w:r>
        <w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Choice>
        <mc:Fallback><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r>
        <w:r><w:t>f</w:t></w:r></w:p>"#,
        "a bc\td\nef\n\nbox",
    );
}

#[test]
fn a_formula_stands_on_one_line() {
    check(
        "<w:p><m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath></w:p>",
        "a/b",
    );
}

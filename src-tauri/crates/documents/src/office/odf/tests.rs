//! Tests of reading OpenDocument files.

use crate::office::test_archive::{markdown_of, open_document};

const STYLES: &str = r#"<office:automatic-styles>
<text:list-style style:name="L1">
<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="." text:start-value="3"/>
<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")" text:display-levels="2"/>
</text:list-style>
<text:list-style style:name="B"><text:list-level-style-bullet text:level="1"/></text:list-style>
<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>
<style:style style:name="T1" style:family="text"><style:text-properties text:display="none"/></style:style>
</office:automatic-styles>"#;

fn check(kind: &str, body: &str, expected: &str) {
    let content = format!(
        "<?xml version=\"1.0\"?>\n<office:document-content>{STYLES}<office:body>{body}</office:body></office:document-content>"
    );
    let text = markdown_of(&open_document(kind, &[("content.xml", &content)])).unwrap();
    assert_eq!(text, expected, "{body}");
}

#[test]
fn texts_have_headings_lists_and_notes() {
    check(
        "text",
        r#"<office:text><text:tracked-changes><text:p>no</text:p></text:tracked-changes>
        <text:p text:style-name="P1">Title</text:p><text:h text:outline-level="2">Head</text:h>
        <text:p>Some   text<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body></text:note><text:s text:c="2"/>and <text:span text:style-name="T1">no</text:span>more<text:line-break/>here<office:annotation><text:p>no</text:p></office:annotation></text:p>
        <text:list text:style-name="L1"><text:list-item><text:p>a</text:p><text:p>still a</text:p><text:list><text:list-item><text:p>b</text:p></text:list-item></text:list></text:list-item>
        <text:list-item><text:p>c</text:p></text:list-item></text:list>
        <text:list text:style-name="B"><text:list-item><text:p>d</text:p></text:list-item></text:list></office:text>"#,
        "# Title\n\n## Head\n\nSome text[^1]  and more\nhere\n\n3. a\n\nstill a\n\n  3.a) b\n4. c\n- d\n[^1]: A note.",
    );
}

#[test]
fn text_tables_and_boxes() {
    check(
        "text",
        r#"<office:text><table:table><table:table-column/><table:table-header-rows><table:table-row>
        <table:table-cell table:number-columns-spanned="2"><text:p>wide</text:p></table:table-cell><table:covered-table-cell/></table:table-row></table:table-header-rows>
        <table:table-row><table:table-cell><text:p>a</text:p><text:p>b</text:p></table:table-cell><table:table-cell><text:p>c</text:p></table:table-cell></table:table-row></table:table>
        <text:p>x<draw:frame><draw:text-box><text:p>box</text:p></draw:text-box><svg:title>no</svg:title></draw:frame>y</text:p></office:text>"#,
        "| wide | |\n| --- | --- |\n| a<br>b | c |\n\nxy\n\nbox",
    );
}

#[test]
fn workbooks_have_stored_values() {
    check(
        "spreadsheet",
        r#"<office:spreadsheet><table:table table:name="Costs"><table:table-row>
        <table:table-cell office:value-type="float" office:value="1234.5"><text:p>1.234,50 €</text:p></table:table-cell>
        <table:table-cell office:value-type="date" office:date-value="2024-02-29T14:30:00"><text:p>29.2.</text:p></table:table-cell>
        <table:table-cell table:number-columns-repeated="2"/>
        <table:table-cell office:value-type="percentage" office:value="0.25"><text:p>25 %</text:p></table:table-cell>
        <table:table-cell office:value-type="string"><office:annotation><text:p>no</text:p></office:annotation><text:p>words</text:p></table:table-cell>
        <table:table-cell table:number-columns-repeated="16378"/></table:table-row>
        <table:table-row table:number-rows-repeated="1048575"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>
        </table:table></office:spreadsheet>"#,
        "## Costs\n\n| 1234.5 | 2024-02-29 14:30:00 | | | 25% | words |\n| --- | --- | --- | --- | --- | --- |",
    );
}

#[test]
fn slides_have_titles_and_notes() {
    check(
        "presentation",
        r#"<office:presentation><draw:page draw:name="p1">
        <draw:frame presentation:class="outline"><draw:text-box><text:list text:style-name="B"><text:list-item><text:p>point</text:p></text:list-item></text:list></draw:text-box></draw:frame>
        <draw:frame presentation:class="title"><draw:text-box><text:p>The title</text:p></draw:text-box></draw:frame>
        <draw:frame presentation:class="page-number"><draw:text-box><text:p>1</text:p></draw:text-box></draw:frame>
        <presentation:notes><draw:page-thumbnail/><draw:frame presentation:class="notes"><draw:text-box><text:p>Say it.</text:p></draw:text-box></draw:frame></presentation:notes>
        </draw:page><draw:page/></office:presentation>"#,
        "## Slide 1: The title\n\n- point\n\n### Notes\n\nSay it.\n\n## Slide 2",
    );
}

//! Tests of reading Excel files.

use crate::office::test_archive::{markdown_of, office, relationship};

const STRINGS: &str = r#"<sst><si><t>Item</t></si><si><r><t>rich </t></r><r><rPr/><t>text</t></r><rPh><t>no</t></rPh></si>
<si><t>a_x000D_
b_x005F_c</t></si></sst>"#;

const STYLES: &str = r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/></numFmts>
<cellStyleXfs><xf numFmtId="9"/></cellStyleXfs>
<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="10"/></cellXfs></styleSheet>"#;

fn workbook(sheets: &[(&str, &str)], files: &[(&str, &str)]) -> Vec<u8> {
    let listed: String = sheets
        .iter()
        .enumerate()
        .map(|(n, (name, _))| format!("<sheet name=\"{name}\" sheetId=\"{n}\" r:id=\"s{n}\"/>"))
        .collect();
    let workbook = format!("<workbook><sheets>{listed}</sheets></workbook>");
    let mut links: String = (0..sheets.len())
        .map(|n| relationship(&format!("s{n}"), "worksheet", &format!("/xl/worksheets/sheet{n}.xml")))
        .collect();
    links.push_str(&relationship("a", "sharedStrings", "sharedStrings.xml"));
    links.push_str(&relationship("b", "styles", "styles.xml"));
    let links = format!("<Relationships>{links}</Relationships>");
    let names: Vec<String> = (0..sheets.len()).map(|n| format!("xl/worksheets/sheet{n}.xml")).collect();
    let mut all = vec![
        ("xl/workbook.xml", &*workbook),
        ("xl/_rels/workbook.xml.rels", &*links),
        ("xl/sharedStrings.xml", STRINGS),
        ("xl/styles.xml", STYLES),
    ];
    all.extend(names.iter().zip(sheets).map(|(name, (_, text))| (name.as_str(), *text)));
    all.extend(files);
    office(
        "xl/workbook.xml",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
        &all,
    )
}

#[test]
fn cells_are_shown_with_their_stored_values() {
    let sheet = r#"<worksheet><cols/><sheetData>
<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>
<row r="2"><c r="A2" s="1"><v>45351</v></c><c r="B2" s="2"><v>0.125</v></c><c r="C2"><f>A2+1</f><v>0.30000000000000004</v></c></row>
<row r="3"><c r="A3" t="b"><v>1</v></c><c t="e"><v>#DIV/0!</v></c><c t="inlineStr"><is><t>in|line</t></is></c>
<c t="str"><f>X()</f><v>text</v></c></row>
<row r="6"><c r="A6" t="s"><v>2</v></c><c r="B6"><f>SUM(A1)</f></c><c r="C6" t="s"><v>99</v></c></row>
</sheetData></worksheet>"#;
    let expected = "## One & two\n\n\
        | Item | | rich text | |\n| --- | --- | --- | --- |\n\
        | 2024-02-29 | 12.5% | 0.3 |\n| TRUE | #DIV/0! | in\\|line | text |\n\n\
        | a<br>b_c | =SUM(A1) |\n| --- | --- |\n\n## Empty";
    let bytes = workbook(&[("One &amp; two", sheet), ("Empty", "<worksheet/>")], &[]);
    assert_eq!(markdown_of(&bytes).unwrap(), expected);
}

#[test]
fn a_damaged_sheet_is_named_and_the_others_are_read() {
    let good = "<worksheet><row><c><v>1</v></c></row></worksheet>";
    let text =
        markdown_of(&workbook(&[("Bad", "<worksheet><row></worksheet>"), ("Good", good)], &[])).unwrap();
    assert!(
        text.contains(
            "## Bad\n\n[This sheet can't be read: it is damaged: its part xl/worksheets/sheet0.xml"
        ),
        "{text}"
    );
    assert!(text.ends_with("## Good\n\n| 1 |\n| --- |"), "{text}");
    assert!(markdown_of(&workbook(&[("Bad", "<worksheet>")], &[])).is_err());
}

//! Tests of reading HTML.

use super::*;

fn check(source: &str, expected: &str) {
    assert_eq!(read(source).unwrap(), expected, "{source}");
}

#[test]
fn a_page_is_read_as_people_see_it() {
    check(
        "<!doctype html><html><head><title>My &amp; page</title><style>p { color: red }</style></head>
         <body><script>if (a < b) document.write('<p>no</p>')</script>
         <h1>Head</h1><p>One
           two <b>three</b>.<p>Four<br>five<div>six</div></body></html>",
        "# My & page\n\n# Head\n\nOne two three.\n\nFour\nfive\n\nsix",
    );
    check("<title>Same</title><h2>Same</h2><p>text", "## Same\n\ntext");
}

#[test]
fn lists_and_code() {
    check(
        "<ol start=3><li>a<li><p>b</p><ul><li>c</li><li>d</ul><li>e</ol><ol type=i><li>f</ol>",
        "3. a\n4. b\n  - c\n  - d\n5. e\ni. f",
    );
    check("<p>x<pre>\nlet a;\n  b  &lt; c\n</pre>y", "x\n\n```\nlet a;\n  b  < c\n```\n\ny");
}

#[test]
fn tables_and_layouts() {
    check(
        "<table><caption>Costs</caption><tr><th>A<th colspan=2>B<tr><td>1<td>x|y<td><ul><li>p<li>q</ul></table>after",
        "Costs\n\n| A | B | |\n| --- | --- | --- |\n| 1 | x\\|y | - p<br>- q |\n\nafter",
    );
    check(
        "<table><tr><td>menu</td><td><h2>News</h2><table><tr><td>1</td><td>2</td></tr></table></td></tr></table>",
        "menu\n\n## News\n\n| 1 | 2 |\n| --- | --- |",
    );
}

#[test]
fn what_is_hidden_is_left_out() {
    check(
        "a<span hidden>no</span><div style='Display : none'><div>no</div>no</div><template>no</template>
         <p hidden>no<p>b<noscript>no</noscript><textarea><p>no</textarea>c<svg><title>no</title></svg>",
        "a\n\nbc",
    );
}

#[test]
fn xhtml_elements_may_be_empty() {
    let page = page(
        "<html><head><title/><script src='a.js'/></head><body><p/><p>a<![CDATA[<b>]]>&nbsp;c</p></body></html>",
        MarkupDialect::Xhtml,
    );
    assert_eq!(crate::block_builder::markdown(&page.blocks), "a<b> c");
}

#[test]
fn a_page_without_text_is_refused() {
    let error = read("<html><body><div id=app></div><script>run()</script></body></html>").unwrap_err();
    assert!(error.why.contains("contains no text"), "{error:?}");
    for source in
        ["", "<p", "<table><table><tr><tr><td><table>", "</li></table></td>", &"<div>".repeat(100_000)]
    {
        assert!(read(source).is_err());
    }
    assert_eq!(read(&format!("{}deep", "<table><tr><td>".repeat(300))).unwrap(), "deep");
}

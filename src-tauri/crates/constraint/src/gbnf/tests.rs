//! Grammars, texts that they describe and texts that they don't: by the rules of llama.cpp's grammars/README.md.

use super::lark_of_gbnf;
use crate::{Compiler, TextForm, Vocabulary, Whitespace};

fn check(grammar: &str, accepted: &[&str], refused: &[&str]) {
    let lark = lark_of_gbnf(grammar).unwrap_or_else(|error| panic!("{grammar}: {error}"));
    let compiler = Compiler::new(Vocabulary::of_bytes(), Whitespace::Any).expect("bytes are a vocabulary");
    let compiled = compiler.compile(&TextForm::Lark(lark.clone()));
    let compiled = compiled.unwrap_or_else(|error| panic!("{grammar}: {error}\n{lark}"));
    for (texts, expected) in [(accepted, true), (refused, false)] {
        for text in texts {
            let outcome = compiled.clone().accepts_text(text.as_bytes());
            assert_eq!(outcome, Ok(expected), "{grammar}: {text:?}\n{lark}");
        }
    }
}

#[test]
fn characters_sets_and_escapes() {
    check(r#"root ::= "a/b""#, &["a/b"], &["", "a", "a/bc"]);
    check(r#"root ::= "\"\\\n\x41\u00e9\U0001F98A""#, &["\"\\\nAé🦊"], &["\"\\\nA"]);
    check("root ::= [a-cX-]", &["a", "b", "X", "-"], &["d", "ab", ""]);
    check(r#"root ::= [^"\\\x00-\x1F]"#, &["a", "é", "🦊", "]"], &["\"", "\\", "\n"]);
    check(r"root ::= [\]\-^]", &["]", "-", "^"], &["\\", "a"]);
    check("root ::= . .", &["ab", "a\n", "é🦊"], &["a", "abc"]);
    check(r#"root ::= """#, &[""], &["a"]);
}

#[test]
fn repetitions_and_groups() {
    check(r#"root ::= "ab"*"#, &["", "ab", "abab"], &["a", "aba"]);
    check(r#"root ::= ("a" | "b" "c")+ "d"?"#, &["a", "bc", "abcd"], &["", "d", "b"]);
    check("root ::= [0-9]{2}", &["12"], &["1", "123"]);
    check("root ::= [0-9]{2,}", &["12", "12345"], &["1"]);
    check("root ::= [0-9]{1,3}", &["1", "123"], &["", "1234"]);
    check("root ::= [0-9]{,2}", &["", "12"], &["123"]);
    check(r#"root ::= "a"{0} "b""#, &["b"], &["ab", "a"]);
    check(r#"root ::= ("a" |) "b""#, &["ab", "b"], &["a"]);
}

#[test]
fn the_longest_lexeme_is_not_taken_for_the_only_one() {
    // with greedy lexemes the letters would swallow the word behind them
    check(r#"root ::= [a-z]+ "end""#, &["aend", "endend", "xyzend"], &["end", "abc"]);
    check(r#"root ::= "a" | "ab" "c""#, &["a", "abc"], &["ab"]);
    check(r#"root ::= ("ab" | [a-z])* "!""#, &["abx!", "aab!", "!"], &["ab"]);
}

#[test]
fn rules_refer_to_each_other() {
    let sums = "\
# equations
root  ::= (sum \"=\" gap value \";\")+
sum   ::= value ([-+] gap value)*
value ::= name | \"(\" gap sum \")\" gap
name  ::= [a-z] [a-z0-9]* gap   # such as x1
gap   ::= \" \"*
";
    check(sums, &["a+b=c;", "(a + (b))-c = d ;", "x1=y;y=z;"], &["a+=b;", "a=b", "(a=b;", "1=a;", ""]);
    let nested = "root ::= Value-1\nValue-1 ::= \"[\" (Value-1 (\",\" Value-1)*)? \"]\"";
    check(nested, &["[]", "[[],[[]]]"], &["[", "[]]", "[[] []]"]);
    let lines = "root ::=\n  \"a\" |\n  \"b\"\r\n\nother ::= (\n \"x\"\n | \"y\"\n)";
    check(lines, &["a", "b"], &["x"]);
}

#[test]
fn faults_have_a_place() {
    for (grammar, line, column, what) in [
        ("", 1, 1, "no rule root"),
        ("start ::= \"a\"", 1, 1, "no rule root"),
        ("root ::= \"a\"\nroot ::= \"b\"", 2, 1, "defined twice"),
        ("root ::= a b\na ::= \"x\"", 1, 12, "rule b is not defined"),
        ("root = \"a\"", 1, 6, "`::=`"),
        ("root ::= \"a", 1, 10, "not closed"),
        ("root ::= [a", 1, 10, "not closed"),
        ("root ::= []", 1, 10, "no character"),
        ("root ::= [z-a]", 1, 11, "backwards"),
        ("root ::= (\"a\"\n", 1, 10, "not closed"),
        ("root ::= \"a\")", 1, 13, "end of the rule"),
        ("root ::= \"\\q\"", 1, 11, "no escape"),
        ("root ::= \"\\x4\"", 1, 11, "2 digits"),
        ("root ::= \"\\uD800\"", 1, 11, "4 digits"),
        ("root ::= *", 1, 10, "nothing stands before"),
        ("root ::= \"a\"{3,2}", 1, 13, "smaller"),
        ("root ::= \"a\"{9999}", 1, 14, "at most 2000"),
        ("root ::= \"a\"{x}", 1, 14, "a count"),
        ("root ::= <think>", 1, 10, "tokens"),
        ("root ::= \"é\" 7 %", 1, 16, "end of the rule"),
    ] {
        let error = lark_of_gbnf(grammar).unwrap_err();
        assert_eq!(error.code(), "constraint.invalid", "{grammar}");
        let message = error.to_string();
        let place = format!("line {line}, column {column}: ");
        assert!(message.contains(&place) && message.contains(what), "{grammar:?}: {message}");
    }
    let deep = format!("root ::= {}", "(".repeat(100_000));
    assert!(lark_of_gbnf(&deep).unwrap_err().to_string().contains("nested more than"));
}

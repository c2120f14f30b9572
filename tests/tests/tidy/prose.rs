//! What people read: comments, the help of settings and commands, the English catalogue, the documents.

use super::lexer::{Comment, Kind};
use super::source::SourceFile;
use super::{Offence, Rule};

/// More has to be read twice.
const MAX_SENTENCE_WORDS: usize = 30;
const MAX_README_LINES: usize = 150;
const MAX_README_BYTES: usize = 10 * 1024;
const MAX_README_TABLES: usize = 1;

/// An idiom of ours that no newcomer speaks.
const PHRASES: &[&str] = &[
    "so many",
    "so much",
    "whoever",
    "is told",
    "are told",
    "anew",
    "nobody",
    "at hand",
    "what is asked",
    "of its own",
];

/// Measured figures end in these.
const UNITS: &[&str] = &[
    "tok/s", "tokens/s", "t/s", "GB/s", "GiB/s", "MB/s", "GFLOPS", "GFLOP/s", "TFLOPS", "ms", "µs", "us",
    "ns",
];
const BENCHMARKS: &str = "docs/BENCHMARKS.md";

pub const RULES: &[Rule] = &[
    Rule {
        name: "prose is plain",
        check: |s| paragraphs(s).iter().flat_map(|p| p.phrases()).collect(),
        offends: &[
            ("src-tauri/crates/hub/src/a.rs", "// After so many answers we stop.\n"),
            ("src-tauri/crates/hub/src/a.rs", "/// A server that so\n/// much is asked from.\nfn f() {}"),
            ("src-tauri/crates/hub/src/a.rs", "fn f() -> &'static str { \"the model is told of it\" }"),
            ("ui/src/i18n/en/chat.ts", "export const a = { b: 'Nobody is there.' };"),
            ("ui/src/a.ts", "/* Whoever asks. */"),
            ("tests/hub/a.py", "# has a room of its own\n"),
            ("docs/GUIDE.md", "Models\nare told about it.\n"),
        ],
        passes: &[
            ("src-tauri/crates/hub/src/a.rs", "// Stops after this many responses. And so. Many follow.\n"),
            ("src-tauri/crates/hub/src/a.rs", "#[test] fn f() { g(\"is told\"); }"),
            ("ui/src/a.ts", "const whoever = 1;"),
            ("docs/GUIDE.md", "```\nnobody\n```\n"),
        ],
    },
    Rule {
        name: "at most 30 words in a sentence",
        check: |s| paragraphs(s).iter().filter(|p| p.measured).flat_map(|p| p.long_sentences()).collect(),
        offends: &[
            (
                "src-tauri/crates/hub/src/a.rs",
                "/// One two three four five six seven eight nine ten one two three four five six seven eight\n\
                 /// nine ten one two three four five six seven eight nine ten eleven.\nfn f() {}",
            ),
            (
                "src-tauri/crates/app/src/a.rs",
                "S { help: \"a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g\" }",
            ),
        ],
        passes: &[
            (
                "src-tauri/crates/hub/src/a.rs",
                "/// One two three four five six seven eight nine ten one two three four five six seven eight.\n\
                 /// Nine ten one two three four five six seven eight nine ten eleven.\nfn f() {}",
            ),
            (
                "src-tauri/crates/hub/src/a.rs",
                "//! - a b c d e f g h i j k l m n o p q r s t u v\n//! - a b c d e f g h i j k l m n o p q r s\n",
            ),
        ],
    },
    Rule {
        name: "README.md is short, and figures stand in docs/BENCHMARKS.md",
        check: readme,
        offends: &[
            ("README.md", LONG_README),
            ("README.md", "It answers with 42 tok/s here.\n"),
            ("README.md", "| a |\n|---|\n\nand\n\n| b |\n|---|\n"),
            ("docs/GUIDE.md", "A token takes 17.5 ms.\n"),
        ],
        passes: &[
            ("README.md", "# Inglenook\n\n| model | speed |\n|---|---|\n| a | 42 tok/s |\n"),
            ("docs/BENCHMARKS.md", "A token takes 17.5 ms.\n"),
            ("docs/GUIDE.md", "Files of up to 16 MB.\n"),
        ],
    },
];

const LONG_README: &str = concat!(
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
    include_str!("seventy_lines.txt"),
);

/// Running text: its words, each with its line.
#[derive(Default)]
struct Paragraph {
    words: Vec<(String, usize)>,
    /// The length of its sentences counts.
    measured: bool,
}

impl Paragraph {
    fn phrases(&self) -> Vec<Offence> {
        let plain: Vec<String> = self.words.iter().map(|(w, _)| bare(w)).collect();
        let mut found = Vec::new();
        for at in 0..self.words.len() {
            for phrase in PHRASES {
                let wanted: Vec<&str> = phrase.split(' ').collect();
                let here = plain.get(at..at + wanted.len()).is_some_and(|w| w == wanted);
                let unbroken = self.words[at..].iter().take(wanted.len() - 1).all(|(w, _)| !ends_clause(w));
                if here && unbroken {
                    found.push(Offence::new(self.words[at].1, format!("\"{phrase}\"")));
                }
            }
        }
        found
    }

    fn long_sentences(&self) -> Vec<Offence> {
        let mut found = Vec::new();
        let mut start = 0;
        for at in 0..self.words.len() {
            if !ends_sentence(&self.words[at].0) && at + 1 < self.words.len() {
                continue;
            }
            let sentence = &self.words[start..=at];
            let count = sentence.iter().filter(|(w, _)| w.contains(char::is_alphanumeric)).count();
            if count > MAX_SENTENCE_WORDS {
                let opening: Vec<&str> = sentence.iter().take(5).map(|(w, _)| w.as_str()).collect();
                found
                    .push(Offence::new(sentence[0].1, format!("{count} words: \"{} …\"", opening.join(" "))));
            }
            start = at + 1;
        }
        found
    }
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn ends_clause(word: &str) -> bool {
    word.ends_with(['.', ',', ';', ':', '?', '!', ')'])
}

fn ends_sentence(word: &str) -> bool {
    let word = word.trim_end_matches([')', '"', '`', '\'', '*', ']', '”']);
    word.ends_with(['.', '?', '!', '…']) && !["e.g.", "i.e.", "vs.", "cf."].contains(&word)
}

/// All running text of a file.
fn paragraphs(source: &SourceFile) -> Vec<Paragraph> {
    // These name what they forbid.
    if source.path.starts_with("tests/tests/tidy/") {
        return Vec::new();
    }
    let mut found = if source.is_rust() {
        of_comments(&source.comments)
    } else if source.is_prose() {
        of_markdown(&source.text)
    } else {
        of_comments(&other_comments(source))
    };
    if source.is_rust() {
        found.extend(of_strings(source));
    } else if source.path.contains("/i18n/en/") {
        found.extend(of_catalogue(&source.text));
    }
    found
}

/// Collects lines into paragraphs: a gap, an empty line, a list item or a table row begins a new one.
struct Collector {
    done: Vec<Paragraph>,
    open: Paragraph,
    in_code: bool,
    last_line: usize,
}

impl Collector {
    fn new() -> Self {
        Self {
            done: Vec::new(),
            open: Paragraph { measured: true, ..Paragraph::default() },
            in_code: false,
            last_line: 0,
        }
    }

    fn line(&mut self, text: &str, line: usize) {
        let text = text.trim();
        if text.starts_with("```") || text.starts_with("~~~") {
            self.in_code = !self.in_code;
            return self.close();
        }
        let is_item = text.starts_with(['-', '*', '|', '#', '•', '<']) || numbered(text);
        if line > self.last_line + 1 || text.is_empty() || is_item {
            self.close();
        }
        self.last_line = line;
        if !self.in_code && !text.starts_with('|') {
            self.open.words.extend(code_as_one_word(text).split_whitespace().map(|w| (w.to_string(), line)));
        }
    }

    fn close(&mut self) {
        let next = Paragraph { measured: true, ..Paragraph::default() };
        let open = std::mem::replace(&mut self.open, next);
        if !open.words.is_empty() {
            self.done.push(open);
        }
    }

    fn finish(mut self) -> Vec<Paragraph> {
        self.close();
        self.done
    }
}

fn numbered(text: &str) -> bool {
    text.split_once(". ").is_some_and(|(n, _)| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

/// A code span is one word, and no prose.
fn code_as_one_word(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let last = parts.len() - 1;
    let closed = |i: usize| i % 2 == 1 && i < last;
    parts.iter().enumerate().map(|(i, part)| if closed(i) { "`x`" } else { *part }).collect()
}

fn of_comments(comments: &[Comment]) -> Vec<Paragraph> {
    let mut collector = Collector::new();
    for comment in comments {
        let text = comment.text.trim().trim_end_matches("*/").trim_end_matches("-->");
        let text = text.trim_start_matches("<!--").trim_start_matches(['/', '!', '*', '#']);
        // A list's own marker stands after the comment's.
        collector.line(text, comment.line);
    }
    collector.finish()
}

fn of_markdown(text: &str) -> Vec<Paragraph> {
    let mut collector = Collector::new();
    let mut in_comment = false;
    for (i, line) in text.lines().enumerate() {
        // A comment is for programs, such as the questions below an article of the guide.
        in_comment |= line.trim() == "<!--";
        if in_comment {
            in_comment = line.trim() != "-->";
            continue;
        }
        collector.line(line, i + 1);
    }
    collector.finish()
}

/// Comments of what is not Rust: whole lines, and blocks that begin a line.
fn other_comments(source: &SourceFile) -> Vec<Comment> {
    let marks: &[&str] = match source.path.rsplit('.').next().unwrap_or_default() {
        "py" | "toml" => &["#"],
        _ => &["//"],
    };
    let mut found = Vec::new();
    let mut until: Option<&str> = None;
    for (i, line) in source.text.lines().enumerate() {
        let text = line.trim_start();
        let mut keep = |text: &str| found.push(Comment { line: i + 1, text: text.replace("\"\"\"", "") });
        if let Some(end) = until {
            keep(text);
            until = (!text.contains(end)).then_some(end);
        } else if let Some((open, end)) = [("/*", "*/"), ("<!--", "-->"), ("\"\"\"", "\"\"\"")]
            .into_iter()
            .find(|(open, _)| text.strip_prefix(open).is_some_and(|rest| opens_prose(open, rest)))
        {
            keep(text);
            until = (!text[open.len()..].contains(end)).then_some(end);
        } else if marks.iter().any(|m| text.starts_with(m)) {
            keep(text);
        }
    }
    found
}

/// The end of a long string in Python begins a line like a docstring does.
fn opens_prose(open: &str, rest: &str) -> bool {
    open != "\"\"\"" || rest.starts_with(|c: char| c.is_alphanumeric() || c == '`')
}

/// Texts that ship; the length counts where a setting or a command explains itself.
fn of_strings(source: &SourceFile) -> Vec<Paragraph> {
    let texts = source.shipped().filter(|(_, t)| t.kind == Kind::Text && t.text.contains(' '));
    texts
        .map(|(at, token)| {
            let named = at.checked_sub(2).map_or("", |i| source.text_at(i));
            let words = code_as_one_word(&token.text.replace("\\n", " "));
            let words = words.split_whitespace().filter(|w| *w != "\\").map(|w| (w.to_string(), token.line));
            Paragraph { words: words.collect(), measured: ["help", "about", "long_about"].contains(&named) }
        })
        .collect()
}

/// The texts of a catalogue in TypeScript.
fn of_catalogue(text: &str) -> Vec<Paragraph> {
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let mut rest = line;
        while let Some(open) = rest.find(['\'', '"', '`']) {
            let quote = &rest[open..=open];
            let body = &rest[open + 1..];
            let Some(end) = body.find(quote) else { break };
            let words = body[..end].split_whitespace().map(|w| (w.to_string(), i + 1)).collect();
            found.push(Paragraph { words, measured: true });
            rest = &body[end + 1..];
        }
    }
    found
}

fn readme(source: &SourceFile) -> Vec<Offence> {
    let is_readme = source.path == "README.md";
    let is_guide = source.is_prose() && source.path.starts_with("docs/") && source.path != BENCHMARKS;
    if !(is_readme || is_guide) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let lines: Vec<&str> = source.text.lines().collect();
    if is_readme {
        if lines.len() > MAX_README_LINES {
            found.push(Offence::new(lines.len(), format!("{} lines", lines.len())));
        }
        if source.text.len() > MAX_README_BYTES {
            found.push(Offence::new(lines.len(), format!("{} bytes", source.text.len())));
        }
        let heads = lines.iter().enumerate().filter(|(_, l)| l.starts_with("|--") || l.starts_with("| --"));
        found.extend(heads.skip(MAX_README_TABLES).map(|(i, _)| Offence::new(i + 1, "one table more")));
    }
    let mut in_code = false;
    for (i, line) in lines.iter().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        let is_table = is_readme && line.starts_with('|');
        if !(in_code || is_table) && has_figure(line) {
            found.push(Offence::new(i + 1, "a measured figure"));
        }
    }
    found
}

fn has_figure(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_number = |w: &str| w.starts_with(|c: char| c.is_ascii_digit());
    let unit = |w: &str| UNITS.contains(&w.trim_matches(|c: char| !c.is_alphanumeric()));
    words.windows(2).any(|pair| is_number(pair[0].trim_matches(['(', '*', '~', '≈'])) && unit(pair[1]))
}

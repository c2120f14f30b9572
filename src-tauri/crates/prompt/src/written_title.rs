//! Titles out of what a model wrote when it was asked for one: without preambles, and none that only repeats the request.

use crate::title_text;

/// What the model is asked for.
pub const ASK: &str = "Write a short title for this conversation: three to six words, in its language, without quotation \
                   marks. Answer with the title only.";

/// What has more words is a sentence, not a title.
const MAX_WORDS: usize = 9;

/// Lines in which a title is looked for: models write it at once, or after a line that announces it.
const MAX_LINES: usize = 4;

/// Consecutive words of the request that are no coincidence.
const MAX_REPEATED_WORDS: usize = 4;

/// Words of which one in a title that is mostly about the task makes it a description of the task.
const TITLE_WORDS: &[&str] = &[
    "title",
    "titles",
    "titel",
    "titre",
    "título",
    "titulo",
    "titolo",
    "заголовок",
    "название",
    "عنوان",
    "العنوان",
];

/// Words that speak of the task and not of a conversation, by language.
const TASK_WORDS: &[&str] = &[
    // English
    "title",
    "titles",
    "conversation",
    "chat",
    "dialogue",
    "short",
    "brief",
    "concise",
    "suggested",
    "suggestion",
    "word",
    "words",
    "three",
    "six",
    "3",
    "6",
    "quotation",
    "marks",
    "answer",
    "only",
    "write",
    "language",
    "sure",
    "certainly",
    "okay",
    "ok",
    "here",
    "here's",
    "heres",
    "is",
    "are",
    "the",
    "a",
    "an",
    "of",
    "for",
    "this",
    "your",
    "my",
    "in",
    "its",
    "it",
    "with",
    "without",
    "to",
    "and",
    "as",
    "user",
    "assistant",
    "generated",
    "untitled",
    "possible",
    "good",
    "could",
    "be",
    "would",
    "new",
    "i",
    "can",
    "help",
    "you",
    "s",
    // German
    "titel",
    "schreibe",
    "einen",
    "kurzen",
    "kurzer",
    "kurze",
    "kurz",
    "unterhaltung",
    "gespräch",
    "gesprächs",
    "konversation",
    "wörter",
    "wörtern",
    "drei",
    "sechs",
    "für",
    "dieses",
    "diese",
    "der",
    "die",
    "das",
    "ein",
    "eine",
    "hier",
    "ist",
    "mein",
    "dein",
    "bis",
    "vorschlag",
    "antwort",
    "nur",
    "ohne",
    "anführungszeichen",
    "überschrift",
    // French, Spanish, Italian, Portuguese, Russian
    "titre",
    "écris",
    "écrivez",
    "escribe",
    "scrivi",
    "напиши",
    "court",
    "voici",
    "le",
    "la",
    "un",
    "pour",
    "cette",
    "de",
    "du",
    "título",
    "titulo",
    "corto",
    "breve",
    "conversación",
    "conversação",
    "conversazione",
    "titolo",
    "para",
    "esta",
    "una",
    "per",
    "questa",
    "el",
    "заголовок",
    "название",
    "короткий",
    "короткое",
    "для",
    "этого",
    "этой",
    "беседы",
    "разговора",
    "диалога",
    // Arabic
    "عنوان",
    "العنوان",
    "قصير",
    "محادثة",
    "المحادثة",
    "لهذه",
    "هذه",
    "للمحادثة",
    "هو",
    "إليك",
];

/// The same in scripts without spaces, longest first.
const TASK_PARTS: &[&str] = &[
    "タイトル",
    "ショート",
    "以下は",
    "この会話",
    "会話",
    "短い",
    "対話",
    "标题",
    "標題",
    "对话",
    "對話",
    "会话",
    "這個",
    "这个",
    "以下是",
    "简短",
    "簡短",
    "제목",
    "대화",
    "짧은",
    "こちら",
    "です",
    "の",
    "は",
    "的",
    "是",
    "의",
    "은",
];

/// What the model wrote, if there is a title in it.
pub fn fit(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take(MAX_LINES).map(without_preamble).find(|line| !line.is_empty()).and_then(fit_line)
}

/// A line without marks and without what announces a title. Empty if it does nothing else.
fn without_preamble(line: &str) -> &str {
    let line = bare(line);
    match line.split_once([':', '：']) {
        Some((before, after)) if is_about_task(before) => bare(after),
        _ => line,
    }
}

/// A line without what models put around a title.
fn bare(line: &str) -> &str {
    let line = line.trim_start_matches(['#', '*', ' ']);
    let line = line.trim_matches(|c: char| c.is_whitespace() || "\"'“”„«»‚‘’「」『』《》*`_".contains(c));
    line.trim_end_matches(['.', '。', ' '])
}

fn fit_line(line: &str) -> Option<String> {
    let bare = line.trim_end_matches([':', '：', ' ']);
    let n_words = bare.split_whitespace().count();
    let is_fit = (1..=MAX_WORDS).contains(&n_words)
        && bare.chars().count() <= title_text::MAX_CHARS
        && bare.chars().any(char::is_alphanumeric)
        && !is_about_task(bare)
        && !describes_task(bare)
        && !repeats_request(bare);
    is_fit.then(|| title_text::clean(bare))
}

fn words(text: &str) -> Vec<String> {
    let is_part = |c: char| !c.is_alphanumeric() && c != '\'';
    let words = text.to_lowercase().replace('’', "'");
    words.split(is_part).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether two thirds of the words speak of the task, and one of them of a title.
fn describes_task(text: &str) -> bool {
    let words = words(text);
    let n_task = words.iter().filter(|word| is_about_task(word)).count();
    n_task * 3 >= words.len() * 2 && words.iter().any(|word| TITLE_WORDS.contains(&word.as_str()))
}

/// Whether every word speaks of the task.
fn is_about_task(text: &str) -> bool {
    let words = words(text);
    let is_task_word = |word: &String| {
        TASK_WORDS.contains(&word.as_str())
            || TASK_PARTS.iter().fold(word.clone(), |rest, part| rest.replace(part, "")).is_empty()
    };
    !words.is_empty() && words.iter().all(is_task_word)
}

/// Whether several words stand as in the request.
fn repeats_request(text: &str) -> bool {
    let (asked, words) = (words(ASK), words(text));
    words.windows(MAX_REPEATED_WORDS).any(|run| asked.windows(MAX_REPEATED_WORDS).any(|part| part == run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_title() {
        let cases = [
            ("Adding a model", Some("Adding a model")),
            ("\"Foxes in winter.\"\n\nI hope this helps", Some("Foxes in winter")),
            ("Title: **Bears**", Some("Bears")),
            ("**Title:** Bears in spring", Some("Bears in spring")),
            ("Here is a short title: Planning a garden", Some("Planning a garden")),
            ("Sure! Here's a title for this conversation:\n\n\"Rust lifetimes\"", Some("Rust lifetimes")),
            ("Titel: Füchse im Winter", Some("Füchse im Winter")),
            ("タイトル：東京の天気", Some("東京の天気")),
            ("東京の天気", Some("東京の天気")),
            ("C++: pointers", Some("C++: pointers")),
            ("Book titles of 1984", Some("Book titles of 1984")),
            ("Three short stories", Some("Three short stories")),
            ("", None),
            ("…", None),
            ("To add a model, open the settings and choose the file that you want", None),
            ("Short title for this conversation", None),
            ("Write a short title for this conversation", None),
            ("Three to six words", None),
            ("Title only", None),
            ("Short title (3-6 words)", None),
            ("Here is a title in German", None),
            ("Ein kurzer Titel ohne Satzzeichen", None),
            ("Schreibe einen kurzen Titel", None),
            ("1984", Some("1984")),
            ("Conversation Title", None),
            ("Answer with the title only.", None),
            ("A poem: answer with the title", None),
            ("Kurzer Titel für diese Unterhaltung", None),
            ("Titre court pour cette conversation", None),
            ("この会話の短いタイトル", None),
            ("简短的标题", None),
            ("عنوان قصير لهذه المحادثة", None),
        ];
        for (text, expected) in cases {
            assert_eq!(fit(text).as_deref(), expected, "{text:?}");
        }
    }
}

//! How often the guide answers a newcomer's question with the right article: `make guide-eval`.
//!
//! A line of `questions.tsv` is: language, ids of the right articles separated by commas (`-`: outside the guide's
//! scope), question. It was written without sight of the articles' phrasings. The path of another file of this form can
//! be given. Its questions are not printed, lest articles be written to suit them: only how often each article is missed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use guide::{Guide, Language};

/// Share of right answers that each set must reach, by its name.
const BARS: &[(&str, f64)] =
    &[("en", 0.97), ("de", 0.93), ("ja", 0.93), ("ar", 0.93), ("out of scope", 0.95)];

/// Longest time to an answer, from the first question after the start.
const MAX_ANSWER_TIME: Duration = Duration::from_millis(150);

/// Right answers and all questions of a set.
#[derive(Default)]
struct Score {
    n_right: usize,
    n_questions: usize,
    n_declined: usize,
    /// By article, how many of its questions are not answered with it.
    missed: BTreeMap<String, usize>,
}

fn main() -> std::io::Result<()> {
    let other = std::env::args().nth(1).map(std::fs::read_to_string).transpose()?;
    let mut missed = slow_languages();
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    let is_question =
        |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("language\t");
    for line in other.as_deref().unwrap_or(include_str!("questions.tsv")).lines().filter(is_question) {
        let [code, articles, question] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three fields: {line}")
        };
        let language = Language::from_code(code).expect("a language of the guide");
        let guide = Guide::in_language(language);
        let unknown = articles.split(',').find(|&id| id != "-" && guide.article(id).is_none());
        assert_eq!(unknown, None, "no such article: {line}");
        let answer = guide.answer(question).map_or_else(|| "-".to_owned(), |it| it.article);
        let is_right = articles.split(',').any(|id| id == answer);
        let score = scores.entry(if articles == "-" { "out of scope" } else { language.code() }).or_default();
        score.n_questions += 1;
        score.n_right += usize::from(is_right);
        score.n_declined += usize::from(answer == "-");
        if !is_right {
            *score.missed.entry(articles.to_owned()).or_default() += 1;
        }
        if !is_right && other.is_none() {
            println!("{code}: {question}\n    expected {articles}, answered {answer}");
        }
    }
    for (set, bar) in BARS {
        let score = scores.get(set).expect("every set has questions");
        let Score { n_right, n_questions, .. } = score;
        let share = *n_right as f64 / *n_questions as f64;
        println!("{set}: {n_right} of {n_questions} ({:.1} %, at least {:.0} %)", share * 100.0, bar * 100.0);
        if other.is_some() {
            println!("    declined: {}; missed: {:?}", score.n_declined, score.missed);
        }
        if share < *bar {
            missed.push(*set);
        }
    }
    if !missed.is_empty() {
        println!("below the bar: {}", missed.join(", "));
        std::process::exit(1);
    }
    Ok(())
}

/// Languages whose first or later answers take too long. The first reads the articles and the weights.
fn slow_languages() -> Vec<&'static str> {
    let mut slow = Vec::new();
    for language in Language::ALL {
        let question = match language {
            Language::English => "how do I print a chat?",
            Language::German => "Wie drucke ich einen Chat?",
            Language::Japanese => "チャットを印刷するには",
            Language::Arabic => "كيف أطبع محادثة؟",
        };
        let time = || {
            let start = Instant::now();
            std::hint::black_box(Guide::in_language(language).reply(question));
            start.elapsed()
        };
        let (first, second) = (time(), time());
        println!("{}: first answer after {first:.1?}, the next after {second:.1?}", language.code());
        if first.max(second) > MAX_ANSWER_TIME {
            slow.push(language.code());
        }
    }
    slow
}

//! How often the guide answers a newcomer's question with the right article: `make guide-eval`.
//!
//! `questions.tsv` was written without sight of the articles' phrasings. A line is: language, ids of the right articles
//! separated by commas (`-`: outside the guide's scope), question.

use std::collections::BTreeMap;

use guide::{Guide, Language};

/// Share of right answers that each set must reach, by its name.
const BARS: &[(&str, f64)] =
    &[("en", 0.97), ("de", 0.93), ("ja", 0.93), ("ar", 0.93), ("out of scope", 0.95)];

/// Right answers and all questions of a set.
#[derive(Default)]
struct Score {
    n_right: usize,
    n_questions: usize,
}

fn main() {
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    for line in
        include_str!("questions.tsv").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
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
        if !is_right {
            println!("{code}: {question}\n    expected {articles}, answered {answer}");
        }
    }
    let mut missed = Vec::new();
    for (set, bar) in BARS {
        let Score { n_right, n_questions } = scores.get(set).expect("every set has questions");
        let share = *n_right as f64 / *n_questions as f64;
        println!("{set}: {n_right} of {n_questions} ({:.1} %, at least {:.0} %)", share * 100.0, bar * 100.0);
        if share < *bar {
            missed.push(*set);
        }
    }
    if !missed.is_empty() {
        println!("below the bar: {}", missed.join(", "));
        std::process::exit(1);
    }
}

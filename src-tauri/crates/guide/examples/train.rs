//! Trains the classifier of the guide from its articles and questions: `make guide`. It shows how often the weights answer
//! the questions of `development.tsv`, and of other files of that form, which are not learned.

use guide::{DEVELOPMENT_SET, Language, answers_held_out, questions_of_set, train};

fn main() -> std::io::Result<()> {
    let others = std::env::args().skip(1).map(std::fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    for language in Language::ALL {
        let path = format!("{}/weights/{}.bin", env!("CARGO_MANIFEST_DIR"), language.code());
        let weights = train(language);
        println!("{}: {} bytes", language.code(), weights.len());
        for set in std::iter::once(DEVELOPMENT_SET).chain(others.iter().map(String::as_str)) {
            measure(language, &weights, set);
        }
        std::fs::write(path, weights)?;
    }
    Ok(())
}

fn measure(language: Language, weights: &[u8], set: &str) {
    let scores = answers_held_out(language, weights, &questions_of_set(language, set));
    let [articles, out_of_scope] = scores.map(|score| {
        let share = score.n_right as f64 * 100.0 / score.n_questions.max(1) as f64;
        format!("{} of {} ({share:.1} %)", score.n_right, score.n_questions)
    });
    println!("    articles {articles}, out of scope {out_of_scope}");
}

//! `nook guide`: answers a question about Inglenook from the user guide, without a model.

use clap::Args;
use contract::{Error, ErrorKind, Result};
use guide::{Guide, Language};
use serde_json::json;

use crate::args::Global;
use crate::out;

#[derive(Debug, Args)]
pub struct GuideArgs {
    /// A question, or a few words
    #[arg(value_name = "QUESTION", required = true)]
    pub question: Vec<String>,
    /// Language of the guide: en, de, ja or ar [default: the language of the question]
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
}

/// Articles offered where none answers the question.
const N_SIMILAR: usize = 3;

pub fn guide(global: &Global, args: &GuideArgs) -> Result<()> {
    let question = args.question.join(" ");
    let guide = Guide::in_language(match &args.language {
        Some(code) => Language::from_code(code).ok_or_else(|| unknown_language(code))?,
        None => Language::of_text(&question),
    });
    let answer = guide.answer(&question);
    if global.json {
        out::json(&match &answer {
            Some(it) => {
                json!({ "article": it.article, "title": it.title, "score": it.score, "text": it.text })
            }
            None => json!({ "article": null, "title": null, "score": null, "text": null }),
        });
        return Ok(());
    }
    match answer {
        Some(it) => out::line(&format!("{}\n\n{}", it.title, it.text)),
        None => {
            let similar = guide.search(&question, N_SIMILAR);
            let titles: Vec<_> = similar.iter().map(|it| format!("- {}", it.title)).collect();
            out::line(&format!(
                "The guide has no answer to that. The closest articles:\n{}",
                titles.join("\n")
            ));
        }
    }
    Ok(())
}

fn unknown_language(code: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        "guide.unknown_language",
        format!("The guide is not available in `{code}`."),
        "Choose en, de, ja or ar.",
    )
}

//! `nook rerank`: how well passages answer a query.

use app::App;
use contract::Result;
use serde_json::json;

use crate::args::{Global, RerankArgs};
use crate::{open_model, out};

pub fn rerank(global: &Global, args: &RerankArgs) -> Result<()> {
    let passages = open_model::json_texts(&args.jsonl)?;
    let app = App::open(global.app_config()?)?;
    let ranked = app.rank(&args.model, &args.query, &passages)?;
    for index in &ranked.cut {
        out::log(&format!("Passage {index} was cut at its end: it doesn't fit the model's context."));
    }
    if global.json {
        let mut value = json!({ "scores": ranked.scores });
        if !ranked.cut.is_empty() {
            value["cut"] = json!(ranked.cut);
        }
        out::json(&value);
        return Ok(());
    }
    let mut order: Vec<usize> = (0..passages.len()).collect();
    order.sort_by(|a, b| ranked.scores[*b].total_cmp(&ranked.scores[*a]));
    for index in order {
        let line = passages[index].split_whitespace().collect::<Vec<_>>().join(" ");
        out::line(&format!("{:>9.4}  {line}", ranked.scores[index]));
    }
    Ok(())
}

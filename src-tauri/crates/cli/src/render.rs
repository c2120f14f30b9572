//! `nook render`: renders messages with a chat template.

use contract::Error;
use contract::Result;
use engine::arch;
use engine::template::{ChatTemplate, RenderInput};
use engine::tokenizer::Tokenizer;
use io::{Clock, RealClock};
use platform::calendar;
use serde_json::{Map, Value, json};

use crate::args::{Global, RenderArgs};
use crate::{open_model, out};

/// A template and the model's BOS and EOS tokens.
struct TemplateSource {
    template: ChatTemplate,
    bos: String,
    eos: String,
}

pub fn render(global: &Global, args: &RenderArgs) -> Result<()> {
    let source = match (&args.source.model, &args.source.template) {
        (Some(model), _) => of_model(model, global)?,
        (None, Some(path)) => {
            let template = ChatTemplate::from_source(&open_model::read_text(path)?)?;
            TemplateSource { template, bos: String::new(), eos: String::new() }
        }
        (None, None) => unreachable!("the command line demands one of them"),
    };
    for (_, line) in open_model::json_lines(&args.jsonl)? {
        match source.render(&line) {
            Ok(text) => out::json(&json!({ "text": text })),
            Err(error) => out::json(&json!({ "error": out::error_json(&error) })),
        }
    }
    Ok(())
}

fn of_model(model: &str, global: &Global) -> Result<TemplateSource> {
    let file = open_model::open(model, global)?;
    let tokenizer = Tokenizer::from_weights(&file).ok();
    let template = match (ChatTemplate::from_weights(&file)?, &tokenizer, arch::find(&file)) {
        (Some(template), _, _) => template,
        // The same fallback as for answers.
        (None, Some(tokenizer), Ok(family)) => arch::built_in_template(family.gguf_name(), tokenizer).1,
        (None, _, _) => {
            let message = format!("{model} carries no chat template.");
            return Err(Error::input("template.missing", message, "Set a template file with --template."));
        }
    };
    let name = |id: fn(&Tokenizer) -> Option<u32>| {
        let text = tokenizer.as_ref().and_then(|tokenizer| tokenizer.token_text(id(tokenizer)?));
        text.unwrap_or_default().to_owned()
    };
    Ok(TemplateSource { template, bos: name(Tokenizer::bos), eos: name(Tokenizer::eos) })
}

impl TemplateSource {
    fn render(&self, line: &Value) -> Result<String> {
        let messages = line["messages"].as_array().ok_or_else(|| {
            Error::input(
                "input.no_messages",
                "The line has no list of messages.",
                "Write {\"messages\": […]}.",
            )
        })?;
        let none = Map::new();
        let kwargs = line["kwargs"].as_object().unwrap_or(&none);
        let today = calendar::date_time(RealClock::new().now_utc_ms());
        let input = RenderInput {
            messages,
            tools: &line["tools"],
            kwargs,
            bos_token: line["bos_token"].as_str().unwrap_or(&self.bos),
            eos_token: line["eos_token"].as_str().unwrap_or(&self.eos),
            now: Some(line["now"].as_str().unwrap_or(&today)),
        };
        Ok(self.template.render(&input)?.text)
    }
}

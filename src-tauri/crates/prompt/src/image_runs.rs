//! Placeholders of images in a rendered prompt: each becomes the text that stands for its picture.
//!
//! Only what the template wrote is a placeholder, never what somebody typed.

use std::collections::HashMap;
use std::ops::Range;

use contract::protocol::{PromptImage, PromptMessage};
use contract::{Error, Result};
use engine::TokenId;
use engine::template::{ContentSpan, RenderedPrompt};
use serde_json::{Value, json};
use vision::{FamilySettings, ImageSettings, PictureSize};

use crate::images::{key_of, settings_for, texts_between, unusable};

/// How a model takes images.
#[derive(Clone, Copy)]
pub struct ImageInput<'a> {
    /// How pictures become patches and placeholders.
    pub settings: &'a ImageSettings,
    /// Tokens of the rows of each picture, by `images::key_of`. None: prompts are only counted.
    pub tokens: Option<&'a HashMap<String, Vec<TokenId>>>,
}

/// A stretch of the prompt's text that stands for rows of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRun {
    /// Bytes of the text.
    pub range: Range<usize>,
    /// The tokens of the rows.
    pub ids: Vec<TokenId>,
}

/// How a template is shown a message with images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageForm {
    /// As a list of parts, from which the template writes placeholders.
    Parts,
    /// As a text in which this character stands for each image, for templates that know only texts.
    Marked(char),
}

impl ImageForm {
    /// The form for templates that know only texts. None: the messages contain every character that could be used.
    pub fn marked(messages: &[PromptMessage]) -> Option<Self> {
        // Noncharacters: no text has a meaning for them.
        let free = |mark: &char| !messages.iter().any(|message| message.content.contains(*mark));
        ('\u{fdd0}'..='\u{fdef}').find(free).map(Self::Marked)
    }

    /// The content of a message for a template.
    pub fn content(self, message: &PromptMessage) -> Value {
        if message.images.is_empty() {
            return json!(message.content);
        }
        let texts = texts_between(message);
        match self {
            Self::Marked(mark) => json!(texts.join(&mark.to_string())),
            Self::Parts => {
                let mut parts = Vec::new();
                for (index, text) in texts.into_iter().enumerate() {
                    if index > 0 {
                        parts.push(json!({ "type": "image" }));
                    }
                    if !text.is_empty() {
                        parts.push(json!({ "type": "text", "text": text }));
                    }
                }
                json!(parts)
            }
        }
    }
}

/// What takes the place of a placeholder.
struct Replacement {
    range: Range<usize>,
    text: String,
    /// Of `text`.
    runs: Vec<ImageRun>,
}

impl ImageInput<'_> {
    /// Replaces the placeholders of a rendered prompt. None: the template did not write one for each image.
    pub fn expand(
        &self,
        rendered: RenderedPrompt,
        form: ImageForm,
        images: &[&PromptImage],
    ) -> Result<Option<(RenderedPrompt, Vec<ImageRun>)>> {
        let sites = self.sites(&rendered, form);
        if sites.len() != images.len() {
            return Ok(None);
        }
        let mut replacements = Vec::with_capacity(sites.len());
        for (site, image) in sites.into_iter().zip(images) {
            replacements.push(self.replacement(site, form, image)?);
        }
        Ok(Some(replaced(rendered, replacements)))
    }

    fn sites(&self, rendered: &RenderedPrompt, form: ImageForm) -> Vec<Range<usize>> {
        let text = rendered.text.as_str();
        match form {
            ImageForm::Marked(mark) => {
                text.match_indices(mark).map(|(at, found)| at..at + found.len()).collect()
            }
            ImageForm::Parts => {
                let sites = text.match_indices(self.settings.placeholder());
                let is_typed = |site: &Range<usize>| {
                    let spans = &rendered.content_spans;
                    spans.iter().any(|span| span.range.start < site.end && site.start < span.range.end)
                };
                sites.map(|(at, found)| at..at + found.len()).filter(|site| !is_typed(site)).collect()
            }
        }
    }

    fn replacement(&self, range: Range<usize>, form: ImageForm, image: &PromptImage) -> Result<Replacement> {
        let size = PictureSize::new(image.width as usize, image.height as usize);
        let layout = settings_for(image, self.settings).layout(size).map_err(|error| unusable(&error))?;
        let text = match form {
            ImageForm::Parts => layout.expanded_text.clone(),
            ImageForm::Marked(_) => {
                let (before, after) = around(self.settings);
                format!("{before}{}{after}", layout.expanded_text)
            }
        };
        let token = self.settings.image_token();
        let ranges = repetitions(&text, token);
        let n_rows: usize = ranges.iter().map(|range| range.len() / token.len()).sum();
        let ids = match self.tokens {
            None => vec![0; n_rows],
            Some(tokens) => tokens.get(&key_of(image)).cloned().unwrap_or_default(),
        };
        if ids.len() != n_rows {
            let n_ids = ids.len();
            return Err(Error::bug(format!("an image of {n_rows} placeholders has {n_ids} rows")));
        }
        let mut rest = ids.as_slice();
        let run = |range: Range<usize>| {
            let (ids, after) = rest.split_at(range.len() / token.len());
            rest = after;
            ImageRun { range, ids: ids.to_vec() }
        };
        let runs = ranges.into_iter().map(run).collect();
        Ok(Replacement { range, text, runs })
    }
}

/// Where a text repeats `token` without anything between.
fn repetitions(text: &str, token: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, found) in text.match_indices(token) {
        match runs.last_mut() {
            Some(last) if last.end == at => last.end = at + found.len(),
            Some(_) | None => runs.push(at..at + found.len()),
        }
    }
    runs
}

/// A prompt with replacements, which are in order. Spans that one lies in are split around it.
fn replaced(rendered: RenderedPrompt, replacements: Vec<Replacement>) -> (RenderedPrompt, Vec<ImageRun>) {
    let RenderedPrompt { text, content_spans } = rendered;
    let mut spans = content_spans.into_iter().peekable();
    let mut result = RenderedPrompt::default();
    let (mut runs, mut from) = (Vec::new(), 0);
    // What is left of a span whose beginning has been taken.
    let mut rest: Option<ContentSpan> = None;
    let ends = [Replacement { range: text.len()..text.len(), text: String::new(), runs: Vec::new() }];
    for Replacement { range, text: new_text, runs: new_runs } in replacements.into_iter().chain(ends) {
        let moved = |at: usize, n_before: usize| at - from + n_before;
        let n_before = result.text.len();
        while let Some(span) = rest.take().or_else(|| spans.next_if(|span| span.range.start < range.start)) {
            let is_split = span.range.end > range.start;
            let end = span.range.end.min(range.start);
            let kept = moved(span.range.start, n_before)..moved(end, n_before);
            if !kept.is_empty() {
                let is_content = span.is_content && !is_split;
                result.content_spans.push(ContentSpan { range: kept, is_content, ..span });
            }
            if is_split {
                let left = range.end..span.range.end;
                rest = (!left.is_empty()).then_some(ContentSpan { range: left, is_content: false, ..span });
                break;
            }
        }
        result.text.push_str(&text[from..range.start]);
        let start = result.text.len();
        let shifted =
            |run: ImageRun| ImageRun { range: run.range.start + start..run.range.end + start, ..run };
        runs.extend(new_runs.into_iter().map(shifted));
        result.text.push_str(&new_text);
        from = range.end;
    }
    (result, runs)
}

/// What a family's template writes before and after the placeholder of an image.
fn around(settings: &ImageSettings) -> (&'static str, &'static str) {
    match settings.family {
        FamilySettings::QwenVl(_) => ("<|vision_start|>", "<|vision_end|>"),
        FamilySettings::Gemma3(_)
        | FamilySettings::Gemma4(_)
        | FamilySettings::Pixtral(_)
        | FamilySettings::Lfm2(_)
        | FamilySettings::Idefics3(_) => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use engine::template::{ChatTemplate, RenderInput};
    use serde_json::Map;

    use contract::protocol::ImageDetail;

    use super::*;
    use crate::images::from_base64;

    /// Gemma 3 with a square of 4 × 4 patches, of which 2 × 2 become a token.
    fn settings() -> ImageSettings {
        let config = json!({
            "model_type": "gemma3", "mm_tokens_per_image": 4, "vision_config": { "patch_size": 14 },
        });
        let processor = json!({ "size": { "height": 56, "width": 56 } });
        ImageSettings::from_json(Some(&processor), None, &config).unwrap()
    }

    fn image(at: usize) -> PromptImage {
        let png =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";
        PromptImage { at, ..from_base64(png).unwrap() }
    }

    fn said(content: &str, at: &[usize]) -> PromptMessage {
        let images = at.iter().map(|at| image(*at)).collect();
        PromptMessage { role: "user".into(), content: content.into(), images, ..PromptMessage::default() }
    }

    fn expand(
        source: &str,
        form: ImageForm,
        messages: &[PromptMessage],
    ) -> Option<(RenderedPrompt, Vec<ImageRun>)> {
        let template = ChatTemplate::from_source(source).unwrap();
        let values: Vec<Value> =
            messages.iter().map(|it| json!({ "role": it.role, "content": form.content(it) })).collect();
        let (tools, kwargs) = (Value::Null, Map::new());
        let rendered = template
            .render(&RenderInput {
                messages: &values,
                tools: &tools,
                kwargs: &kwargs,
                bos_token: "",
                eos_token: "",
                now: None,
            })
            .unwrap();
        let (settings, images) = (settings(), messages.iter().flat_map(|it| &it.images).collect::<Vec<_>>());
        let tokens = HashMap::from([(key_of(&image(0)), vec![7, 8, 9, 10])]);
        ImageInput { settings: &settings, tokens: Some(&tokens) }.expand(rendered, form, &images).unwrap()
    }

    const PARTS: &str = "{% for m in messages %}<u>{% if m.content is string %}{{ m.content }}{% else %}\
        {% for p in m.content %}{% if p.type == 'image' %}<start_of_image>{% else %}{{ p.text }}{% endif %}\
        {% endfor %}{% endif %}</u>{% endfor %}";
    const TEXTS: &str = "{% for m in messages %}<u>{{ m.content }}</u>{% endfor %}";
    const SOFT: &str = "<image_soft_token>";

    #[test]
    fn placeholders_of_the_template_become_rows_and_typed_ones_stay() {
        let typed = "a <start_of_image> b";
        let messages = [said(typed, &[]), said("xy", &[0, 1])];
        let (prompt, runs) = expand(PARTS, ImageForm::Parts, &messages).unwrap();
        let one = format!("\n\n<start_of_image>{}<end_of_image>\n\n", SOFT.repeat(4));
        assert_eq!(prompt.text, format!("<u>{typed}</u><u>{one}x{one}y</u>"));
        assert_eq!(runs.len(), 2);
        for run in &runs {
            assert_eq!(prompt.text[run.range.clone()], SOFT.repeat(4));
            assert_eq!(run.ids, [7, 8, 9, 10]);
        }
        let spans: Vec<_> =
            prompt.content_spans.iter().map(|span| &prompt.text[span.range.clone()]).collect();
        assert_eq!(spans, [typed, "x", "y"]);
    }

    #[test]
    fn templates_that_know_only_texts_get_marks() {
        let messages = [said("xy z", &[1]), said("w", &[])];
        assert!(expand("{{ messages[0].role }}", ImageForm::Parts, &messages).is_none());
        let form = ImageForm::marked(&messages).unwrap();
        let (prompt, runs) = expand(TEXTS, form, &messages).unwrap();
        let one = format!("\n\n<start_of_image>{}<end_of_image>\n\n", SOFT.repeat(4));
        assert_eq!(prompt.text, format!("<u>x{one}y z</u><u>w</u>"));
        assert_eq!(runs.len(), 1);
        let spans: Vec<_> = prompt
            .content_spans
            .iter()
            .map(|span| (&prompt.text[span.range.clone()], span.is_content))
            .collect();
        assert_eq!(spans, [("x", false), ("y z", false), ("w", true)]);
        let taken = ImageForm::marked(&[said("\u{fdd0}", &[])]);
        assert_eq!(taken, Some(ImageForm::Marked('\u{fdd1}')));
    }

    /// Qwen's towers take pictures of any size, at their own number of tokens or fewer.
    #[test]
    fn a_picture_in_low_detail_takes_fewer_tokens() {
        let config = json!({
            "model_type": "qwen3_vl", "vision_config": { "patch_size": 16, "spatial_merge_size": 2 },
        });
        let processor = json!({ "size": { "shortest_edge": 65536, "longest_edge": 16777216 } });
        let settings = ImageSettings::from_json(Some(&processor), None, &config).unwrap();
        let n_rows = |detail| {
            let image = PromptImage { width: 1024, height: 768, detail, ..image(0) };
            let input = ImageInput { settings: &settings, tokens: None };
            let replacement = input.replacement(0..0, ImageForm::Parts, &image).unwrap();
            replacement.runs.iter().map(|run| run.ids.len()).sum::<usize>()
        };
        assert_eq!(n_rows(ImageDetail::Full), 1024 * 768 / (32 * 32));
        let low = n_rows(ImageDetail::Low);
        assert!((200..=256).contains(&low), "{low}");
        let keys =
            [ImageDetail::Low, ImageDetail::Full].map(|detail| key_of(&PromptImage { detail, ..image(0) }));
        assert_ne!(keys[0], keys[1]);
    }
}

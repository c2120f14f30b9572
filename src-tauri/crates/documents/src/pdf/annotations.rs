//! What was filled in or written onto a page: values of form fields and `FreeText` notes.
//! Passwords, signatures, buttons and hidden annotations are left out.

use std::collections::HashSet;

use lopdf::{Dictionary, Document, Object, ObjectId};

use super::strings;

/// Fields within fields.
const MAX_LEVELS: usize = 32;

/// Annotations that are read of one page.
const MAX_ANNOTATIONS: usize = 5000;

/// Bits of `F` of an annotation: hidden, or not for the screen.
const HIDDEN: i64 = 1 << 1 | 1 << 5;

/// Bits of `Ff` of a field.
const PASSWORD: i64 = 1 << 13;
const RADIO: i64 = 1 << 15;
const PUSH_BUTTON: i64 = 1 << 16;

/// Reads pages of one document.
#[derive(Default)]
pub struct AnnotationReader {
    /// Fields already written: one may stand in several places.
    written: HashSet<ObjectId>,
}

impl AnnotationReader {
    /// A line for each note and filled field of a page, in the page's order.
    pub fn page(&mut self, document: &Document, page: ObjectId) -> String {
        let page = document.get_dictionary(page).ok();
        let list = page.and_then(|page| page.get_deref(b"Annots", document).ok()?.as_array().ok());
        let mut text = String::new();
        for entry in list.into_iter().flatten().take(MAX_ANNOTATIONS) {
            let Ok((_, Object::Dictionary(annotation))) = document.dereference(entry) else { continue };
            let flags = integer(document, annotation, b"F").unwrap_or(0);
            if flags & HIDDEN != 0 {
                continue;
            }
            let line = match annotation.get_deref(b"Subtype", document).and_then(Object::as_name) {
                Ok(b"Widget") => self.field(document, entry, annotation),
                Ok(b"FreeText") => {
                    annotation.get(b"Contents").ok().and_then(|it| strings::text(document, it))
                }
                _ => None,
            };
            if let Some(line) = line.as_deref().map(str::trim).filter(|line| !line.is_empty()) {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }

    fn field(&mut self, document: &Document, entry: &Object, widget: &Dictionary) -> Option<String> {
        let line = field_line(document, widget);
        let field = Field { document, levels: line };
        let flags = field.get(b"Ff").and_then(|it| it.as_i64().ok()).unwrap_or(0);
        let kind = field.get(b"FT")?.as_name().ok()?;
        let is_checkbox = kind == b"Btn" && flags & RADIO == 0;
        // checkboxes of one name may differ; other widgets repeat their field's value
        let owner = match is_checkbox {
            true => entry.as_reference().ok(),
            false => field.owner().or(entry.as_reference().ok()),
        };
        if owner.is_some_and(|owner| !self.written.insert(owner)) {
            return None;
        }
        let label = field.label();
        let named = |value: String| match &label {
            Some(label) => format!("{label}: {value}"),
            None => value,
        };
        match kind {
            b"Tx" if flags & PASSWORD == 0 => field
                .get(b"V")
                .and_then(|value| strings::text(document, value))
                .filter(|it| !it.trim().is_empty())
                .map(named),
            b"Ch" => field.choice().map(named),
            b"Btn" if flags & PUSH_BUTTON != 0 => None,
            b"Btn" if is_checkbox => {
                let state = widget.get_deref(b"AS", document).ok().or_else(|| field.get(b"V"));
                let is_on = state?.as_name().is_ok_and(|state| state != b"Off");
                Some(format!("[{}] {}", if is_on { 'x' } else { ' ' }, label?))
            }
            b"Btn" => field.radio().map(named),
            _ => None,
        }
    }
}

/// A widget and the fields that it belongs to, inner ones first.
struct Field<'a> {
    document: &'a Document,
    levels: Vec<(Option<ObjectId>, &'a Dictionary)>,
}

/// The widget, its field and the fields around that.
fn field_line<'a>(document: &'a Document, widget: &'a Dictionary) -> Vec<(Option<ObjectId>, &'a Dictionary)> {
    let mut levels = vec![(None, widget)];
    let mut at = widget;
    while let Ok(parent) = at.get(b"Parent").and_then(Object::as_reference)
        && levels.len() < MAX_LEVELS
        && let Ok(dict) = document.get_dictionary(parent)
    {
        levels.push((Some(parent), dict));
        at = dict;
    }
    levels
}

impl<'a> Field<'a> {
    /// A value that fields hand down.
    fn get(&self, key: &[u8]) -> Option<&'a Object> {
        self.levels.iter().find_map(|(_, dict)| dict.get_deref(key, self.document).ok())
    }

    /// The field that has the name, if it isn't the widget itself.
    fn owner(&self) -> Option<ObjectId> {
        self.levels.iter().find(|(_, dict)| dict.has(b"T")).and_then(|(id, _)| *id)
    }

    /// What the form calls the field for its reader, else its name.
    fn label(&self) -> Option<String> {
        let word = |key: &[u8]| {
            let word = self.levels.iter().find_map(|(_, dict)| dict.get(key).ok())?;
            let word = strings::text(self.document, word)?;
            // XFA numbers the fields of a name: `Name[0]`
            let word = word.split_once('[').map_or(word.as_str(), |(word, _)| word).trim().to_owned();
            (!word.is_empty()).then_some(word)
        };
        word(b"TU").or_else(|| word(b"T"))
    }

    /// What is chosen from a list, as the list shows it.
    fn choice(&self) -> Option<String> {
        let options =
            self.get(b"Opt").and_then(|it| it.as_array().ok()).map(Vec::as_slice).unwrap_or_default();
        let shown = |value: &Object| {
            let value = strings::text(self.document, value)?;
            let pairs = options.iter().filter_map(|it| self.document.dereference(it).ok()?.1.as_array().ok());
            let mut pairs = pairs.filter_map(|pair| {
                Some((
                    strings::text(self.document, pair.first()?)?,
                    strings::text(self.document, pair.get(1)?)?,
                ))
            });
            Some(pairs.find(|(export, _)| *export == value).map_or(value, |(_, shown)| shown))
        };
        let value = self.get(b"V")?;
        let chosen = match value {
            Object::Array(values) => values.iter().filter_map(shown).collect::<Vec<_>>().join(", "),
            value => shown(value)?,
        };
        (!chosen.trim().is_empty()).then_some(chosen)
    }

    /// Which of several buttons is on. Numbers stand for the texts in `Opt`.
    fn radio(&self) -> Option<String> {
        let value = self.get(b"V")?.as_name().ok().filter(|value| *value != b"Off")?;
        let value = String::from_utf8_lossy(value).into_owned();
        let options = self.get(b"Opt").and_then(|it| it.as_array().ok());
        let option =
            options.and_then(|list| strings::text(self.document, list.get(value.parse::<usize>().ok()?)?));
        Some(option.unwrap_or(value))
    }
}

fn integer(document: &Document, dict: &Dictionary, key: &[u8]) -> Option<i64> {
    dict.get_deref(key, document).ok()?.as_i64().ok()
}

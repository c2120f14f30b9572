//! Numbers of lists as Word counts them: definitions by level, their instances, and where counting starts again.

use std::collections::{HashMap, HashSet};

use crate::extract_error::ExtractError;
use crate::list_label::NumberStyle;
use crate::office::xml::{XmlElement, XmlEvent, XmlReader};

/// Levels of a definition.
const N_LEVELS: usize = 9;

/// Longest pattern of a label. Characters.
const MAX_PATTERN_CHARS: usize = 100;

/// What a paragraph or style says of its list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberingReference {
    pub id: Option<String>,
    /// From 0.
    pub level: Option<usize>,
}

/// One level of a list.
#[derive(Debug, Clone, Default)]
struct NumberingLevel {
    start: u32,
    style: NumberStyle,
    /// Such as `%1.%2)`.
    pattern: String,
    /// The style whose paragraphs are of this level.
    paragraph_style: Option<String>,
}

type Levels = [NumberingLevel; N_LEVELS];

/// An instance of a definition.
#[derive(Debug, Clone, Default)]
struct NumberingInstance {
    definition: String,
    starts: HashMap<usize, u32>,
}

/// Lists of a document, and how far each has counted.
#[derive(Debug, Clone, Default)]
pub struct Numbering {
    definitions: HashMap<String, Levels>,
    instances: HashMap<String, NumberingInstance>,
    /// Per definition and level; None: the level has not begun.
    counts: HashMap<String, [Option<u32>; N_LEVELS]>,
    used: HashSet<String>,
}

impl Numbering {
    pub fn read(mut xml: XmlReader<'_>) -> Result<Self, ExtractError> {
        let mut numbering = Self::default();
        while let Some(event) = xml.next()? {
            let XmlEvent::Start(element) = event else { continue };
            match element.name() {
                "abstractNum" => {
                    let id = element.attribute("abstractNumId").unwrap_or_default();
                    numbering.definitions.insert(id, levels(&mut xml)?);
                }
                "num" => {
                    let id = element.attribute("numId").unwrap_or_default();
                    numbering.instances.insert(id, instance(&mut xml)?);
                }
                _ => {}
            }
        }
        Ok(numbering)
    }

    /// Depth and label of the next paragraph of a list. `style` tells its level where the reference does not. None: it
    /// is in no list.
    pub fn next_label(
        &mut self,
        reference: &NumberingReference,
        style: Option<&str>,
    ) -> Option<(usize, String)> {
        let id = reference.id.as_deref()?;
        let instance = self.instances.get(id)?;
        let levels = self.definitions.get(&instance.definition)?;
        let of_style = || {
            levels
                .iter()
                .position(|it| it.paragraph_style.is_some() && it.paragraph_style.as_deref() == style)
        };
        let level = reference.level.or_else(of_style).unwrap_or(0).min(N_LEVELS - 1);
        let counts = self.counts.entry(instance.definition.clone()).or_default();
        if self.used.insert(id.to_owned()) {
            // an instance that says where it starts begins there
            for level in instance.starts.keys().filter(|level| **level < N_LEVELS) {
                counts[*level] = None;
            }
        }
        let start = |at: usize| instance.starts.get(&at).copied().unwrap_or(levels[at].start);
        counts[level] = Some(counts[level].map_or_else(|| start(level), |n| n.saturating_add(1)));
        counts[level + 1..].fill(None);
        let values: Vec<u32> = (0..=level).map(|at| counts[at].unwrap_or_else(|| start(at))).collect();
        let label = match levels[level].style {
            NumberStyle::Bullet => "-".to_owned(),
            _ => fill(&levels[level].pattern, levels, &values),
        };
        Some((level, label))
    }
}

fn fill(pattern: &str, levels: &Levels, values: &[u32]) -> String {
    let mut label = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            label.push(c);
            continue;
        }
        let at = chars.next().and_then(|digit| digit.to_digit(10)).map_or(0, |n| n as usize);
        if let Some(value) = at.checked_sub(1).and_then(|at| values.get(at)) {
            label.push_str(&levels[at - 1].style.write(*value));
        }
    }
    label
}

fn levels(xml: &mut XmlReader<'_>) -> Result<Levels, ExtractError> {
    let end = xml.depth() - 1;
    let mut levels = Levels::default();
    let mut at = 0;
    while xml.depth() > end {
        let Some(event) = xml.next()? else { break };
        let XmlEvent::Start(element) = event else { continue };
        match element.name() {
            "lvl" => at = element.number("ilvl").unwrap_or(0).min(N_LEVELS - 1),
            "pPr" | "rPr" => xml.skip()?,
            _ => note_level(&mut levels[at], &element),
        }
    }
    Ok(levels)
}

fn note_level(level: &mut NumberingLevel, element: &XmlElement<'_>) {
    match element.name() {
        "start" => level.start = element.number("val").unwrap_or(0),
        "numFmt" => level.style = NumberStyle::of_word(&element.attribute("val").unwrap_or_default()),
        "lvlText" => {
            level.pattern =
                element.attribute("val").unwrap_or_default().chars().take(MAX_PATTERN_CHARS).collect();
        }
        "pStyle" => level.paragraph_style = element.attribute("val"),
        _ => {}
    }
}

fn instance(xml: &mut XmlReader<'_>) -> Result<NumberingInstance, ExtractError> {
    let end = xml.depth() - 1;
    let mut instance = NumberingInstance::default();
    let mut at = 0;
    while xml.depth() > end {
        let Some(event) = xml.next()? else { break };
        let XmlEvent::Start(element) = event else { continue };
        match element.name() {
            "abstractNumId" => instance.definition = element.attribute("val").unwrap_or_default(),
            "lvlOverride" => at = element.number("ilvl").unwrap_or(0),
            "startOverride" => drop(instance.starts.insert(at, element.number("val").unwrap_or(1))),
            "lvl" => xml.skip()?,
            _ => {}
        }
    }
    Ok(instance)
}

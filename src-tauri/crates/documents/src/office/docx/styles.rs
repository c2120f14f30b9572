//! Styles of paragraphs: which are headings, and which number their paragraphs.

use std::collections::HashMap;

use super::numbering::NumberingReference;
use crate::extract_error::ExtractError;
use crate::office::xml::{XmlElement, XmlEvent, XmlReader};

/// Styles that a style may be based on, one after another.
const MAX_BASES: usize = 32;

/// What a paragraph says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParagraphProperties {
    pub style: Option<String>,
    /// From 0; 9 is body text.
    pub outline_level: Option<u8>,
    pub numbering: Option<NumberingReference>,
}

/// Reads the element `pPr` that just began.
pub fn paragraph_properties(xml: &mut XmlReader<'_>) -> Result<ParagraphProperties, ExtractError> {
    let end = xml.depth() - 1;
    let mut found = ParagraphProperties::default();
    while xml.depth() > end {
        let Some(event) = xml.next()? else { break };
        let XmlEvent::Start(element) = event else { continue };
        match element.name() {
            "pStyle" => found.style = element.attribute("val"),
            "outlineLvl" => found.outline_level = element.number("val"),
            "numPr" => {
                found.numbering.get_or_insert_default();
            }
            "numId" | "ilvl" => note_numbering(&mut found, &element),
            // properties of another paragraph, before a change
            "rPr" | "sectPr" | "pPrChange" => xml.skip()?,
            _ => {}
        }
    }
    Ok(found)
}

fn note_numbering(found: &mut ParagraphProperties, element: &XmlElement<'_>) {
    let Some(reference) = &mut found.numbering else { return };
    match element.name() {
        "numId" => reference.id = element.attribute("val"),
        _ => reference.level = element.number("val"),
    }
}

/// One style of paragraphs.
#[derive(Debug, Clone, Default)]
struct ParagraphStyle {
    name: String,
    base: Option<String>,
    properties: ParagraphProperties,
}

/// The styles of a document, by their ids.
#[derive(Debug, Clone, Default)]
pub struct Styles(HashMap<String, ParagraphStyle>);

impl Styles {
    pub fn read(mut xml: XmlReader<'_>) -> Result<Self, ExtractError> {
        let mut styles = HashMap::new();
        while let Some(event) = xml.next()? {
            let XmlEvent::Start(element) = event else { continue };
            if element.name() != "style" || element.attribute("type").is_some_and(|it| it != "paragraph") {
                continue;
            }
            let id = element.attribute("styleId").unwrap_or_default();
            let end = xml.depth() - 1;
            let mut style = ParagraphStyle::default();
            while xml.depth() > end {
                let Some(event) = xml.next()? else { break };
                let XmlEvent::Start(element) = event else { continue };
                match element.name() {
                    "name" => style.name = element.attribute("val").unwrap_or_default().to_lowercase(),
                    "basedOn" => style.base = element.attribute("val"),
                    "pPr" => style.properties = paragraph_properties(&mut xml)?,
                    "rPr" | "tblPr" | "tblStylePr" => xml.skip()?,
                    _ => {}
                }
            }
            styles.insert(id, style);
        }
        Ok(Self(styles))
    }

    /// The style of this id and those it is based on.
    fn bases<'a>(&'a self, id: Option<&'a str>) -> impl Iterator<Item = (&'a str, &'a ParagraphStyle)> {
        let find = |id: &'a str| Some((id, self.0.get(id)?));
        std::iter::successors(id.and_then(find), move |(_, style)| find(style.base.as_deref()?))
            .take(MAX_BASES)
    }

    /// Level of the heading that a paragraph is, from 1.
    pub fn heading_level(&self, properties: &ParagraphProperties) -> Option<u8> {
        const BODY: u8 = 9;
        if let Some(level) = properties.outline_level {
            return (level < BODY).then_some(level + 1);
        }
        self.bases(properties.style.as_deref()).find_map(|(_, style)| {
            let named = style.name.strip_prefix("heading ").and_then(|level| level.parse().ok());
            let titled = (style.name == "title").then_some(1);
            let outlined =
                style.properties.outline_level.filter(|level| *level < BODY).map(|level| level + 1);
            named.or(titled).or(outlined)
        })
    }

    /// Numbering of a paragraph, with the style that it comes from.
    pub fn numbering<'a>(
        &'a self,
        properties: &'a ParagraphProperties,
    ) -> Option<(&'a NumberingReference, Option<&'a str>)> {
        if let Some(own) = properties.numbering.as_ref().filter(|it| it.id.is_some()) {
            return Some((own, properties.style.as_deref()));
        }
        let mut bases = self.bases(properties.style.as_deref());
        bases.find_map(|(id, style)| Some((style.properties.numbering.as_ref()?, Some(id))))
    }
}

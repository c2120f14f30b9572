//! Reads the XML of documents event by event, within limits. Names are compared without their prefix.
//!
//! Declarations of entities are ignored, so that none is expanded and no other file is read.

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::archive::{Archive, damaged};
use crate::extract_error::ExtractError;

/// Elements inside of each other: deep tables in text boxes have some fifty.
const MAX_DEPTH: usize = 512;

/// Events between two looks at the clock of the reader.
const EVENTS_PER_CHECK: u32 = 1 << 12;

/// What comes next. An empty element has an end, too.
pub enum XmlEvent<'a> {
    Start(XmlElement<'a>),
    /// Name without its prefix.
    End(Cow<'a, str>),
    Text(Cow<'a, str>),
}

/// The start of an element.
pub struct XmlElement<'a>(BytesStart<'a>);

impl XmlElement<'_> {
    /// Name without its prefix.
    pub fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// The prefix of its name; empty: none.
    pub fn prefix(&self) -> &str {
        self.0.name().prefix().map_or("", |prefix| prefix.into_inner())
    }

    /// The value of the first attribute of this name, whatever its prefix.
    pub fn attribute(&self, name: &str) -> Option<String> {
        self.find(|key| key.rsplit(':').next() == Some(name))
    }

    /// The value of the attribute `id` of a namespace: the name of a relationship in Office files.
    pub fn relationship(&self) -> Option<String> {
        self.find(|key| key.ends_with(":id"))
    }

    fn find(&self, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let mut attributes = self.0.attributes();
        let found = attributes.with_checks(false).flatten().find(|it| is_wanted(it.key.into_inner()))?;
        let value = found.normalized_value(XmlVersion::Implicit1_0);
        Some(value.map_or_else(|_| found.value.to_string(), Cow::into_owned))
    }

    /// The attribute as a number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.attribute(name)?.trim().parse().ok()
    }

    /// An element that switches something on, unless it says otherwise.
    pub fn is_on(&self) -> bool {
        !matches!(self.attribute("val").as_deref(), Some("0" | "false" | "off" | "none"))
    }
}

/// A part that is being read.
pub struct XmlReader<'a> {
    reader: Reader<&'a [u8]>,
    /// Name of the part, for errors.
    part: &'a str,
    archive: &'a Archive<'a>,
    depth: usize,
    n_events: u32,
}

impl<'a> XmlReader<'a> {
    pub fn new(archive: &'a Archive<'a>, part: &'a str, text: &'a str) -> Self {
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        reader.config_mut().expand_empty_elements = true;
        reader.config_mut().allow_dangling_amp = true;
        Self { reader, part, archive, depth: 0, n_events: 0 }
    }

    /// Elements that are open.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// None: the part is over.
    pub fn next(&mut self) -> Result<Option<XmlEvent<'a>>, ExtractError> {
        loop {
            self.n_events = self.n_events.wrapping_add(1);
            if self.n_events.is_multiple_of(EVENTS_PER_CHECK) && self.archive.is_stopped() {
                return Err(ExtractError::new("reading it was stopped", "Attach it again."));
            }
            let event = self.reader.read_event().map_err(|error| self.broken(&error.to_string()))?;
            return Ok(Some(match event {
                Event::Start(start) | Event::Empty(start) => {
                    self.depth += 1;
                    if self.depth > MAX_DEPTH {
                        return Err(self.broken(&format!("more than {MAX_DEPTH} elements are nested")));
                    }
                    XmlEvent::Start(XmlElement(start))
                }
                Event::End(end) => {
                    self.depth = self.depth.saturating_sub(1);
                    let name = end.local_name().into_inner();
                    XmlEvent::End(Cow::Owned(name.to_owned()))
                }
                Event::Text(text) => XmlEvent::Text(text.xml10_content()),
                Event::CData(text) => XmlEvent::Text(text.xml10_content()),
                Event::GeneralRef(reference) => XmlEvent::Text(match reference.resolve_char_ref() {
                    Ok(Some(c)) => Cow::Owned(c.to_string()),
                    Err(_) => Cow::Borrowed("\u{fffd}"),
                    Ok(None) => match quick_xml::escape::resolve_predefined_entity(&reference) {
                        Some(known) => Cow::Borrowed(known),
                        None => Cow::Owned(format!("&{};", &*reference)),
                    },
                }),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => continue,
                Event::Eof if self.depth > 0 => return Err(self.broken("it ends too early")),
                Event::Eof => return Ok(None),
            }));
        }
    }

    /// Goes on until only `depth` elements are open.
    pub fn close(&mut self, depth: usize) -> Result<(), ExtractError> {
        while self.depth > depth {
            self.next()?;
        }
        Ok(())
    }

    /// Leaves out the element that just began.
    pub fn skip(&mut self) -> Result<(), ExtractError> {
        self.close(self.depth.saturating_sub(1))
    }

    /// All text of the element that just began, except in elements of these names.
    pub fn text_without(&mut self, without: &[&str]) -> Result<String, ExtractError> {
        let end = self.depth.saturating_sub(1);
        let mut text = String::new();
        while self.depth > end {
            match self.next()? {
                Some(XmlEvent::Start(element)) if without.contains(&element.name()) => self.skip()?,
                Some(XmlEvent::Text(piece)) => text.push_str(&piece),
                Some(XmlEvent::Start(_) | XmlEvent::End(_)) => {}
                None => break,
            }
        }
        Ok(text)
    }

    /// All text of the element that just began.
    pub fn text(&mut self) -> Result<String, ExtractError> {
        self.text_without(&[])
    }

    fn broken(&self, what: &str) -> ExtractError {
        damaged(&format!("its part {} can't be read: {what}", self.part))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::office::test_archive::zip;

    fn events(text: &str) -> Result<String, ExtractError> {
        let (bytes, stop) = (zip(&[]), AtomicBool::new(false));
        let archive = Archive::open(&bytes, &stop).unwrap();
        let mut xml = XmlReader::new(&archive, "a.xml", text);
        let mut seen = String::new();
        while let Some(event) = xml.next()? {
            seen.push_str(&match event {
                XmlEvent::Start(element) => {
                    format!("<{} {}>", element.name(), element.attribute("v").unwrap_or_default())
                }
                XmlEvent::End(name) => format!("</{name}>"),
                XmlEvent::Text(text) => text.into_owned(),
            });
        }
        Ok(seen)
    }

    #[test]
    fn prefixes_references_and_empty_elements() {
        let seen =
            events("<?xml version=\"1.0\"?><w:a w:v='x &amp; y'>1 &lt; 2 &#8364;<b/><![CDATA[<&]]></w:a>");
        assert_eq!(seen.unwrap(), "<a x & y>1 < 2 €<b ></b><&</a>");
    }

    #[test]
    fn entities_are_never_expanded() {
        let text = "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'><!ENTITY l 'lol'>]><a>&x;&l;</a>";
        assert_eq!(events(text).unwrap(), "<a >&x;&l;</a>");
    }

    #[test]
    fn damage_and_depth_are_errors() {
        for (text, why) in [
            ("<a><b></a>", "a.xml can't be read"),
            ("<a>", "ends too early"),
            ("<a", "a.xml can't be read"),
            (&"<a>".repeat(600), "nested"),
        ] {
            let error = events(text).unwrap_err();
            assert!(error.why.contains(why), "{error:?}");
        }
    }
}

//! Reads an answer as it comes: events, objects without events, or one object, whatever its content
//! type says. A web page or plain words in its place are named as such.

use documents::lenient_json;
use net::sse::{Events, TooLong};

use super::answer_piece::{Delta, Wrong};
use super::delta::Reply;
use super::fault::{Fault, broken, malformed, too_large, web_page};
use super::http::Answer;
use super::progress::TurnProgress;
use super::refusal::failed_in_stream;
use super::server_words::{is_web_page, may_be_web_page};

/// Longest answer that comes as one.
const MAX_WHOLE_BYTES: usize = 8 << 20;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// As much of a web page as its title is looked for in.
const MAX_PAGE_BYTES: usize = 64 << 10;

/// As much of the beginning as the error message shows.
const MAX_OPENING_CHARS: usize = 200;

/// How the bytes of an answer are put together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// So far only white space, or what may become a web page.
    #[default]
    Unknown,
    Events,
    /// One object, or several without `data:`.
    Objects,
    WebPage,
}

/// Takes the bytes of an answer, and gives the data of its events.
#[derive(Debug, Default)]
pub struct AnswerReader {
    framing: Framing,
    /// What isn't read as events, or not yet.
    head: Vec<u8>,
    /// White space at the start of the head, so that each byte of it is looked at once.
    n_blank: usize,
    events: Events,
    opening: String,
}

impl AnswerReader {
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        if self.framing == Framing::Events {
            return self.events.push(bytes);
        }
        self.head.extend_from_slice(bytes);
        if self.framing == Framing::Unknown {
            self.n_blank +=
                self.head[self.n_blank..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.framing = framing_of(&self.head[self.n_blank..]);
        }
        match self.framing {
            Framing::Events => return self.begin_events(),
            Framing::WebPage => self.head.truncate(MAX_PAGE_BYTES),
            Framing::Unknown | Framing::Objects if self.head.len() > MAX_WHOLE_BYTES => return Err(TooLong),
            Framing::Unknown | Framing::Objects => {}
        }
        Ok(Vec::new())
    }

    fn begin_events(&mut self) -> Result<Vec<String>, TooLong> {
        self.framing = Framing::Events;
        let head = std::mem::take(&mut self.head);
        self.opening = String::from_utf8_lossy(&head).chars().take(MAX_OPENING_CHARS).collect();
        self.events = Events::lenient();
        self.events.push(&head)
    }

    /// Ends the answer: the data of the events that have not been given yet.
    pub fn end(&mut self) -> Result<Vec<String>, TooLong> {
        let mut data = Vec::new();
        if self.framing == Framing::Unknown && self.n_blank < self.head.len() {
            data = self.begin_events()?;
        }
        let mut events = std::mem::take(&mut self.events);
        if self.framing == Framing::Objects {
            let text = String::from_utf8_lossy(&self.head).into_owned();
            if lenient_json::parse(text.trim_start_matches('\u{feff}')).is_ok() {
                return Ok(vec![text]);
            }
            events = Events::lenient();
            data = events.push(&self.head)?;
        }
        data.extend(std::iter::from_fn(|| events.end()));
        Ok(data)
    }

    fn page(&self) -> Option<String> {
        (self.framing == Framing::WebPage).then(|| String::from_utf8_lossy(&self.head).into_owned())
    }
}

/// `head`: without white space at its start. The same however its bytes are cut.
fn framing_of(head: &[u8]) -> Framing {
    let is_cut_mark = !head.is_empty() && BYTE_ORDER_MARK.starts_with(head);
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match text.chars().next() {
        None => Framing::Unknown,
        Some(_) if is_cut_mark => Framing::Unknown,
        Some('{' | '[') => Framing::Objects,
        Some('<') if is_web_page(text) => Framing::WebPage,
        Some('<') if may_be_web_page(text) => Framing::Unknown,
        Some(_) => Framing::Events,
    }
}

/// `Ok`: the whole answer has been reported.
pub async fn read_answer(answer: &mut Answer, progress: &mut TurnProgress<'_>) -> Result<(), Fault> {
    let place = progress.place.clone();
    let mut reader = AnswerReader::default();
    while !progress.reply.is_done
        && let Some(bytes) = answer.next().await?
    {
        take_events(progress, &place, reader.push(&bytes).map_err(|_| too_large(&place))?)?;
    }
    take_events(progress, &place, reader.end().map_err(|_| too_large(&place))?)?;
    take(progress, &place, |reply| Ok(reply.rest()))?;
    check_end(&reader, progress)
}

/// Takes events up to the end mark. What follows it, in the same piece or another, is no part of the answer.
fn take_events(progress: &mut TurnProgress<'_>, place: &str, events: Vec<String>) -> Result<(), Fault> {
    for data in events {
        if progress.reply.is_done {
            break;
        }
        take(progress, place, |reply| reply.take(&data))?;
    }
    Ok(())
}

/// Some servers leave the end mark out, but none the reason.
fn check_end(reader: &AnswerReader, progress: &TurnProgress<'_>) -> Result<(), Fault> {
    let (place, reply) = (&progress.place, &progress.reply);
    if let Some(page) = reader.page() {
        return Err(web_page(place, &page));
    }
    if let Some(word) = &reply.interruption {
        return Err(broken(place, &format!("the server gave up ({word})")));
    }
    if reply.is_whole() {
        return Ok(());
    }
    match (reader.framing, progress.is_empty()) {
        (Framing::Objects, false) => Ok(()),
        (Framing::Objects, true) => Err(malformed(place, "it holds no answer")),
        (Framing::Events, true) if !reply.has_heard() => {
            let stray = if reply.stray.is_empty() { &reader.opening } else { &reply.stray };
            let words = stray.split_whitespace().collect::<Vec<_>>().join(" ");
            Err(malformed(place, &format!("it says \"{words}\"")))
        }
        _ => Err(broken(place, "it ended before the answer did")),
    }
}

fn take(
    progress: &mut TurnProgress<'_>,
    place: &str,
    read: impl FnOnce(&mut Reply) -> Result<Delta, Wrong>,
) -> Result<(), Fault> {
    let delta = read(&mut progress.reply).map_err(|wrong| match wrong {
        Wrong::Malformed(why) => malformed(place, &why),
        Wrong::TooLong => too_large(place),
        Wrong::Server(said) => failed_in_stream(place, &said, progress.key.as_ref()),
    })?;
    if progress.take(delta) { Ok(()) } else { Err(too_large(place)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of an answer, however its bytes are cut.
    fn check(answer: &str, expected: &[&str]) {
        for n in [1, 2, 3, 7, answer.len().max(1)] {
            let mut reader = AnswerReader::default();
            let pieces = answer.as_bytes().chunks(n);
            let mut got: Vec<String> = pieces.flat_map(|piece| reader.push(piece).unwrap()).collect();
            got.extend(reader.end().unwrap());
            assert_eq!(got, expected, "{answer:?} by {n}");
        }
    }

    #[test]
    fn white_space_that_trickles_in_is_looked_at_once() {
        let mut reader = AnswerReader::default();
        let began = std::time::Instant::now();
        for _ in 0..1_000_000 {
            assert!(reader.push(b"\n").unwrap().is_empty());
        }
        assert_eq!(reader.push(b"data: x\n\n").unwrap(), ["x"]);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn answers_are_read_by_what_they_are() {
        check("data: {\"a\":1}\n\ndata: [DONE]\n\n", &["{\"a\":1}", "[DONE]"]);
        check("\u{feff}data: {\"a\":1}\n\n", &["{\"a\":1}"]);
        check("\n\n: alive\n\ndata: {\"a\":1}", &["{\"a\":1}"]);
        check("{\"a\":\n1}", &["{\"a\":\n1}"]);
        check("{\"a\":1}\n{\"b\":2}\n", &["{\"a\":1}\n{\"b\":2}\n"]);
        check("{\"a\":1}\n\ndata: {\"b\":2}\n\n", &["{\"a\":1}", "{\"b\":2}"]);
        check("", &[]);
        check("Service unavailable", &[]);
        check("<", &[]);
        check("<!doc\n\ndata: {\"a\":1}\n\n", &["{\"a\":1}"]);
        check("\u{feff}{\"a\":1}", &["\u{feff}{\"a\":1}"]);
        let pages =
            ["<!doctype html><title>Sign in</title>\n{\"a\":1}\n\n", "\n<html>", "\u{feff}<!-- in -->"];
        for (page, n) in pages.iter().flat_map(|page| [1, 2, 4, page.len()].map(|n| (page, n))) {
            let mut reader = AnswerReader::default();
            let given = page.as_bytes().chunks(n).all(|piece| reader.push(piece).unwrap().is_empty());
            assert!(given && reader.end().unwrap().is_empty(), "{page:?} by {n}");
            assert_eq!(reader.page().as_deref(), Some(*page), "{page:?} by {n}");
        }
    }

    #[test]
    fn what_never_ends_is_refused() {
        let piece = vec![b' '; 1 << 20];
        let mut reader = AnswerReader::default();
        assert!((0..10).any(|_| reader.push(&piece).is_err()));
        let mut reader = AnswerReader::default();
        reader.push(b"[").unwrap();
        assert!((0..10).any(|_| reader.push(&piece).is_err()));
    }
}

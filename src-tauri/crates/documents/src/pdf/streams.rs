//! Unpacks streams whose filters may stand elsewhere in the file or under short names.

use std::borrow::Cow;

use lopdf::{Document, Object, Stream};

/// Filters of one stream, as `lopdf` allows.
const MAX_FILTERS: usize = Stream::MAX_FILTERS;

/// The content of a stream. None: it is longer than `max_bytes`, or no filter reads it.
pub fn unpack(document: &Document, stream: &Stream, max_bytes: usize) -> Option<Vec<u8>> {
    resolved(document, stream)?.get_plain_content_with_limit(max_bytes).ok()
}

/// The stream with filters and their parameters in place.
fn resolved<'a>(document: &Document, stream: &'a Stream) -> Option<Cow<'a, Stream>> {
    const KEYS: [(&str, &str); 2] = [("Filter", "F"), ("DecodeParms", "DP")];
    let is_plain = |object: &Object| match object {
        Object::Reference(_) => false,
        Object::Array(list) => !list.iter().any(|it| matches!(it, Object::Reference(_) | Object::Name(_))),
        Object::Name(name) => name.ends_with(b"Decode"),
        Object::Dictionary(dict) => !dict.iter().any(|(_, it)| matches!(it, Object::Reference(_))),
        _ => true,
    };
    let values = KEYS.map(|(key, short)| {
        let value = stream.dict.get(key.as_bytes()).or_else(|_| stream.dict.get(short.as_bytes())).ok();
        // `F` of a stream outside of the page is a file
        value.filter(|value| !matches!(value, Object::String(..)))
    });
    if stream.dict.get(b"Filter").is_ok() && values.iter().flatten().all(|value| is_plain(value)) {
        return Some(Cow::Borrowed(stream));
    }
    let mut stream = stream.clone();
    for ((key, short), value) in KEYS.into_iter().zip(values.map(|it| it.cloned())) {
        stream.dict.remove(short.as_bytes());
        match value {
            Some(value) => stream.dict.set(key, in_place(document, &value, 0)?),
            None => drop(stream.dict.remove(key.as_bytes())),
        }
    }
    Some(Cow::Owned(stream))
}

fn in_place(document: &Document, object: &Object, level: usize) -> Option<Object> {
    // a list of dictionaries of numbers
    const MAX_LEVELS: usize = 4;
    if level > MAX_LEVELS {
        return None;
    }
    Some(match document.dereference(object).map_or(&Object::Null, |(_, object)| object) {
        Object::Array(list) if list.len() > MAX_FILTERS => return None,
        Object::Array(list) => {
            Object::Array(list.iter().map(|it| in_place(document, it, level + 1)).collect::<Option<_>>()?)
        }
        Object::Dictionary(dict) => {
            let mut copy = lopdf::Dictionary::new();
            for (key, value) in dict.iter().take(MAX_FILTERS) {
                copy.set(key.clone(), in_place(document, value, level + 1)?);
            }
            Object::Dictionary(copy)
        }
        Object::Name(name) => Object::Name(full_name(name).to_vec()),
        other => other.clone(),
    })
}

fn full_name(name: &[u8]) -> &[u8] {
    match name {
        b"A85" => b"ASCII85Decode",
        b"AHx" => b"ASCIIHexDecode",
        b"Fl" => b"FlateDecode",
        b"LZW" => b"LZWDecode",
        b"RL" => b"RunLengthDecode",
        // what decryption has done already
        name => name,
    }
}

//! Entry points for fuzz targets.

use super::answer_piece::{Delta, Wrong};
use super::delta::Reply;
use super::reading::AnswerReader;

/// An answer as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerParts {
    /// Its text.
    pub text: String,
    /// Its reasoning.
    pub reasoning: String,
    /// Name and arguments of its tool calls.
    pub calls: Vec<(String, String)>,
    /// It ended before its end.
    pub is_broken: bool,
}

/// Reads the body of an answer that comes in these pieces.
pub fn read_answer<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> AnswerParts {
    let (mut reader, mut reply) = (AnswerReader::default(), Reply::default());
    let mut whole = Delta::default();
    let is_broken = read_pieces(pieces, &mut reader, &mut reply, &mut whole).is_none();
    let calls = reply.calls().into_iter().map(|call| (call.name, call.arguments)).collect();
    AnswerParts { text: whole.text, reasoning: whole.reasoning, calls, is_broken }
}

/// None: it cannot be read to its end.
fn read_pieces<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    reader: &mut AnswerReader,
    reply: &mut Reply,
    whole: &mut Delta,
) -> Option<()> {
    let mut take = |events: Vec<String>, reply: &mut Reply| -> Result<(), Wrong> {
        for data in events {
            if reply.is_done {
                break;
            }
            whole.append(reply.take(&data)?);
        }
        Ok(())
    };
    for piece in pieces {
        if reply.is_done {
            break;
        }
        take(reader.push(piece).ok()?, reply).ok()?;
    }
    take(reader.end().ok()?, reply).ok()?;
    whole.append(reply.rest());
    Some(())
}

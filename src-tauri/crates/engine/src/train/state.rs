//! The state of a run as bytes: everything that the next step depends on.
//!
//! Format: magic, length of the JSON part in 8 bytes, JSON, all numbers as float32, and a hash of everything before.

use serde::{Deserialize, Serialize};

use super::optimizer::Moments;
use super::pass::Parameter;
use crate::error::{EngineError, Result};
use crate::kv::checksum::xxh64;

const MAGIC: &[u8; 8] = b"NOOKTUN1";
/// Bytes of a length and of a hash.
const WORD: usize = 8;

/// What a run has come to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunState<H> {
    pub header: H,
    pub parameters: Vec<Parameter>,
    pub moments: Moments,
}

#[derive(Serialize, Deserialize)]
struct StateHeader<H> {
    /// Settings and results so far.
    run: H,
    n_steps: u64,
    /// Numbers of each parameter.
    lengths: Vec<usize>,
}

/// Returns the bytes of a state.
pub(super) fn encode<H: Serialize>(
    header: &H,
    parameters: &[Parameter],
    moments: &Moments,
) -> Result<Vec<u8>> {
    let lengths = parameters.iter().map(Vec::len).collect();
    let header = StateHeader { run: header, n_steps: moments.n_steps, lengths };
    let json = serde_json::to_vec(&header).map_err(|error| {
        EngineError::new("tune.state", error.to_string(), "This is a defect of Inglenook.")
    })?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend((json.len() as u64).to_le_bytes());
    bytes.extend(json);
    for numbers in [parameters, &moments.mean, &moments.square] {
        bytes.extend(numbers.iter().flatten().flat_map(|x| x.to_le_bytes()));
    }
    bytes.extend(xxh64(&bytes).to_le_bytes());
    Ok(bytes)
}

/// Reads a state.
///
/// Errors: `tune.state_damaged`.
pub(super) fn decode<H: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<RunState<H>> {
    read(bytes).ok_or_else(|| {
        EngineError::new(
            "tune.state_damaged",
            "the saved state of this run is damaged",
            "Start the run again in another folder.",
        )
    })
}

fn read<H: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<RunState<H>> {
    let (bytes, hash) = bytes.split_at_checked(bytes.len().checked_sub(WORD)?)?;
    if xxh64(bytes).to_le_bytes() != hash {
        return None;
    }
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, rest) = rest.split_first_chunk::<WORD>()?;
    let (json, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let StateHeader { run, n_steps, lengths } = serde_json::from_slice(json).ok()?;
    let total = lengths.iter().try_fold(0usize, |sum, n: &usize| sum.checked_add(*n))?;
    if Some(rest.len()) != total.checked_mul(3 * size_of::<f32>()) {
        return None;
    }
    let mut numbers =
        rest.chunks_exact(size_of::<f32>()).filter_map(|x| Some(f32::from_le_bytes(x.try_into().ok()?)));
    let mut parts =
        || -> Vec<Parameter> { lengths.iter().map(|n| numbers.by_ref().take(*n).collect()).collect() };
    let (parameters, mean, square) = (parts(), parts(), parts());
    Some(RunState { header: run, parameters, moments: Moments { n_steps, mean, square } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_is_found() {
        let parameters = vec![vec![1.0f32, -2.5], vec![0.0, f32::MIN_POSITIVE, 3.0]];
        let moments = Moments {
            n_steps: 7,
            mean: vec![vec![0.5, 0.25], vec![1.0, 2.0, 3.0]],
            square: vec![vec![0.1, 0.2], vec![0.3, 0.4, 0.5]],
        };
        let bytes = encode(&vec![1u32, 2], &parameters, &moments).expect("bytes");
        let state: RunState<Vec<u32>> = decode(&bytes).expect("a state");
        assert_eq!(state, RunState { header: vec![1, 2], parameters, moments });
        for length in 0..bytes.len() {
            assert!(decode::<Vec<u32>>(&bytes[..length]).is_err(), "{length}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(decode::<Vec<u32>>(&damaged).is_err(), "{at}");
        }
    }
}

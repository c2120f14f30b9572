//! Split GGUF: NAME-00001-of-00003.gguf and its other parts. The first holds the metadata; each holds tensors.
//!
//! A split model is opened by its first part. Errors name the part that is missing or wrong.

use std::path::Path;

use crate::error::{FaultKind, WeightsError};
use crate::gguf;
use crate::metadata::Metadata;
use crate::mmap::SharedBytes;
use crate::source_file::{map, not_a_model};
use crate::tensor::{Container, FilePart, TensorInfo};
use crate::weight_file::WeightFile;

const INDEX_KEY: &str = "split.no";
const COUNT_KEY: &str = "split.count";
const N_TENSORS_KEY: &str = "split.tensors.count";

/// The largest published models have fewer than 200 parts.
const MAX_PARTS: u64 = 4096;

/// Part number and count that a file states.
struct SplitPart {
    /// From 1.
    number: u64,
    count: u64,
}

/// Which part a file is; None if it is a whole model.
fn split_of(metadata: &Metadata) -> Result<Option<SplitPart>, WeightsError> {
    let Some(count) = metadata.opt_u64(COUNT_KEY)?.filter(|&count| count > 1) else { return Ok(None) };
    if count > MAX_PARTS {
        return Err(metadata.error(
            COUNT_KEY,
            FaultKind::Limit,
            &format!("{count} parts; the limit is {MAX_PARTS}"),
        ));
    }
    let index = metadata.u64(INDEX_KEY)?;
    if index >= count {
        return Err(metadata.error(
            INDEX_KEY,
            FaultKind::Malformed,
            &format!("{index} is no part of {count}, from 0"),
        ));
    }
    Ok(Some(SplitPart { number: index + 1, count }))
}

/// Errors if the file is one of several parts: for bytes without a folder that could hold the others.
pub fn refuse(metadata: &Metadata) -> Result<(), WeightsError> {
    match split_of(metadata)? {
        None => Ok(()),
        Some(SplitPart { number, count }) => {
            let cause = format!("is part {number} of {count}; the others are not here");
            Err(WeightsError::new(metadata.file.clone(), FaultKind::Part, cause))
        }
    }
}

/// Opens a GGUF file, and its other parts if it is the first of several.
pub fn open(path: &Path, name: &str, bytes: SharedBytes) -> Result<WeightFile, WeightsError> {
    let first = gguf::parse(name, &bytes)?;
    let Some(SplitPart { number, count }) = split_of(&first.metadata)? else {
        return first.into_file(path.to_owned(), name, bytes);
    };
    let stem = stem(name, number, count)?;
    if number != 1 {
        let cause = format!("is part {number} of {count}; a model in several files is opened by its first");
        let advice = format!("Open {} in the same folder.", part_name(stem, 1, count));
        return Err(WeightsError::new(name, FaultKind::Part, cause).advise(advice));
    }
    let n_tensors = first.metadata.u64(N_TENSORS_KEY)?;
    let container = Container::Gguf { version: first.version };
    let (metadata, mut tensors) = (first.metadata, first.tensors);
    let mut parts = vec![FilePart { name: name.to_owned(), bytes, data_start: first.data_start }];
    for number in 2..=count {
        let (part, found) = open_part(path, stem, number, count, n_tensors)?;
        tensors.extend(found.into_iter().map(|tensor| TensorInfo { part: parts.len(), ..tensor }));
        parts.push(part);
    }
    if tensors.len() as u64 != n_tensors {
        let cause = format!("{n_tensors} tensors in all, but the {count} parts hold {}", tensors.len());
        return Err(metadata.error(N_TENSORS_KEY, FaultKind::Part, &cause));
    }
    WeightFile::assemble(path.to_owned(), container, metadata, parts, tensors)
}

/// Opens a later part and checks that it is the part its name states.
fn open_part(
    first: &Path,
    stem: &str,
    number: u64,
    count: u64,
    n_tensors: u64,
) -> Result<(FilePart, Vec<TensorInfo>), WeightsError> {
    let name = part_name(stem, number, count);
    let path = first.with_file_name(&name);
    let error = |cause: String| WeightsError::new(name.clone(), FaultKind::Part, cause);
    if !path.is_file() {
        let advice = format!("Download {name} into the folder of the others.");
        return Err(error(format!("is missing: part {number} of {count} of this model")).advise(advice));
    }
    let bytes = map(&path, &name)?;
    if !bytes.starts_with(gguf::MAGIC) {
        return Err(not_a_model(&name, &bytes));
    }
    let parsed = gguf::parse(&name, &bytes)?;
    match split_of(&parsed.metadata)? {
        Some(split) if split.count != count => {
            let cause =
                format!("belongs to a model of {} parts, the first part to one of {count}", split.count);
            return Err(error(cause));
        }
        Some(split) if split.number != number => return Err(mixed_up(&name, split.number, number)),
        Some(_) => {}
        None => return Err(error("does not say that it is part of a model in several files".into())),
    }
    if let Some(n) = parsed.metadata.opt_u64(N_TENSORS_KEY)?.filter(|&n| n != n_tensors) {
        let cause = format!("belongs to a model of {n} tensors, the first part to one of {n_tensors}");
        return Err(error(cause));
    }
    Ok((FilePart { name, bytes, data_start: parsed.data_start }, parsed.tensors))
}

fn mixed_up(name: &str, inside: u64, outside: u64) -> WeightsError {
    let cause = format!("is part {inside} by its contents, but part {outside} by its name");
    let advice = "Give the parts their original names back, or download them again.";
    WeightsError::new(name, FaultKind::Part, cause).advise(advice)
}

fn part_name(stem: &str, number: u64, count: u64) -> String {
    format!("{stem}-{number:05}-of-{count:05}.gguf")
}

/// Common prefix of all parts' names. Errors if the name states no part, or another one.
fn stem(name: &str, number: u64, count: u64) -> Result<&str, WeightsError> {
    if let Some(stem) = name.strip_suffix(&part_name("", number, count)) {
        return Ok(stem);
    }
    match numbers_of(name) {
        Some((outside, total)) if total == count => Err(mixed_up(name, number, outside)),
        Some((_, total)) => {
            let cause = format!("is one of {count} parts by its contents, but of {total} by its name");
            Err(WeightsError::new(name, FaultKind::Part, cause))
        }
        None => {
            let cause = format!("is part {number} of {count}, but its name does not say so");
            let advice = format!(
                "Give the parts their original names back, such as {}.",
                part_name("NAME", number, count)
            );
            Err(WeightsError::new(name, FaultKind::Part, cause).advise(advice))
        }
    }
}

/// `x-00002-of-00003.gguf` → (2, 3)
fn numbers_of(name: &str) -> Option<(u64, u64)> {
    let (front, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (_, number) = front.rsplit_once('-')?;
    let five_digits = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
    if !five_digits(number) || !five_digits(count) {
        return None;
    }
    Some((number.parse().ok()?, count.parse().ok()?))
}

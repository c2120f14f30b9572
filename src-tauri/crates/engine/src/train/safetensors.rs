//! Writes safetensors: the length of a JSON header in 8 bytes, the header, then the numbers in float32.

use std::fmt::Write as _;

/// A tensor to write: name, shape, values row by row.
pub(crate) struct NamedMatrix<'a> {
    pub name: String,
    pub shape: [usize; 2],
    pub values: &'a [f32],
}

/// Returns the bytes of a file, with the tensors in the order of their names.
pub(crate) fn to_bytes(mut matrices: Vec<NamedMatrix<'_>>) -> Vec<u8> {
    matrices.sort_by(|a, b| a.name.cmp(&b.name));
    let mut header = String::from(r#"{"__metadata__":{"format":"pt"}"#);
    let mut start = 0;
    for NamedMatrix { name, shape: [rows, columns], values } in &matrices {
        let end = start + size_of_val(*values);
        let name = serde_json::Value::from(name.as_str());
        // A string takes every text.
        _ = write!(
            header,
            r#",{name}:{{"dtype":"F32","shape":[{rows},{columns}],"data_offsets":[{start},{end}]}}"#
        );
        start = end;
    }
    header.push('}');
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    for matrix in &matrices {
        bytes.extend(matrix.values.iter().flat_map(|x| x.to_le_bytes()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_where_each_tensor_lies() {
        let (a, b) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [-0.5f32, 0.25]);
        let matrix = |name: &str, shape, values| NamedMatrix { name: name.to_owned(), shape, values };
        let bytes = to_bytes(vec![matrix("z\"b", [2, 3], &a[..]), matrix("a", [1, 2], &b[..])]);
        let (length, rest) = bytes.split_first_chunk::<8>().expect("a length");
        let length = u64::from_le_bytes(*length) as usize;
        assert_eq!(length % 8, 0);
        let header: serde_json::Value = serde_json::from_slice(&rest[..length]).expect("JSON");
        for (name, shape, values) in [("z\"b", [2, 3], &a[..]), ("a", [1, 2], &b[..])] {
            let entry = &header[name];
            assert_eq!(entry["dtype"], "F32");
            assert_eq!(entry["shape"], serde_json::json!(shape));
            let offset = |i: usize| entry["data_offsets"][i].as_u64().expect("a number") as usize;
            let found = &rest[length + offset(0)..length + offset(1)];
            let expected: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            assert_eq!(found, expected);
        }
    }
}

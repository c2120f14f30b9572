//! `Image.resize` of Pillow 12.3, to the bit.

use vision::{ResampleArithmetic, ResampleFilter, resize};

use crate::data::{expected_hash, hash, json, npy_picture, size, small};

fn filter(name: &str) -> ResampleFilter {
    match name {
        "nearest" => ResampleFilter::Nearest,
        "box" => ResampleFilter::Box,
        "bilinear" => ResampleFilter::Bilinear,
        "hamming" => ResampleFilter::Hamming,
        "bicubic" => ResampleFilter::Bicubic,
        "lanczos" => ResampleFilter::Lanczos,
        other => panic!("unknown filter {other}"),
    }
}

#[test]
fn every_case_is_bit_equal_to_pillow() {
    let index = json("resample/index.json");
    let cases = index["cases"].as_array().unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let picture = npy_picture(&small().join("resample").join(case["src"].as_str().unwrap()));
        let filter = filter(case["filter"].as_str().unwrap());
        let resized = resize(&picture, size(&case["to"]), filter, ResampleArithmetic::Pillow);
        let name = format!("resample/{}", case["out"].as_str().unwrap());
        if hash(resized.rgb()) != expected_hash(&name) {
            wrong.push(name);
        }
    }
    println!("{} of {} cases are bit-equal", cases.len() - wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(cases.len() > 100);
}

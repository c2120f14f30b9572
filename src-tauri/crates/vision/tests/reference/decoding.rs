//! Files to pictures: orientation, palettes, transparency, 16 bits, as Pillow reads them.

use serde_json::Value;
use vision::{DecodeLimits, decode, measure};

use crate::data::{hash, json, npy_picture, size, small};

/// Decoders of JPEG round their transforms and upsample chroma differently.
const JPEG_TOLERANCE_LEVELS: u8 = 3;

#[test]
fn every_file_is_read_as_pillow_reads_it() {
    let index = json("images/index.json");
    for image in index["images"].as_array().unwrap() {
        let name = image["file"].as_str().unwrap();
        let bytes = std::fs::read(small().join("images").join(name)).unwrap();
        let limits = DecodeLimits::default();
        let picture = decode(&bytes, &limits).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(picture.size(), size(&image["size"]), "{name}");
        assert_eq!(measure(&bytes, &limits).unwrap(), picture.size(), "{name}");
        if image["format"] == "JPEG" {
            check_levels(name, picture.rgb(), image);
        } else {
            assert_eq!(hash(picture.rgb()), image["sha256_rgb"].as_str().unwrap(), "{name}");
        }
    }
}

fn check_levels(name: &str, rgb: &[u8], image: &Value) {
    let expected = npy_picture(&small().join("images").join(image["rgb"].as_str().unwrap()));
    let differences = rgb.iter().zip(expected.rgb()).map(|(a, b)| a.abs_diff(*b));
    let (largest, sum) = differences.fold((0, 0_usize), |(m, s), d| (m.max(d), s + usize::from(d)));
    println!("{name}: at most {largest} levels, {:.3} on average", sum as f64 / rgb.len() as f64);
    assert!(largest <= JPEG_TOLERANCE_LEVELS, "{name}: {largest} levels");
}

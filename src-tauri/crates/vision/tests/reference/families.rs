//! Pixel values and placeholder ids of every family, for the pictures of the reference.

use serde_json::Value;
use vision::{DecodeLimits, PatchOrder, PatchPixels, Picture, VisionErrorKind, decode};

use crate::data::{
    FAMILIES, Repository, as_f16_bytes, expected_hash, full, hash, json, npy, npy_picture, small,
};

/// The picture whose processed pixels are stored, independent of our decoder of JPEG.
fn source(name: &str) -> Picture {
    let index = json("images/index.json");
    let image =
        index["images"].as_array().unwrap().iter().find(|image| image["file"] == name).unwrap().clone();
    let folder = small().join("images");
    if image["format"] == "JPEG" {
        return npy_picture(&folder.join(image["rgb"].as_str().unwrap()));
    }
    decode(&std::fs::read(folder.join(name)).unwrap(), &DecodeLimits::default()).unwrap()
}

#[test]
fn pixels_are_those_of_the_published_processors() {
    let mut n_checked = 0;
    for family in FAMILIES {
        let settings = Repository::open(family).settings();
        for image in json(format!("{family}/images/index.json")).as_array().unwrap() {
            let name = image["file"].as_str().unwrap();
            let place = format!("{family}/{name}");
            let patches = settings.preprocess(&source(name));
            if let Some(error) = image["error"].as_str() {
                check_refusal(&place, error, patches);
                continue;
            }
            let patches = patches.unwrap();
            assert_eq!(Some(patches.n_tokens() as u64), image["n_image_tokens"].as_u64(), "{place}");
            let values = as_stored(&patches, &image["stored_shape"]);
            if image["pixels"].is_null() {
                check_constant(&place, &patches, &image["pixels_per_channel"]);
            } else {
                compare_with_full_set(family, image, &values);
                assert_eq!(hash(&as_f16_bytes(&values)), expected_hash(&place), "{place}");
            }
            n_checked += 1;
        }
    }
    println!("{n_checked} pictures");
    assert!(n_checked >= 55);
}

/// Pixtral's published processor fails on very thin pictures; ours makes the short side one unit.
fn check_refusal(place: &str, error: &str, patches: Result<PatchPixels, vision::VisionError>) {
    if error.contains("aspect ratio") {
        assert_eq!(patches.unwrap_err().kind, VisionErrorKind::RefusedShape, "{place}");
    } else {
        assert!(place.starts_with("mistral3/"), "{place}: {error}");
        assert_eq!(patches.unwrap().n_tokens(), 6, "{place}");
    }
}

/// Pixtral, Gemma 3 and Idefics3 store whole tiles `(tile, channel, y, x)`, the others rows of patches.
fn as_stored(patches: &PatchPixels, stored_shape: &Value) -> Vec<f32> {
    let (shape, values) = patches.in_processor_layout();
    let stored: Vec<usize> =
        stored_shape.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    assert_eq!(shape, stored);
    values
}

fn check_constant(place: &str, patches: &PatchPixels, per_channel: &Value) {
    let expected: Vec<f32> =
        per_channel.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect();
    let per_channel = patches.patch_length / 3;
    for (i, value) in patches.pixels.iter().enumerate() {
        let channel = match patches.order {
            PatchOrder::ChannelFirst => i % patches.patch_length / per_channel,
            PatchOrder::ChannelLast => i % 3,
        };
        // The reference prints five digits.
        assert!((value - expected[channel]).abs() < 1e-4, "{place}: value {i} is {value}");
    }
}

fn compare_with_full_set(family: &str, image: &Value, values: &[f32]) {
    let Some(full) = full() else { return };
    let (shape, bytes) = npy(&full.join(family).join("images").join(image["pixels"].as_str().unwrap()));
    assert_eq!(shape.iter().product::<usize>(), values.len());
    let stored = bytes.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32());
    let largest = stored.zip(values).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("{family}/{}: pixels within {largest:.2e}", image["file"].as_str().unwrap());
    assert!(largest <= 1e-3, "{largest}");
}

#[test]
fn placeholders_expand_to_the_published_ids() {
    for family in FAMILIES {
        let settings = Repository::open(family).settings();
        let tokens = AddedTokens::open(family);
        for image in json(format!("{family}/images/index.json")).as_array().unwrap() {
            let Some(expected) = image["expanded_ids"].as_array() else { continue };
            let name = image["file"].as_str().unwrap();
            let mut text = settings.layout(source(name).size()).unwrap().expanded_text;
            if settings.placeholder() == "<|image_pad|>" {
                // Qwen's chat template writes these beside the placeholder.
                text = format!("<|vision_start|>{text}<|vision_end|>");
            }
            let expected: Vec<u64> = expected.iter().map(|id| id.as_u64().unwrap()).collect();
            assert_eq!(tokens.encode(&text), expected, "{family}/{name}");
        }
    }
}

/// The added tokens of a tokenizer; of other text only line breaks are needed here.
struct AddedTokens(Vec<(String, u64)>);

impl AddedTokens {
    fn open(family: &str) -> Self {
        let tokenizer = json(format!("{family}/tokenizer.json"));
        let added = tokenizer["added_tokens"].as_array().unwrap().iter();
        let mut tokens: Vec<(String, u64)> =
            added.map(|t| (t["content"].as_str().unwrap().to_owned(), t["id"].as_u64().unwrap())).collect();
        tokens.push(("\n".to_owned(), tokenizer["model"]["vocab"]["Ċ"].as_u64().unwrap()));
        Self(tokens)
    }

    fn encode(&self, mut text: &str) -> Vec<u64> {
        let mut ids = Vec::new();
        while !text.is_empty() {
            let (token, id) = self.0.iter().find(|(token, _)| text.starts_with(token.as_str())).unwrap();
            ids.push(*id);
            text = &text[token.len()..];
        }
        ids
    }
}

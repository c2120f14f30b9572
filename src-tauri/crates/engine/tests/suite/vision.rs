//! Vision towers from both containers, against what transformers computed: `tests/reference/vision`.
#![allow(clippy::unwrap_used)] // a failure here fails the test

use crate::vision_data;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::vision_data::{Prompt, greedy, largest_difference, last_logits, npy};
use engine::vision::{ImageKey, ImagePatches, VisionTower};
use engine::{
    BackendKind, Chunk, Devices, KvDType, LoadOptions, LogitsSelection, Model, TokenId, VisionFile, generate,
};
use kernels::backends::BackendOptions;
use serde_json::Value;
use weights::WeightFile;

/// Float16 pixels move an embedding by half of this, a wrong order of patches by 300 times as much.
const CLOSE: f32 = 1e-3;
/// Started from float16 pixels.
const CLOSE_LOGITS: f32 = 5e-3;
const PLACEHOLDER: TokenId = 515;
const PATCH_SIZE: usize = 14;
const IMAGES: [&str; 3] = ["gradient.png", "text_palette.png", "photo_exif6.jpg"];

fn folder(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/vision").join(family)
}

/// The patches of a picture (1, 3, height, width), row by row, each (channel, y, x).
fn patches_of(path: &Path, size: usize) -> (usize, usize, Vec<f32>) {
    let (shape, pixels) = npy(path);
    let [_, n_channels, height, width] = shape[..] else { panic!("a picture: {shape:?}") };
    let (rows, cols) = (height / size, width / size);
    let mut values = Vec::with_capacity(pixels.len());
    for place in 0..rows * cols {
        let (top, left) = (place / cols * size, place % cols * size);
        for line in 0..n_channels * size {
            let start = (line / size * height + top + line % size) * width + left;
            values.extend_from_slice(&pixels[start..start + size]);
        }
    }
    (rows, cols, values)
}

fn tower(path: &Path, kind: BackendKind) -> VisionTower {
    let file = Arc::new(WeightFile::open(path).unwrap());
    VisionTower::load(&file, kind, BackendOptions::default()).unwrap().unwrap()
}

#[test]
fn towers_equal_transformers_from_either_container() {
    let folder = folder("gemma3");
    for (path, kind) in [
        (folder.clone(), BackendKind::Scalar),
        (folder.clone(), BackendKind::Cpu),
        (folder.join("mmproj-gemma3.f16.gguf"), BackendKind::Cpu),
    ] {
        let mut tower = tower(&path, kind);
        for image in IMAGES {
            let (rows, cols, values) =
                patches_of(&folder.join(format!("images/{image}.pixels.npy")), tower.spec().patches.size);
            let found = tower.embed(&ImagePatches { rows, cols, values: &values }).unwrap();
            let (shape, expected) = npy(&folder.join(format!("images/{image}.embeds.npy")));
            assert_eq!(shape[1], tower.spec().projector.d_out);
            let off = largest_difference(&found, &expected);
            println!("{} {kind:?} {image}: {off:.6}", path.display());
            assert!(off < CLOSE, "{} {kind:?} {image}: {off}", path.display());
        }
    }
}

/// Rows and columns of patches, and the patches as the processor orders them.
fn image_patches(folder: &Path, image: &str) -> (usize, usize, Vec<f32>) {
    let text = std::fs::read_to_string(folder.join("images/index.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let one = all.as_array().unwrap().iter().find(|one| one["file"] == image).unwrap();
    let path = folder.join(format!("images/{image}.pixels.npy"));
    let side = |axis: usize| one["image_grid_thw"][0][axis].as_u64().map(|n| n as usize);
    match (side(1), side(2)) {
        (Some(rows), Some(cols)) => (rows, cols, npy(&path).1),
        _ => patches_of(&path, PATCH_SIZE),
    }
}

#[test]
fn towers_of_any_shape_equal_transformers() {
    let folder = folder("qwen3_5");
    for (path, kind) in [
        (folder.clone(), BackendKind::Scalar),
        (folder.clone(), BackendKind::Cpu),
        (folder.join("mmproj-qwen3_5.f16.gguf"), BackendKind::Cpu),
    ] {
        let mut tower = tower(&path, kind);
        for image in IMAGES {
            let (rows, cols, values) = image_patches(&folder, image);
            let found = tower.embed(&ImagePatches { rows, cols, values: &values }).unwrap();
            let (_, expected) = npy(&folder.join(format!("images/{image}.embeds.npy")));
            let off = largest_difference(&found, &expected);
            println!("{} {kind:?} {image}: {off:.6}", path.display());
            assert!(off < CLOSE, "{} {kind:?} {image}: {off}", path.display());
        }
        let odd = tower.embed(&ImagePatches { rows: 3, cols: 4, values: &[] }).unwrap_err();
        assert_eq!(odd.code(), "vision.patches");
    }
}

#[test]
fn an_image_of_another_size_is_refused() {
    let mut tower = tower(&folder("gemma3"), BackendKind::Cpu);
    let error = tower.embed(&ImagePatches { rows: 8, cols: 16, values: &[0.0; 8 * 16 * 588] }).unwrap_err();
    assert_eq!(error.code(), "vision.patches");
    assert!(error.to_string().contains("16 rows of 16"), "{error}");
    let error = tower.embed(&ImagePatches { rows: 16, cols: 16, values: &[0.0; 3] }).unwrap_err();
    assert_eq!(error.code(), "vision.patches");
}

#[test]
fn a_model_without_a_tower_has_none() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/reference/families/gemma3");
    let file = Arc::new(WeightFile::open(&path).unwrap());
    assert!(VisionTower::load(&file, BackendKind::Cpu, BackendOptions::default()).unwrap().is_none());
}

/// Prompts whose images are stored.
fn prompts(folder: &Path) -> Vec<Prompt> {
    let all = vision_data::prompts(folder).into_iter();
    all.filter(|prompt| prompt.images.iter().all(|image| IMAGES.contains(&image.as_str()))).collect()
}

fn model(folder: &Path, text: &str, vision: &str, options: LoadOptions) -> Model {
    let open = |name: &str| Arc::new(WeightFile::open(&folder.join(name)).unwrap());
    let options = LoadOptions { vision: Some(VisionFile(open(vision))), kv: KvDType::F32.both(), ..options };
    Model::load(open(text), &options, &mut |_| {}).unwrap()
}

/// The prompt with the tokens of its images in place of the placeholders.
fn with_images(model: &mut Model, folder: &Path, prompt: &Prompt) -> Vec<TokenId> {
    let mut tokens = prompt.tokens.clone();
    let mut at = 0;
    for image in &prompt.images {
        let (rows, cols, values) = image_patches(folder, image);
        let mut hash = [0; 32];
        hash[..image.len()].copy_from_slice(image.as_bytes());
        let patches = ImagePatches { rows, cols, values: &values };
        let rows = model.embed_image(ImageKey::new(&hash, b""), &patches).unwrap();
        at += tokens[at..].iter().position(|token| *token == PLACEHOLDER).unwrap();
        assert!(tokens[at..at + rows.len()].iter().all(|token| *token == PLACEHOLDER));
        tokens[at..at + rows.len()].copy_from_slice(&rows);
        at += rows.len();
    }
    assert!(!tokens.contains(&PLACEHOLDER), "every placeholder has its row");
    tokens
}

#[test]
fn answers_to_images_equal_transformers_from_either_container() {
    let scalar = LoadOptions { devices: Devices::Scalar, ..LoadOptions::default() };
    for (family, text, vision, options) in [
        ("gemma3", ".", ".", scalar.clone()),
        ("gemma3", ".", ".", LoadOptions::default()),
        ("gemma3", ".", "mmproj-gemma3.f16.gguf", LoadOptions::default()),
        ("qwen3_5", ".", ".", scalar),
        ("qwen3_5", ".", ".", LoadOptions::default()),
        ("qwen3_5", ".", "mmproj-qwen3_5.f16.gguf", LoadOptions::default()),
    ] {
        let folder = folder(family);
        let mut model = model(&folder, text, vision, options);
        for prompt in prompts(&folder) {
            let tokens = with_images(&mut model, &folder, &prompt);
            let off = largest_difference(&last_logits(&mut model, &tokens), &prompt.last);
            println!("{family} {vision} {}: {off:.6}", prompt.name);
            assert!(off < CLOSE_LOGITS, "{family} {vision} {}: {off}", prompt.name);
            let answer = generate(&mut model, greedy(tokens, prompt.greedy.len()), &mut |_| true).unwrap();
            let n_sure = prompt.margins.iter().take_while(|margin| **margin > 2.0 * CLOSE_LOGITS).count();
            assert_eq!(answer.ids[..n_sure], prompt.greedy[..n_sure], "{family} {vision} {}", prompt.name);
        }
    }
}

#[test]
fn shared_and_restored_prefixes_with_images_give_the_same_bits() {
    ["gemma3", "qwen3_5"].iter().for_each(|family| prefixes_give_the_same_bits(&folder(family)));
}

fn prefixes_give_the_same_bits(folder: &Path) {
    let mut model = model(folder, ".", ".", LoadOptions::default());
    let all = prompts(folder);
    let prompt = all.iter().find(|prompt| prompt.name == "two").unwrap();
    let tokens = with_images(&mut model, folder, prompt);
    let expected = last_logits(&mut model, &tokens);
    let (last, before) = tokens.split_last().unwrap();

    let seq = model.new_sequence().unwrap();
    model.forward(&[Chunk { seq, tokens: before, logits: LogitsSelection::None }]).unwrap();
    model.save_rewind_point(seq).unwrap();
    let pieces = model.pieces(seq, &[before.len()]).unwrap();
    let bytes: Vec<Vec<u8>> = pieces.iter().map(|piece| model.piece_bytes(seq, piece).unwrap()).collect();
    let chunk = Chunk { seq, tokens: &[*last], logits: LogitsSelection::Last };
    assert_eq!(model.forward(&[chunk]).unwrap().row(0).unwrap(), expected, "a shared prefix");

    // another process: the same files, no sequence; what was read of the images is in the stored pieces
    let mut other = self::model(folder, ".", ".", LoadOptions::default());
    let (head, chunks) = bytes.split_last().unwrap();
    for has_images in [false, true] {
        if has_images {
            assert_eq!(
                with_images(&mut other, folder, prompt),
                tokens,
                "images have the same tokens everywhere"
            );
        }
        let mut stored = pieces.iter().zip(chunks);
        let mut read = |_: &str| Ok(stored.next().unwrap().1.clone());
        let seq = other.restore(before, Some(head), &mut read).unwrap();
        let chunk = Chunk { seq, tokens: &[*last], logits: LogitsSelection::Last };
        let found = other.forward(&[chunk]).unwrap().row(0).unwrap().to_vec();
        assert_eq!(found, expected, "a restored prefix, images held: {has_images}");
        other.free(seq);
    }
}

#[test]
fn images_are_part_of_the_text_that_is_shared() {
    let folder = folder("gemma3");
    let mut model = model(&folder, ".", ".", LoadOptions::default());
    let all = prompts(&folder);
    let of = |name: &str| all.iter().find(|prompt| prompt.name == name).unwrap();
    let [a, b] = ["around:gradient.png", "around:text_palette.png"]
        .map(|name| with_images(&mut model, &folder, of(name)));
    let n_common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    assert!(a[n_common] != PLACEHOLDER && a.len() - n_common > 16, "texts part at the image");
    let again = with_images(&mut model, &folder, of("around:gradient.png"));
    assert_eq!(a, again);
}

#[test]
fn images_that_are_not_held_or_split_are_refused() {
    let folder = folder("gemma3");
    let mut model = model(&folder, ".", ".", LoadOptions { image_bytes: 0, ..LoadOptions::default() });
    let all = prompts(&folder);
    let first = with_images(&mut model, &folder, &all[0]);
    with_images(&mut model, &folder, &all[1]);
    let seq = model.new_sequence().unwrap();
    let mut check = |tokens: &[TokenId], code: &str| {
        let error = model.forward(&[Chunk { seq, tokens, logits: LogitsSelection::None }]).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.remedy().is_empty());
    };
    check(&first, "vision.image_missing");
    let second = with_images(&mut self::model(&folder, ".", ".", LoadOptions::default()), &folder, &all[1]);
    let start = second.iter().position(|token| *token >= 1 << 30).unwrap();
    check(&second[..start + 3], "vision.image_split");
}

//! Levels of detail: caps that hold for every size, and leave the model's own limits alone.

use vision::{Detail, ImageSettings, PictureSize};

use crate::data::{FAMILIES, Repository};

/// Repositories without limits of their own have those of published models.
fn published(family: &str) -> ImageSettings {
    let mut files = Repository::open(family);
    let limits =
        ["size", "max_soft_tokens", "max_image_tokens", "min_image_tokens", "max_tiles", "tile_size"];
    for file in [&mut files.preprocessor, &mut files.processor].into_iter().flatten() {
        for limit in limits {
            file.as_object_mut().unwrap().remove(limit);
            if let Some(nested) = file["image_processor"].as_object_mut() {
                nested.remove(limit);
            }
        }
    }
    for key in
        ["max_image_tokens", "min_image_tokens", "max_tiles", "tile_size", "vision_soft_tokens_per_image"]
    {
        files.config.as_object_mut().unwrap().remove(key);
    }
    files.config["vision_config"].as_object_mut().unwrap().remove("image_size");
    files.settings()
}

#[test]
fn caps_hold_for_every_dynamic_family() {
    let sizes = [(64, 64), (1024, 768), (768, 1024), (4000, 3000), (5000, 100), (100, 5000), (3000, 3000)];
    for family in FAMILIES.into_iter().filter(|family| *family != "gemma3") {
        let settings = published(family);
        assert!(settings.is_dynamic());
        assert_eq!(settings.with_detail(Detail::Full), settings, "{family}");
        for (width, height) in sizes {
            let n_tokens = |detail: Detail| {
                let layout = settings.with_detail(detail).layout(PictureSize::new(width, height));
                layout.unwrap_or_else(|e| panic!("{family}: {e}")).n_tokens()
            };
            let (low, balanced) = (n_tokens(Detail::Low), n_tokens(Detail::Balanced));
            let place = format!("{family} {width}×{height}: {low}, {balanced}, {}", n_tokens(Detail::Full));
            println!("{place}");
            assert!(low <= 256 && balanced <= 1024, "{place}");
            assert!(low <= balanced && balanced <= n_tokens(Detail::Full), "{place}");
        }
    }
}

#[test]
fn gemma3_has_one_detail() {
    let settings = Repository::open("gemma3").settings();
    assert!(!settings.is_dynamic());
    assert_eq!(settings.with_detail(Detail::Low), settings);
}

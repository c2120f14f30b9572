//! Token tables: 48 sizes with the settings of the small models, and with those of published ones.

use serde_json::Value;
use vision::{FamilySettings, ImageSettings, PictureSize, VisionErrorKind};

use crate::data::{FAMILIES, Repository, json, size};

/// Patches and merge factors of published models, where the small ones have others: (family, patch, scale).
const PUBLISHED_PATCHES: [(&str, u64, u64); 2] = [("smolvlm", 16, 4), ("idefics3", 14, 2)];

#[test]
fn every_entry_of_the_token_tables_is_exact() {
    let mut n_entries = 0;
    for family in FAMILIES {
        let table = json(format!("{family}/tokens.json"));
        n_entries += check_table(family, &Repository::open(family).settings(), &table["tiny"]);
        let published = published_settings(family, &table["published"]["settings"]);
        n_entries += check_table(family, &published, &table["published"]);
    }
    println!("{n_entries} entries");
    assert_eq!(n_entries, FAMILIES.len() * 2 * 48);
}

/// The family's files with the settings of the table.
fn published_settings(family: &str, settings: &Value) -> ImageSettings {
    let mut files = Repository::open(family);
    for (key, value) in settings.as_object().unwrap() {
        for file in [&mut files.preprocessor, &mut files.processor].into_iter().flatten() {
            if file["image_processor"].is_object() {
                file["image_processor"][key] = value.clone();
            }
            file[key] = value.clone();
        }
    }
    if let Some((_, patch, scale)) = PUBLISHED_PATCHES.iter().find(|(name, ..)| *name == family) {
        files.config["vision_config"]["patch_size"] = Value::from(*patch);
        files.config["scale_factor"] = Value::from(*scale);
    }
    files.settings()
}

fn check_table(family: &str, settings: &ImageSettings, table: &Value) -> usize {
    let entries = table["sizes"].as_array().unwrap();
    for entry in entries {
        let number = |key: &str| entry[key].as_u64().unwrap() as usize;
        let from = PictureSize::new(number("width"), number("height"));
        let place = format!("{family} {from}");
        let layout = settings.layout(from);
        if entry["error"].is_null() {
            let layout = layout.unwrap_or_else(|e| panic!("{place}: {e}"));
            check_entry(&place, settings, &layout, entry);
        } else if let FamilySettings::Pixtral(pixtral) = &settings.family {
            // Its processor fails where a side is rounded to zero; one unit is taken instead.
            let unit = pixtral.patch * pixtral.merge;
            let longest = pixtral.longest_side.next_multiple_of(unit);
            let expected = if from.width < from.height { [unit, longest] } else { [longest, unit] };
            assert_eq!(layout.unwrap().resized, PictureSize::new(expected[0], expected[1]), "{place}");
        } else {
            assert_eq!(layout.unwrap_err().kind, VisionErrorKind::RefusedShape, "{place}");
        }
    }
    entries.len()
}

fn check_entry(place: &str, settings: &ImageSettings, layout: &vision::ImageLayout, entry: &Value) {
    let number = |key: &str| entry[key].as_u64().map(|n| n as usize);
    assert_eq!(Some(layout.n_tokens()), number("tokens"), "{place}: tokens");
    assert_eq!(layout.resized, size(&entry["resized"]), "{place}: resized");
    assert_eq!(
        layout.expanded_text.matches(settings.image_token()).count(),
        layout.n_tokens(),
        "{place}: text"
    );
    let tile = layout.tiles[0];
    if entry["grid_thw"].is_array() {
        let grid = [tile.patch_rows, tile.patch_cols].map(|n| n as u64);
        assert_eq!(entry["grid_thw"], serde_json::json!([1, grid[0], grid[1]]), "{place}: grid");
    }
    if entry["grid"].is_array() {
        assert_eq!(PictureSize::new(tile.token_cols, tile.token_rows), size(&entry["grid"]), "{place}: grid");
    }
    if let (Some(rows), Some(cols)) = (number("rows"), number("cols")) {
        // Idefics3 says 0 for a picture that is not split.
        assert_eq!((layout.tile_rows, layout.tile_cols), (rows.max(1), cols.max(1)), "{place}: tiles");
    }
    if entry["first_resize"].is_array() {
        assert_eq!(layout.first_resize, Some(size(&entry["first_resize"])), "{place}: first resize");
    }
    if entry["thumbnail"].is_array() {
        assert_eq!(layout.tiles.last().unwrap().size, size(&entry["thumbnail"]), "{place}: overview");
    }
    if let Some(n_markers) = number("with_markers").or(number("with_break_and_end")) {
        let n_marks = layout.expanded_text.matches(['<', '[']).count();
        assert_eq!(n_marks, n_markers, "{place}: tokens with markers");
    }
}

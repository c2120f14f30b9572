//! Where models lie on this disk: folders of other programs, and the hub's cache with its trash.
//! Knows paths and names; opens no model.
#![forbid(unsafe_code)]

pub mod hf_cache;
mod roots;

pub use roots::{
    ModelRoot, candidates, disk_bytes, files_of, known, name_of, part_of, stamp, under_its_name,
};

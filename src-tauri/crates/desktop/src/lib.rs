//! What the desktop asks of the window: one window per data folder, the links and files that open it, and the keys
//! that do so from other programs. Also how the program was installed. Knows neither conversations nor models.
#![forbid(unsafe_code)]

pub mod deep_links;
pub mod key_combination;
#[cfg(target_os = "linux")]
pub mod key_grab;
pub mod package_kind;
pub mod single_instance;

pub use deep_links::DeepLink;
pub use key_combination::KeyCombination;
#[cfg(target_os = "linux")]
pub use key_grab::KeyGrab;
pub use package_kind::package_kind;
pub use single_instance::{InstanceClaim, SingleInstance};

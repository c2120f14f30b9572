//! Plans the work of one device: which nodes run together as a step, where their values lie in memory, and which
//! weights stay in memory. Pure functions of the graph; nothing here runs a kernel.

pub mod fuse;
mod fuse_norm_add_norm;
mod fuse_norm_rope;
mod fuse_rope_kv_write;
pub mod layout;
mod reads;
pub mod segments;
pub mod step;
pub mod weight_cache;

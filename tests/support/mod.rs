//! Support for all test binaries. A binary uses only a part of most modules.

pub mod example;
pub mod fixture;
pub mod fuse;
pub mod fuses;
pub mod machine;
pub mod options;
pub mod process;
pub mod recipe;
pub mod requests;
pub mod scan;
pub mod scratch;
pub mod strace;
pub mod tree;
pub mod visits;

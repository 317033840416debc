//! Support for all test binaries. `tests/kernel` uses every item, so the compiler reports those that nobody needs.

pub mod example;
pub mod fuse;
pub mod machine;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
pub mod pre_order;
pub mod process;
pub mod scan;
pub mod scratch;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
pub mod tree;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
pub mod visits;
pub mod way;

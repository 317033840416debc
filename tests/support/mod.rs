//! Support for all test binaries. `tests/kernel` uses every item, so the compiler reports unused
//! items.

pub mod example;
pub mod fuse;
pub mod machine;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
pub mod options;
pub mod process;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
pub mod requests;
pub mod scan;
pub mod scratch;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
pub mod tree;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
pub mod visits;

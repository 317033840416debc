//! Support for all test binaries. `tests/kernel` uses every item, so that the compiler reports there what nobody needs.

pub mod machine;
pub mod process;
pub mod scan;
pub mod tree;

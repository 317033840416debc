//! The integration tests, a module by topic.

mod contract;
mod costs;
mod errors;
mod fixture;
mod ls;
#[path = "../machine/mod.rs"]
mod machine;
mod oracle;
mod pids;
mod system_calls;
mod watch;

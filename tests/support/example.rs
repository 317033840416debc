//! The examples, which tests run as programs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

pub fn example(name: &str) -> Command {
    let program = BUILT.iter().find(|program| Path::new(program).ends_with(name));
    Command::new(program.unwrap_or_else(|| panic!("cargo built no example {name}: {:?}", *BUILT)))
}

/// The paths of the examples. `cargo test --test it` does not build the examples, so this does, for
/// the target and with the flags that the environment names, such as `CARGO_BUILD_TARGET`.
static BUILT: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--examples", "--package", env!("CARGO_PKG_NAME")]);
    cargo.args(["--profile", if cfg!(debug_assertions) { "dev" } else { "release" }]);
    executables(&mut cargo)
});

/// Runs this `cargo build`. Returns the paths of the programs.
pub fn executables(cargo: &mut Command) -> Vec<String> {
    cargo.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{cargo:?}");
    let messages = String::from_utf8(output.stdout).unwrap();
    let programs = messages
        .lines()
        .filter_map(|message| message.split_once("\"executable\":\"")?.1.split('"').next());
    programs.map(str::to_owned).collect()
}

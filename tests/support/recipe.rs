//! The programs of `src/recipes.md`. All are compiled into one program, as users compile theirs,
//! whose first argument names the recipe.

use super::example::executables;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

pub const PAGE: &str = include_str!("../../src/recipes.md");

/// Returns the title and the code of each recipe that is a program.
pub fn programs() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGE.split("\n## ").skip(1).filter_map(|section| {
        let (title, section) = section.split_once('\n')?;
        let (_, section) = section.split_once("\n```")?;
        let (_, section) = section.split_once('\n')?;
        Some((title, section.split_once("\n```")?.0))
    })
}

fn module(title: &str) -> String {
    title.to_lowercase().replace('`', "").replace(' ', "_")
}

/// The path of the program with all recipes.
static BUILT: LazyLock<String> = LazyLock::new(|| {
    let project = env!("CARGO_MANIFEST_DIR");
    let (mut source, mut arms) = (String::from("#![allow(unused)]\n"), String::new());
    let mut arm = |name: &str, function: &str| {
        writeln!(arms, "{name:?} => Termination::report({function}()),").unwrap();
    };
    for (title, code) in programs() {
        let module = module(title);
        let code = code.replace("fn main()", "pub fn main()");
        writeln!(source, "mod {module} {{\n{code}").unwrap();
        arm(title, &format!("{module}::main"));
        let test = format!("{project}/tests/recipes/{module}.rs");
        if Path::new(&test).exists() {
            writeln!(source, "pub mod tests {{ use super::*; include!({test:?}); }}").unwrap();
            arm(&format!("test {title}"), &format!("{module}::tests::test"));
        }
        source.push_str("}\n");
    }
    write!(
        source,
        "fn main() -> std::process::ExitCode {{\nuse std::process::Termination;\n\
         match &*std::env::args().nth(1).unwrap() {{\n{arms}_ => panic!() }} }}\n"
    )
    .unwrap();
    let manifest = format!(
        "[package]\nname = \"recipes\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         lendir = {{ path = {project:?} }}\nrustix = {{ version = \"1.1\", features = [\"fs\"] }}\n"
    );
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recipes");
    fs::create_dir_all(dir.join("src")).unwrap();
    let lock = fs::read_to_string(Path::new(project).join("Cargo.lock")).unwrap();
    let files = [("Cargo.lock", lock), ("Cargo.toml", manifest), ("src/main.rs", source)];
    for (file, text) in files {
        if fs::read_to_string(dir.join(file)).is_ok_and(|old| old == text) {
            continue;
        }
        // Another test process may be compiling the same files, which are never empty meanwhile.
        let written = dir.join(format!("{}.{}", file.replace('/', "."), std::process::id()));
        fs::write(&written, &text).unwrap();
        fs::rename(written, dir.join(file)).unwrap();
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline"]).current_dir(dir);
    executables(&mut cargo).remove(0)
});

/// Runs the recipe of this title, or its test: `test TITLE`.
pub fn recipe(title: &str) -> Command {
    let mut command = Command::new(&*BUILT);
    command.arg(title);
    command
}

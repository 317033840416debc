//! The parts that all benchmarks share: contenders, the directories that they read, and how they
//! are measured.
//!
//! - [`contender`]: one way to do a piece of work. It can be timed, and its answer is checked
//!   against an oracle.
//! - [`directories`] and [`trees`]: the directories and trees to read, and the oracle for each.
//! - [`readers`] and [`walkers`]: the contenders that read a directory, and walk a tree.
//! - [`ratio`]: measures contenders by criterion, and prints tables of their ratios.

pub mod contender;
pub mod directories;
pub mod ratio;
pub mod readers;
pub mod trees;
pub mod walkers;

/// The arguments of the program: options, and words that select rows.
pub struct Arguments {
    options: Vec<String>,
    words: Vec<String>,
}

impl Arguments {
    /// Reads the arguments. The argument after an option of criterion is the option's value.
    pub fn read() -> Self {
        let mut all = Self { options: Vec::new(), words: Vec::new() };
        let mut is_value = false;
        for argument in std::env::args().skip(1) {
            if argument.starts_with('-') {
                is_value = !matches!(&*argument, "--bench" | "--test" | "--draw" | "--quiet");
                all.options.push(argument);
            } else if !std::mem::take(&mut is_value) {
                all.words.extend(argument.split('|').map(String::from));
            }
        }
        all
    }

    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|it| it == option)
    }

    /// Returns `true` if a word is in the table's title or the row's label, or there are no words.
    pub fn ask_for(&self, title: &str, label: &str) -> bool {
        let id = format!("{title}: {label}");
        self.words.is_empty() || self.words.iter().any(|word| id.contains(word))
    }

    /// Returns `true` if slow rows and contenders are selected: by words, or by `LENDIR_LONG=1`.
    pub fn is_long(&self) -> bool {
        !self.words.is_empty() || std::env::var_os("LENDIR_LONG").is_some_and(|value| value == "1")
    }
}

/// Returns the processor, the cores, the kind of machine and the kernel, from procfs.
pub fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, model)| model);
    let is_virtual =
        info.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    let kind = if is_virtual { "a virtual machine" } else { "a machine" };
    let kernel = read("/proc/sys/kernel/osrelease");
    let release = kernel.trim().split('-').next().unwrap_or_default();
    let cores = info.lines().filter(|line| line.starts_with("processor")).count().max(1);
    format!(
        "{kind} with {cores} cores of {}, Linux {release}",
        model.unwrap_or(std::env::consts::ARCH)
    )
}

/// Adds to each heading in Markdown the command that measures its table.
pub fn with_commands(tables: &str, command: &str) -> String {
    let line = |line: &str| match line.strip_prefix("### ") {
        Some(title) => format!("{line}\n\n`{command} -- '{title}'`\n"),
        None => format!("{line}\n"),
    };
    tables.lines().map(line).collect()
}

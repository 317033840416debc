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
                is_value = !matches!(&*argument, "--bench" | "--test" | "--quiet");
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

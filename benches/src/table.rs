//! A Markdown table of ratios: a row for each directory or tree, a column for each contender.

use crate::contender::Contender;
use crate::turns::{Effort, Turns};
use std::fmt;

pub struct Table {
    title: &'static str,
    effort: Effort,
    rows: Vec<Row>,
}

struct Row {
    label: String,
    names: Vec<&'static str>,
    turns: Turns,
}

impl Table {
    pub fn new(title: &'static str, effort: Effort) -> Self {
        Self { title, effort, rows: Vec::new() }
    }

    /// Checks and measures the contenders, of which the first is the bare loop, and adds a row.
    ///
    /// Shows on standard error each ratio with its spread, as soon as it is known.
    pub fn measure(&mut self, label: &str, mut contenders: Vec<Contender<'_>>) {
        contenders.iter_mut().for_each(Contender::check);
        let turns = Turns::take(&mut contenders, self.effort);
        let names: Vec<_> = contenders.iter().map(|contender| contender.name).collect();
        eprintln!("\n{label}: {} takes {}, {} rounds", names[0], time(turns.median(0)), turns.rounds);
        for (index, name) in names.iter().enumerate().skip(1) {
            eprintln!("  {name:34} {}", turns.ratio(index, 0));
        }
        self.rows.push(Row { label: label.into(), names, turns });
    }

    /// The label of each row, and the ratio of each of its contenders to the bare loop.
    pub fn ratios(&self) -> impl Iterator<Item = (&str, Vec<(&'static str, f64)>)> {
        self.rows.iter().map(|row| {
            let ratio = |(index, name): (usize, &&'static str)| (*name, row.turns.ratio(index, 0).of_medians);
            (&*row.label, row.names.iter().enumerate().map(ratio).collect())
        })
    }

    /// A contender that only some rows have, such as `EndMarker`, comes after the one that it follows there.
    fn columns(&self) -> Vec<&'static str> {
        let mut columns = Vec::new();
        for row in &self.rows {
            for (index, name) in row.names.iter().enumerate() {
                if !columns.contains(name) {
                    let before = row.names[..index].last().and_then(|last| columns.iter().position(|it| it == last));
                    columns.insert(before.map_or(0, |before| before + 1), *name);
                }
            }
        }
        columns
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return Ok(());
        }
        let columns = self.columns();
        writeln!(f, "\n### {}\n", self.title)?;
        writeln!(f, "| | {} |", columns.join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(columns.len()))?;
        for Row { label, names, turns } in &self.rows {
            write!(f, "| {label} |")?;
            for column in &columns {
                match names.iter().position(|name| name == column) {
                    Some(0) => write!(f, " {} |", time(turns.median(0)))?,
                    Some(index) => write!(f, " {:.2} |", turns.ratio(index, 0).of_medians)?,
                    None => write!(f, " – |")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Three digits of it.
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        ..1e-3 => (seconds * 1e6, "µs"),
        _ => (seconds * 1e3, "ms"),
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}

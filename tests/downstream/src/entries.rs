//! Loops with `Entries`, and with a `ReadDir`, which owns what `Entries` borrow.

use crate::{Input, Loop, look_at};
use lendir::{Entries, Entry, ReadDir};
use std::io;
use std::os::fd::AsFd;

pub const LOOPS: &[(&str, Loop)] = &[
    ("plain", plain),
    ("filtered", filtered),
    ("closure", closure),
    ("boxed", boxed),
    ("generic", generic),
    ("count", count),
    ("owned", owned),
    ("typed", typed),
];

fn entries(input: &mut Input) -> Entries<'_> {
    Entries::new(input.dir.as_fd(), &mut input.buffer)
}

fn plain(input: &mut Input) -> io::Result<u64> {
    let mut entries = entries(input);
    let mut seen = 0;
    read_all!(entries, seen);
    Ok(seen)
}

fn filtered(input: &mut Input) -> io::Result<u64> {
    let mut entries = entries(input);
    let mut seen = 0;
    while let Some(entry) = entries.find(|entry| !entry.name().ends_with(b"~"))? {
        look_at(entry.name(), entry.ino(), entry.d_type());
        seen += 1;
    }
    Ok(seen)
}

fn closure(input: &mut Input) -> io::Result<u64> {
    let mut entries = entries(input);
    let mut seen = 0;
    let mut read = || -> io::Result<()> {
        read_all!(entries, seen);
        Ok(())
    };
    read()?;
    Ok(seen)
}

fn boxed(input: &mut Input) -> io::Result<u64> {
    let mut entries = entries(input);
    let mut read: Box<dyn FnMut() -> io::Result<u64>> = Box::new(move || {
        let mut seen = 0;
        read_all!(entries, seen);
        Ok(seen)
    });
    std::hint::black_box(&mut read)()
}

fn generic(input: &mut Input) -> io::Result<u64> {
    let mut seen = 0;
    for_each(&mut entries(input), |entry| {
        look_at(entry.name(), entry.ino(), entry.d_type());
        seen += 1;
    })?;
    Ok(seen)
}

fn for_each(entries: &mut Entries<'_>, mut work: impl FnMut(&Entry)) -> Result<(), lendir::Error> {
    while let Some(entry) = entries.next()? {
        work(&entry);
    }
    Ok(())
}

fn count(input: &mut Input) -> io::Result<u64> {
    Ok(entries(input).count()?)
}

fn owned(input: &mut Input) -> io::Result<u64> {
    let mut dir = ReadDir::from_fd(input.dir.try_clone()?, "");
    let mut seen = 0;
    read_all!(dir, seen);
    Ok(seen)
}

/// Reads the certain type of each entry.
fn typed(input: &mut Input) -> io::Result<u64> {
    let mut entries = entries(input);
    let mut seen = 0;
    while let Some(entry) = entries.next()? {
        look_at(entry.name(), entry.ino(), entry.file_type()?);
        seen += 1;
    }
    Ok(seen)
}

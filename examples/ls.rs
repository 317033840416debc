//! Lists directories, sorted by bytes, a name a line: `ls [-fciF] [DIR]...`. Names are printed as they are.
//!
//! `-f` lists in the order of the directory, `-c` takes `A` to `Z` for `a` to `z`, `-i` lists by inode number; the last of
//! the three decides the order, and with `-i` the number stands before each name. `-F` puts a mark behind each name that is
//! not that of a plain file: `/` directory, `@` symbolic link, `|` FIFO, `=` socket, `*` executable. Exit status: 0, or 2 if
//! anything could not be read.

use lendir::{Buffer, Entries, FileType, Listing, Order, SortedEntry};
use rustix::fs::{AtFlags, Mode, statat};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    match ls(std::env::args_os().skip(1), &mut out).and_then(|complete| out.flush().map(|()| complete)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ls: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does what the arguments ask for, and tells whether all of it could be read. An error is one of `out`, or of usage.
fn ls(args: impl Iterator<Item = OsString>, out: &mut impl Write) -> io::Result<bool> {
    let (mut order, mut numbered, mut marked, mut dirs) = (Order::Bytes, false, false, Vec::new());
    for arg in args {
        let Some(letters @ [_, ..]) = arg.as_bytes().strip_prefix(b"-") else {
            dirs.push(arg);
            continue;
        };
        for letter in letters {
            match letter {
                b'f' => order = Order::Directory,
                b'c' => order = Order::AsciiCaseless,
                b'i' => (order, numbered) = (Order::Inode, true),
                b'F' => marked = true,
                _ => return Err(io::Error::new(ErrorKind::InvalidInput, "usage: ls [-fciF] [DIR]...")),
            }
        }
    }
    if dirs.is_empty() {
        dirs.push(".".into());
    }
    if order != Order::Directory {
        dirs.sort();
    }

    // Both are warm after the first directory: no other allocates, unless it is larger.
    let mut buffer = Buffer::new();
    let mut listing = Listing::with_order(order);
    let (mut complete, mut separator) = (true, "");
    for path in &dirs {
        let dir = match lendir::open(path.as_os_str()) {
            Ok(dir) => dir,
            Err(error) => {
                complete = complain(path, error);
                continue;
            }
        };
        if dirs.len() > 1 {
            for part in [separator.as_bytes(), path.as_bytes(), b":\n"] {
                out.write_all(part)?;
            }
            separator = "\n";
        }
        if let Err(error) = listing.read(Entries::new(&dir, &mut buffer)) {
            complete = complain(path, error); // and list what came before it
        }
        let largest = if numbered { listing.iter().map(|entry| entry.ino()).max() } else { None };
        let width = largest.map_or(0, |ino| 1 + ino.checked_ilog10().unwrap_or(0) as usize);
        for entry in &listing {
            if numbered {
                write!(out, "{:width$} ", entry.ino())?;
            }
            out.write_all(entry.name())?;
            if marked {
                match mark(&dir, entry) {
                    Ok(mark) => out.write_all(mark)?,
                    Err(error) => complete = complain(Path::new(path).join(entry.name_os()), error),
                }
            }
            out.write_all(b"\n")?;
        }
    }
    Ok(complete)
}

/// Asks the file system only where the directory cannot know: who may execute a file, and types it does not have.
fn mark(dir: &OwnedFd, entry: SortedEntry<'_>) -> io::Result<&'static [u8]> {
    let mode = match entry.file_type() {
        FileType::RegularFile | FileType::Unknown => statat(dir, entry.name_cstr(), AtFlags::SYMLINK_NOFOLLOW)?.st_mode,
        known => known.as_raw_mode(),
    };
    let executable = Mode::XUSR | Mode::XGRP | Mode::XOTH;
    Ok(match FileType::from_raw_mode(mode) {
        FileType::Directory => b"/",
        FileType::Symlink => b"@",
        FileType::Fifo => b"|",
        FileType::Socket => b"=",
        FileType::RegularFile if Mode::from_raw_mode(mode).intersects(executable) => b"*",
        _ => b"",
    })
}

/// Reports an error, after which nothing is complete.
fn complain(path: impl AsRef<Path>, error: impl Display) -> bool {
    eprintln!("ls: {}: {error}", path.as_ref().display());
    false
}

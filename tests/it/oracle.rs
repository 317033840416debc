//! Comparisons of `lendir` with `std::fs::read_dir`: names, inode numbers and types.

use crate::support::prelude::*;
use crate::support::scan::{all_again, type_by_std};
use std::collections::VecDeque;
use std::error::Error;

/// Reads a directory with `std`, sorted by name. Queries the types that the directory does not
/// list.
fn read_with_std(path: &Path) -> io::Result<Vec<Found>> {
    let entries = std::fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    let found = entries
        .iter()
        .map(|entry| Found { file_type: type_by_std(entry), ..Found::from_std(entry) });
    Ok(sorted(found.collect()))
}

fn read_with_lendir(path: &Path, capacity: usize) -> Result<Vec<Found>, Box<dyn Error>> {
    let dir = lendir::open(path)?;
    let mut buffer = Buffer::with_capacity(capacity);
    let mut entries = Entries::new(dir.as_fd(), &mut buffer);
    let mut found = Vec::new();
    let mut resolved = Vec::new();
    while let Some(entry) = entries.next()? {
        resolved.push(Found { file_type: entry.file_type()?, ..Found::from(&entry) });
        found.push(Found::from(&entry));
    }
    // Cookies are left out, because tracefs makes its cookies depend on the buffer.
    let [again, found] = [all_again(lendir::ReadDir::from_fd(dir, "")), found]
        .map(|found| scan::sorted(found, Order::Unsorted));
    if again != found {
        return Err(format!("{}: other entries with its end marker", path.display()).into());
    }
    Ok(sorted(resolved))
}

fn sorted(found: Vec<Found>) -> Vec<Found> {
    scan::sorted(found, Order::Bytes)
}

/// Returns the entries that all readers find, or a difference.
fn agree(path: &Path) -> Result<Vec<Found>, Box<dyn Error>> {
    let expected = read_with_std(path)?;
    for capacity in [Buffer::MIN_CAPACITY, 1 << 20] {
        if read_with_lendir(path, capacity)? != expected {
            return Err(format!(
                "{}: `lendir` with {capacity} bytes differs from `std`",
                path.display()
            )
            .into());
        }
    }
    Ok(expected)
}

/// Returns the directories of a tree, breadth first. Follows no links.
fn tree(root: &str, most: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut queue = VecDeque::from([PathBuf::from(root)]);
    while let Some(path) = queue.pop_front().filter(|_| found.len() < most) {
        let Ok(children) = std::fs::read_dir(&path) else { continue };
        queue.extend(
            children
                .flatten()
                .filter(|c| c.file_type().is_ok_and(|t| t.is_dir()))
                .map(|c| c.path()),
        );
        found.push(path);
    }
    found
}

/// Other processes may change system directories. One of 100 comparisons must match, unless the
/// directory is gone.
#[test]
fn agrees_on_system_directories() {
    let mut agreed = 0;
    let by_name = ["/dev", "/proc/self", "/proc/self/ns", "/proc/self/attr", "/proc/self/net"]
        .map(PathBuf::from);
    for path in ["/sys", "/usr"].into_iter().flat_map(|root| tree(root, 1000)).chain(by_name) {
        let mut compared = agree(&path);
        for _ in 1..100 {
            if compared.is_err() && path.exists() {
                compared = agree(&path);
            }
        }
        if path.exists() {
            compared.unwrap();
            agreed += 1;
        }
    }
    assert!(agreed > 100, "only {agreed} directories");
}

#[test]
fn agrees_on_names_of_any_length_and_bytes() {
    let dir = Scratch::in_memory();
    let mut names: BTreeSet<Vec<u8>> = ["...", ".a.", "..a", "two\nlines", "ü", "\u{202e}"]
        .map(|name| name.as_bytes().to_vec())
        .into();
    for length in 1..=255 {
        names.extend([vec![b'n'; length], vec![0xff; length]]);
    }
    for byte in (1..=255).filter(|byte| !b"/.".contains(byte)) {
        names.extend([vec![byte], vec![b'.', byte]]);
    }
    for name in &names {
        make_file(&dir.path().join(OsStr::from_bytes(name)));
    }
    assert_eq!(scan::names(&agree(dir.path()).unwrap()), names.iter().collect::<Vec<_>>());
}

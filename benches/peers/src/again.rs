//! A tree walked again, without reading the directories that have not changed: what each holds is known from the first time.
//!
//! Times have the grain of a clock tick. A program that must not miss a change reads again what was changed less than a tick
//! before it was read.

use lendir::{Dir, Error, FileType, Walk};
use lendir_benches::contender::Contender;
use lendir_benches::trees::{Answer, Tree};
use rustix::fs::{AtFlags, Stat, fstat, statat};
use std::collections::HashMap;
use std::ffi::CString;

/// The walk before the one that is timed finds everything new.
pub fn incremental(tree: &Tree) -> Contender<'_> {
    let mut known = HashMap::new();
    let mut walk = move || bytes(Walk::open(tree.path())?, &mut known);
    let mut walk = move || walk().expect("cannot walk the tree");
    walk();
    Contender::counting("unchanged directories not read", tree.oracle(Answer::Bytes), walk)
}

/// By device and inode number.
type Known = HashMap<(u64, u64), Directory>;

/// What was read of one, and when it had last been changed by then.
struct Directory {
    stamp: Stamp,
    /// Of its own names.
    bytes: u64,
    below: Vec<CString>,
}

/// Making, removing or renaming an entry changes both times; nobody can set the second one back.
#[derive(PartialEq, Eq)]
struct Stamp([i64; 2], [u64; 2]);

impl Stamp {
    fn of(stat: &Stat) -> Self {
        Self([stat.st_mtime, stat.st_ctime], [stat.st_mtime_nsec, stat.st_ctime_nsec])
    }
}

/// The bytes of all names. A directory that has not changed is not read, and without directories in it not even opened.
fn bytes(mut walk: Walk, known: &mut Known) -> Result<u64, Error> {
    let mut bytes = 0;
    while let Some(mut dir) = walk.next()? {
        let Ok(stat) = fstat(&dir) else { continue };
        let (id, stamp) = (id(&stat), Stamp::of(&stat));
        if known.get(&id).is_none_or(|directory| directory.stamp != stamp) {
            let read = read(&mut dir, stamp)?;
            bytes += read.bytes;
            known.insert(id, read);
            continue;
        }
        let directory = &known[&id];
        bytes += directory.bytes;
        dir.skip_all();
        for name in &directory.below {
            match leaf(&dir, name, known) {
                Some(leaf) => bytes += leaf.bytes,
                None => dir.enter(name.as_bytes()),
            }
        }
    }
    Ok(bytes)
}

fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// The directory `name` in `dir`, if it has not changed and has no directories in it.
fn leaf<'k>(dir: &Dir<'_>, name: &CString, known: &'k Known) -> Option<&'k Directory> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    known.get(&id(&stat)).filter(|leaf| leaf.below.is_empty() && leaf.stamp == Stamp::of(&stat))
}

fn read(dir: &mut Dir<'_>, stamp: Stamp) -> Result<Directory, Error> {
    let (mut bytes, mut below) = (0, Vec::new());
    while let Some(entry) = dir.next()? {
        bytes += entry.name().len() as u64;
        if entry.resolve_file_type()? == FileType::Directory {
            below.push(entry.name_cstr().into());
        }
    }
    Ok(Directory { stamp, bytes, below })
}

//! A second walk of a tree, which reads only the directories that have changed. The first walk has noted what each holds.

use lendir::{Dir, Error, FileType, Walk};
use lendir_benches::contender::Contender;
use lendir_benches::trees::{Answer, Tree};
use rustix::fs::{AtFlags, Stat, fstat, statat};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io, mem};

/// The recipe "Walk again". For the first walk, which is not timed, everything is new.
pub fn lendir(tree: &Tree) -> Contender<'_> {
    let (mut walk, mut known) = (Walk::default(), HashMap::new());
    let mut again = move || {
        walk.reopen(tree.path())?;
        bytes(&mut walk, &mut known)
    };
    let mut again = move || again().expect("cannot walk the tree");
    again();
    Contender::counting("lendir, the recipe", tree.oracle(Answer::Bytes), again)
}

/// What a program does without `lendir`: one `lstat` for each path that it remembers.
pub fn std(tree: &Tree) -> Contender<'_> {
    let mut root = Remembered::at(tree.path().into());
    let mut again = move || root.bytes().expect("cannot walk the tree");
    again();
    Contender::counting("std, one lstat for each path", tree.oracle(Answer::Bytes), again)
}

/// Device and inode number.
type Id = (u64, u64);

/// The mtime of a directory, and its ctime, which nobody can set back.
type Times = [i64; 4];

/// What a directory held when it was read.
struct Known {
    times: Times,
    /// The bytes of its own names.
    bytes: u64,
    below: Vec<(Vec<u8>, Id)>,
}

fn id(stat: &Stat) -> Id {
    (stat.st_dev, stat.st_ino)
}

fn times(stat: &Stat) -> Times {
    [stat.st_mtime, stat.st_mtime_nsec.cast_signed(), stat.st_ctime, stat.st_ctime_nsec.cast_signed()]
}

/// Whether everything below it is known, and at most `levels` deep.
fn is_shallow(known: &HashMap<Id, Known>, id: &Id, levels: u32) -> bool {
    let Some(Known { below, .. }) = known.get(id) else { return false };
    below.is_empty() || levels > 0 && below.iter().all(|(_, id)| is_shallow(known, id, levels - 1))
}

/// The bytes of the names in the directory at `path` in `dir`, and below it. `None` if one of the directories has changed.
fn unopened(known: &HashMap<Id, Known>, dir: &Dir<'_>, path: &mut Vec<u8>, at: &Id) -> Option<u64> {
    let stat = statat(dir.fd(), &*path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let unchanged = known.get(at).filter(|known| id(&stat) == *at && times(&stat) == known.times)?;
    let (mut bytes, len) = (unchanged.bytes, path.len());
    for (name, at) in &unchanged.below {
        path.push(b'/');
        path.extend_from_slice(name);
        bytes += unopened(known, dir, path, at)?;
        path.truncate(len);
    }
    Some(bytes)
}

fn bytes(walk: &mut Walk, known: &mut HashMap<Id, Known>) -> Result<u64, Error> {
    let (mut count, mut path) = (0, Vec::new());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let settled = now.as_secs().cast_signed() - 2; // the next change of a younger directory may leave its times the same
    while let Some(mut dir) = walk.next()? {
        let Ok(stat) = fstat(dir.fd()) else { continue };
        if let Some(unchanged) = known.get(&id(&stat)).filter(|known| known.times == times(&stat)) {
            count += unchanged.bytes;
            dir.skip_all();
            for (name, id) in &unchanged.below {
                path.clone_from(name);
                match is_shallow(known, id, 2).then(|| unopened(known, &dir, &mut path, id)).flatten() {
                    Some(bytes) => count += bytes,
                    None => {
                        dir.enter(name);
                    }
                }
            }
            continue;
        }
        let (mut bytes, mut below) = (0, Vec::new());
        while let Some(entry) = dir.next()? {
            bytes += entry.name().len() as u64;
            if entry.file_type()? == FileType::Directory {
                below.push((entry.name().to_vec(), (stat.st_dev, entry.ino())));
            }
        }
        count += bytes;
        if stat.st_ctime < settled {
            known.insert(id(&stat), Known { times: times(&stat), bytes, below });
        }
    }
    Ok(count)
}

/// What a directory held when it was read, and the directories in it.
struct Remembered {
    path: PathBuf,
    times: Times,
    bytes: u64,
    below: Vec<Remembered>,
}

impl Remembered {
    fn at(path: PathBuf) -> Self {
        Self { path, times: Times::default(), bytes: 0, below: Vec::new() }
    }

    fn bytes(&mut self) -> io::Result<u64> {
        let stat = fs::symlink_metadata(&self.path)?;
        let times = [stat.mtime(), stat.mtime_nsec(), stat.ctime(), stat.ctime_nsec()];
        if times != self.times {
            self.times = times;
            self.read()?;
        }
        let mut bytes = self.bytes;
        for dir in &mut self.below {
            bytes += dir.bytes()?;
        }
        Ok(bytes)
    }

    fn read(&mut self) -> io::Result<()> {
        self.bytes = 0;
        let mut old = mem::take(&mut self.below);
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            self.bytes += entry.file_name().len() as u64;
            if entry.file_type()?.is_dir() {
                let path = entry.path();
                let known = old.iter().position(|dir| dir.path == path);
                self.below.push(known.map_or_else(|| Self::at(path), |at| old.swap_remove(at)));
            }
        }
        Ok(())
    }
}

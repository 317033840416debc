//! Copies the directory FROM to the new directory TO: `copy FROM TO`. It copies files with their
//! holes, symbolic links and modes. The example shows two walks side by side, and second visits.
//!
//! Each step is relative to an open directory. So if another process replaces directories by links
//! meanwhile, nothing is written outside of TO. If TO is inside FROM, TO is not copied.
//!
//! A file with several links becomes several files. FIFOs, sockets and devices are errors, and so is
//! an entry that was removed or moved before it could be copied. Files are copied without the
//! set-user-ID and set-group-ID bits, because the copy may have another owner.
//!
//! In your own program, `umask` needs the feature `process` of `rustix`.

use lendir::{Dir, Entry, Error, FileType, Listing, WalkDirs};
use rustix::fs::{self, CWD, Mode, OFlags, SeekFrom, fstat, openat, seek};
use rustix::io::Errno;
use rustix::process::umask;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::fmt::Display;
use std::fs::File;
use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FAILED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    umask(Mode::empty()); // otherwise it could deny this program the directories that it makes
    match &std::env::args_os().skip(1).collect::<Vec<_>>()[..] {
        [from, to] => copy_tree(from.as_ref(), to.as_ref()).unwrap_or_else(complain),
        _ => complain("usage: copy FROM TO"),
    }
    ExitCode::from(u8::from(FAILED.load(Relaxed)))
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "copy: {error}");
}

/// Runs two walks, which visit directories in the order of `Path::cmp` on relative paths. If one of
/// them cannot open a directory, the other one skips it.
fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    // A directory of the copy keeps the mode that it is made with until its second visit.
    let options = WalkDirs::options().with_state(Mode::RWXU);
    let mut originals = options.clone().open(from)?;
    let root = make_root(to).map_err(|errno| Error::new(to, errno))?;
    let root_id = fstat(&root).map(|stat| (stat.st_dev, stat.st_ino));
    let root_id = root_id.map_err(|errno| Error::new(to, errno))?;
    let mut copies = options.second_visits(true).from_fd(root, to);
    let mut listing = Listing::new();
    let (mut original, mut copy) =
        (originals.next_or_report(complain), copies.next_or_report(complain));
    loop {
        let order = match (&original, &copy) {
            (None, None) => return Ok(()),
            (Some(_), None) => Less,
            (Some(original), Some(copy)) if !copy.is_second_visit() => {
                original.path().strip_prefix(from).ok().cmp(&copy.path().strip_prefix(to).ok())
            }
            _ => Greater,
        };
        match (&mut original, &mut copy) {
            (Some(original), Some(copy)) if order == Equal => {
                copy_dir(original, copy, root_id, &mut listing);
            }
            (Some(original), _) if order == Less => original.skip_subdirs(),
            (_, Some(copy)) if copy.is_second_visit() => {
                // Only now, because no entry can be made in a directory without `w`.
                let changed = fs::fchmod(copy.fd(), *copy.state());
                changed.unwrap_or_else(|errno| complain(copy.wrap_error(errno)));
            }
            (_, copy) => {
                let copy = copy.as_mut().expect("one of them is there");
                *copy.state_mut() = Mode::RWXU; // not its parent's mode
                copy.skip_subdirs();
            }
        }
        if order != Greater {
            original = originals.next_or_report(complain);
        }
        if order != Less {
            copy = copies.next_or_report(complain);
        }
    }
}

/// Makes a directory at a path and opens it, even if the path leads to another directory by then.
fn make_root(path: &Path) -> Result<OwnedFd, Errno> {
    let path = path.components().as_path(); // without slashes at the end
    let name = path.file_name().ok_or(Errno::EXIST)?;
    let parent = Path::new(".").join(path.parent().unwrap_or(Path::new("")));
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, parent, flags | OFlags::PATH, Mode::empty())?;
    fs::mkdirat(&parent, name, Mode::RWXU)?;
    openat(&parent, name, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// Copies the entries of a directory, and lets both walks enter its subdirectories. `root_id` is
/// the device and the inode number of TO.
fn copy_dir(
    original: &mut Dir<'_, Mode>,
    copy: &mut Dir<'_, Mode>,
    root_id: (u64, u64),
    listing: &mut Listing,
) {
    *copy.state_mut() = match original.metadata() {
        Ok(metadata) => mode(metadata.mode(), true),
        Err(error) => {
            complain(error);
            Mode::RWXU // not its parent's mode
        }
    };
    original.read_into(listing).unwrap_or_else(complain);
    original.skip_subdirs();
    copy.skip_subdirs();
    for entry in &*listing {
        let copied = copy_entry(&entry.in_dir(original.fd()), copy, root_id);
        let enter = |is_dir| {
            // Neither walk may enter a directory without the other.
            if is_dir && original.enter_name(entry.name())? {
                copy.enter_name(entry.name())?;
            }
            Ok(())
        };
        copied.and_then(enter).unwrap_or_else(complain);
    }
}

/// Returns the permissions. A directory keeps its set-group-ID bit, which hands down its group.
fn mode(mode: u32, is_dir: bool) -> Mode {
    let special = if is_dir { Mode::SVTX | Mode::SGID } else { Mode::SVTX };
    Mode::from_raw_mode(mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO | special)
}

/// Copies an entry, without the contents of a directory. Returns `true` if it is a directory to
/// enter.
fn copy_entry(entry: &Entry<'_>, to: &Dir<'_, Mode>, root_id: (u64, u64)) -> Result<bool, Error> {
    let (name, metadata) = (entry.name_cstr(), entry.metadata()?);
    let wrap = |errno: Errno| Error::new(to.path().join(entry.file_name()), errno);
    match metadata.file_type() {
        FileType::Directory if (metadata.dev(), metadata.ino()) == root_id => return Ok(false),
        FileType::Directory => fs::mkdirat(to.fd(), name, Mode::RWXU).map_err(wrap)?,
        FileType::Symlink => {
            fs::symlinkat(&entry.read_link()?, to.fd(), name).map_err(wrap)?;
        }
        FileType::RegularFile => {
            let file = entry.open_file()?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = openat(to.fd(), name, flags, Mode::RUSR | Mode::WUSR).map_err(wrap)?;
            let made = File::from(made);
            copy_data(&file, &made).map_err(|error| match error.kind() {
                // No reading fails with these.
                StorageFull | QuotaExceeded | FileTooLarge => {
                    Error::new(to.path().join(entry.file_name()), error)
                }
                _ => entry.wrap_error(error),
            })?;
            let found = file.metadata().map_err(|error| entry.wrap_error(error))?;
            fs::fchmod(&made, mode(found.mode(), false)).map_err(wrap)?;
        }
        _ => return Err(entry.wrap_error(io::ErrorKind::Unsupported)),
    }
    Ok(metadata.is_dir())
}

/// Copies the data of a file without its holes.
fn copy_data(mut from: &File, mut to: &File) -> io::Result<()> {
    let (found, mut end) = (from.metadata()?, 0);
    // Holes lack blocks. Without blocks, the size may still be wrong, as in /sys: then the data ends
    // before the hole.
    while found.blocks() < found.len() / 512 {
        let start = match seek(from, SeekFrom::Data(end)) {
            Ok(start) => start,
            Err(Errno::NXIO) => {
                end = from.metadata()?.len().max(end); // no data follows
                to.set_len(end)?;
                break;
            }
            Err(_) if end == 0 => break, // the file system knows of no holes
            Err(errno) => return Err(errno.into()),
        };
        let hole = seek(from, SeekFrom::Hole(start))?;
        if !(end..hole).contains(&start) {
            return Err(Errno::IO.into()); // otherwise a faulty file system could keep it looping
        }
        seek(from, SeekFrom::Start(start))?;
        seek(to, SeekFrom::Start(start))?;
        end = start + io::copy(&mut from.take(hole - start), &mut to)?;
        if end < hole {
            break;
        }
    }
    if end > 0 {
        seek(from, SeekFrom::Start(end))?;
        seek(to, SeekFrom::Start(end))?;
    }
    io::copy(&mut from, &mut to)?;
    // The kernel copies at most the size, which is 0 in /proc. Reading goes on to the end.
    let mut rest = Vec::new();
    while from.take(64 << 10).read_to_end(&mut rest)? > 0 {
        to.write_all(&rest)?;
        rest.clear();
    }
    Ok(())
}

//! Copies the directory FROM to the new directory TO: `copy FROM TO`. It copies files with their
//! holes, symbolic links and modes. The example shows two walks side by side, and second visits.
//!
//! Each step is relative to an open directory. So if another process replaces directories by links
//! meanwhile, nothing is written outside of TO. If TO is inside FROM, TO is not copied.
//!
//! A file with several links becomes several files. FIFOs, sockets and devices are errors. Modes
//! are copied without set-user-ID bits, because the copy may have another owner.

use lendir::rustix::fs::{self, CWD, Mode, SeekFrom, Stat, fstat, openat, seek};
use lendir::rustix::io::Errno;
use lendir::{Error, FileType, ListedEntry, Listing, OFlags, WalkDirs};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let mut status = ExitCode::SUCCESS;
    let mut report = |error: io::Error| {
        let _ = writeln!(io::stderr(), "copy: {error}");
        status = ExitCode::FAILURE;
    };
    let ended = match &args[..] {
        [from, to] => copy_tree(from.as_ref(), to.as_ref(), |error| report(error.into())),
        _ => Err(io::Error::other("usage: copy FROM TO")),
    };
    ended.unwrap_or_else(report);
    status
}

/// Runs two walks. At the first visit of each new directory, the other walk opens the original.
fn copy_tree(from: &Path, to: &Path, mut report: impl FnMut(Error)) -> io::Result<()> {
    // A directory of the copy keeps the mode that it is made with until its second visit.
    let options = WalkDirs::options().with_state(Mode::RWXU);
    let mut walk_of_original = options.clone().open(from)?;
    let root = make_root(to)?;
    let of_copy = fstat(&root).map(|stat| (stat.st_dev, stat.st_ino))?;
    let mut walk_of_copy = options.second_visits(true).from_fd(root, to);
    let mut listing = Listing::new();
    loop {
        let mut copy = walk_of_copy.next();
        if let Ok(Some(dir)) = &mut copy {
            if dir.is_second_visit() {
                // Only now, because no entry can be made in a directory without `w`.
                let changed = fs::fchmod(dir.fd(), *dir.state());
                changed.unwrap_or_else(|errno| report(dir.wrap_error(errno)));
                continue;
            }
            // Otherwise the copy gets its parent's mode if the original cannot be opened.
            *dir.state_mut() = Mode::RWXU;
        }
        let (mut original, mut copy) = match (walk_of_original.next(), copy) {
            (Ok(None), Ok(None)) => return Ok(()),
            (Ok(Some(original)), Ok(Some(copy))) => (original, copy),
            (original, copy) => {
                // Each error is about one directory. So the other walk skips one directory.
                original.map_or_else(&mut report, |dir| _ = dir.map(|mut dir| dir.skip_subdirs()));
                copy.map_or_else(&mut report, |dir| _ = dir.map(|mut dir| dir.skip_subdirs()));
                continue;
            }
        };
        if original.path().strip_prefix(from) != copy.path().strip_prefix(to) {
            // One error was about several directories, because their parent was moved away.
            return Err(io::Error::other("a directory was moved while it was copied"));
        }
        original.stat().map_or_else(&mut report, |stat| *copy.state_mut() = mode(&stat));
        original.read_into(&mut listing).unwrap_or_else(&mut report);
        original.skip_subdirs();
        copy.skip_subdirs();
        for entry in &listing {
            match copy_entry(entry, original.fd(), copy.fd(), of_copy) {
                Ok(Ok(true)) => _ = original.enter(entry.name()) && copy.enter(entry.name()),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => report(entry.wrap_error(error)),
                Err(error) if error.is_gone() => {} // removed since it was listed
                Err(error) => report(error),
            }
        }
    }
}

/// Makes a directory at a path and opens it, even if the path leads to another directory by then.
fn make_root(path: &Path) -> io::Result<OwnedFd> {
    let path = path.components().as_path(); // without slashes at the end
    let name = path.file_name().ok_or(Errno::EXIST)?;
    let parent = Path::new(".").join(path.parent().unwrap_or(Path::new("")));
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, parent, flags | OFlags::PATH, Mode::empty())?;
    fs::mkdirat(&parent, name, Mode::RWXU)?;
    Ok(openat(&parent, name, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

fn mode(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO)
}

/// Copies an entry of `from` into `to`, without the contents of a directory. Returns `true` if it
/// is a directory to enter. An outer error is one of opening the original.
fn copy_entry(
    entry: ListedEntry<'_>,
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    of_copy: (u64, u64),
) -> Result<io::Result<bool>, Error> {
    let (name, stat) = (entry.name_cstr(), entry.stat(from)?);
    let file_type = FileType::from_raw_mode(stat.st_mode);
    let made = match file_type {
        FileType::Directory if (stat.st_dev, stat.st_ino) == of_copy => return Ok(Ok(false)),
        FileType::Directory => fs::mkdirat(to, name, Mode::RWXU).map_err(Into::into),
        FileType::Symlink => fs::symlinkat(&entry.read_link(from)?, to, name).map_err(Into::into),
        FileType::RegularFile => {
            let file = entry.open(from, OFlags::RDONLY | OFlags::NONBLOCK)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = openat(to, name, flags, Mode::RUSR | Mode::WUSR);
            made.map_err(Into::into).and_then(|made| copy_file(file.into(), made.into()))
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(made.map(|()| file_type.is_dir()))
}

/// Copies the data of a file without its holes, then its mode.
fn copy_file(mut from: File, mut to: File) -> io::Result<()> {
    let found = fstat(&from)?; // of the open file, because the entry may be another file by now
    if !FileType::from_raw_mode(found.st_mode).is_file() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut end = 0;
    loop {
        let start = match seek(&from, SeekFrom::Data(end)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break to.set_len(from.metadata()?.len())?, // no data follows
            // The file system has no holes.
            Err(Errno::INVAL) if end == 0 => break io::copy(&mut from, &mut to).map(|_| ())?,
            Err(errno) => return Err(errno.into()),
        };
        let hole = seek(&from, SeekFrom::Hole(start))?;
        if !(end..hole).contains(&start) {
            return Err(Errno::IO.into()); // otherwise a faulty file system could keep it looping
        }
        end = hole;
        seek(&from, SeekFrom::Start(start))?;
        seek(&to, SeekFrom::Start(start))?;
        io::copy(&mut (&from).take(end - start), &mut to)?;
    }
    Ok(fs::fchmod(&to, mode(&found))?)
}

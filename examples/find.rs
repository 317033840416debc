//! Walks trees: `Walk` lends directories, and a directory lends its entries. Nothing is allocated for either.

const HELP: &str = "\
Usage: find [PATH]... [-L] [-xdev] [-maxdepth N] [-type C] [-name GLOB] [-print0] [-s] [-j N]

Prints each PATH and the path of everything below it. PATH is . by default. Options and paths may come in any order.

  -L           take a symbolic link for what it leads to, and go below it if that is a directory, but not to one that it is in
  -xdev        do not enter a directory that a file system is mounted on
  -maxdepth N  go no more than N levels below PATH; with 0, print PATH alone
  -type C      print only this type: f file, d directory, l symbolic link, p FIFO, s socket, b or c device
  -name GLOB   print only what has such a name, by bytes: * stands for any bytes, ? for one, [a-z] for one of these, [!a-z] for
               any other one; a backslash takes the next byte as it is
  -print0      print a NUL after each path, not a newline
  -s           sort the entries of each directory by bytes
  -j N         use N threads, and one by default
  --           means nothing before the first PATH, as to other finds; a PATH that begins with - is written ./-...
  --help       print this text

All entries of a directory come before those of the directories in it. With several threads, chance decides the order of the
directories. Of several -type and -name, all must hold. There are no operators: a PATH named ! or ( is written ./! or ./(. On a
terminal, control characters are printed as ?.
Exit status: 0, or 1 for an error.
";

use lendir::rustix::fd::{AsFd, BorrowedFd};
use lendir::rustix::fs::{AtFlags, Stat, fstat, statat};
use lendir::rustix::io::Errno;
use lendir::{Error, FileType, Listing, OFlags, Walk};
use std::ffi::{CStr, OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::iter::successors;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

fn main() -> ExitCode {
    match find(std::env::args_os().skip(1), io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "find: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the arguments ask for, and returns whether it could read all of it. An error is one of `out` or of usage.
pub(crate) fn find(mut args: impl Iterator<Item = OsString>, mut out: impl Write + Send) -> io::Result<bool> {
    let (tests, max_depth, end) = (Vec::new(), usize::MAX, b'\n');
    let mut wanted = Wanted { tests, max_depth, follow: false, sorted: false, end, terminal: false };
    let (mut one_mount, mut threads, mut roots) = (false, 1, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return out.write_all(HELP.as_bytes()).map(|()| true),
            b"--" if roots.is_empty() => {}
            b"-L" => wanted.follow = true,
            b"-xdev" => one_mount = true,
            b"-maxdepth" => {
                wanted.max_depth = number(args.next()).ok_or_else(|| usage("-maxdepth needs a number"))?;
            }
            b"-type" => wanted.tests.push(Test::Type(file_type(args.next())?)),
            b"-name" => wanted.tests.push(Test::Name(glob(args.next())?)),
            b"-print0" => wanted.end = b'\0',
            b"-s" => wanted.sorted = true,
            [b'-', b'j', value @ ..] => {
                // -j2 as well as -j 2
                let value = if value.is_empty() { args.next() } else { Some(OsStr::from_bytes(value).into()) };
                let value = number::<NonZero<u8>>(value).ok_or_else(|| usage("-j needs a number from 1 to 255"))?;
                threads = value.get().into();
            }
            [b'-', _, ..] => return Err(usage(format!("unknown option {arg:?}"))),
            // If ! were a path, the test after it would select the opposite of what is asked for.
            b"!" | b"(" => return Err(usage(format!("unknown operator {arg:?}"))),
            _ => roots.push(arg),
        }
    }
    if roots.is_empty() {
        roots.push(".".into());
    }
    wanted.terminal = wanted.end == b'\n' && io::stdout().is_terminal();

    let out = Mutex::new(out);
    let mut complete = true;
    for root in &roots {
        let mut found = Found::new(&wanted, &out);
        if let Some(walk) = found.root(root.as_ref())? {
            found.print()?;
            let walk = walk.same_mount(one_mount).max_depth(wanted.max_depth).with_state(None);
            for part in walk.spread(threads, |walk| Found::new(&wanted, &out).tree(walk)) {
                complete &= part?;
            }
        }
        complete &= found.finish()?;
    }
    Ok(complete)
}

/// Without a sign, as +1 means more than 1 to other options of a find.
fn number<T: FromStr>(arg: Option<OsString>) -> Option<T> {
    arg?.to_str().filter(|number| !number.starts_with('+'))?.parse().ok()
}

fn file_type(letter: Option<OsString>) -> io::Result<FileType> {
    Ok(match letter.unwrap_or_default().as_bytes() {
        b"f" => FileType::RegularFile,
        b"d" => FileType::Directory,
        b"l" => FileType::Symlink,
        b"p" => FileType::Fifo,
        b"s" => FileType::Socket,
        b"b" => FileType::BlockDevice,
        b"c" => FileType::CharacterDevice,
        _ => return Err(usage("-type needs one of f, d, l, p, s, b, c")),
    })
}

fn glob(glob: Option<OsString>) -> io::Result<OsString> {
    let glob = glob.ok_or_else(|| usage("-name needs a GLOB"))?;
    let bytes = glob.as_bytes();
    for (at, mark) in (0..).zip(bytes.windows(2)).filter(|(_, pair)| matches!(pair, [b'[', b':' | b'.' | b'='])) {
        // As in [[:alpha:]], and not in [.]
        if bytes[..at].contains(&b'[') && bytes[at + 2..].windows(2).any(|end| end == [mark[1], b']']) {
            return Err(usage(format!("-name knows no [: :], [. .] or [= =], as in {glob:?}")));
        }
    }
    Ok(glob)
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

struct Wanted {
    tests: Vec<Test>,
    max_depth: usize,
    follow: bool,
    sorted: bool,
    /// After each path.
    end: u8,
    terminal: bool,
}

enum Test {
    Type(FileType),
    Name(OsString),
}

/// A directory that the walk is in, which -L must not enter again.
struct Ancestor {
    device: u64,
    ino: u64,
    above: Option<Arc<Ancestor>>,
}

impl Drop for Ancestor {
    /// Without recursion, as there may be any number above.
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut last) = above.and_then(Arc::into_inner) {
            above = last.above.take();
        }
    }
}

/// What one thread has found, and has not printed yet.
struct Found<'a, W> {
    wanted: &'a Wanted,
    out: &'a Mutex<W>,
    lines: Vec<u8>,
    complete: bool,
}

impl<'a, W: Write> Found<'a, W> {
    fn new(wanted: &'a Wanted, out: &'a Mutex<W>) -> Self {
        Self { wanted, out, lines: Vec::with_capacity(1 << 17), complete: true }
    }

    /// Finds the root. If it is a directory, everything below it is still to be found.
    fn root(&mut self, root: &Path) -> io::Result<Option<Walk>> {
        let found = match fs::metadata(root) {
            Err(error) if self.wanted.follow && error.kind() != ErrorKind::NotFound => Err(error),
            Ok(metadata) if self.wanted.follow => Ok(metadata),
            _ => fs::symlink_metadata(root),
        };
        let file_type = match found {
            Ok(metadata) => FileType::from_raw_mode(metadata.mode()),
            Err(error) => {
                self.complain(format_args!("{}: {error}", root.display()));
                return Ok(None);
            }
        };
        // The name ends before the last slashes, and that of / is /.
        let path = root.as_os_str().as_bytes();
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(1, |at| at + 1);
        let name = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)..end;
        let name = if name.is_empty() { b"/" } else { &path[name] };
        self.entry([path, b""], name, || Ok(file_type))?;
        if file_type != FileType::Directory || self.wanted.max_depth == 0 {
            return Ok(None);
        }
        // What was a directory is not followed, should it be a link by now.
        let flags = if self.wanted.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        match lendir::open_with(root, flags) {
            Ok(dir) => Ok(Some(Walk::new(dir, root))),
            Err(error) => {
                self.complain(format_args!("{}: {error}", root.display()));
                Ok(None)
            }
        }
    }

    /// Finds everything in the directories that `walk` lends to this thread. Returns whether it could read all of it.
    fn tree(mut self, walk: &mut Walk<Option<Arc<Ancestor>>>) -> io::Result<bool> {
        let (mut listing, mut parent) = (Listing::new(), Vec::new());
        while let Some(mut dir) = walk.next_or(|error| self.complain(error)) {
            if self.wanted.follow {
                let Stat { st_dev: device, st_ino: ino, .. } = fstat(&dir)?;
                let above = dir.state_mut().take();
                *dir.state_mut() = Some(Arc::new(Ancestor { device, ino, above }));
            }
            let ancestors = dir.state().clone();
            parent.clear();
            parent.extend_from_slice(dir.path().as_os_str().as_bytes());
            if !parent.ends_with(b"/") {
                parent.push(b'/');
            }
            if self.wanted.sorted {
                if let Err(error) = dir.read(&mut listing) {
                    self.complain(error); // and print the entries that came before it
                }
                for entry in &listing {
                    let (name, path) = (entry.name(), [&parent, entry.name()]);
                    if !self.is_to_follow(entry.file_type()) {
                        self.entry(path, name, || entry.resolve_file_type(&dir).map_err(Error::into_io_error))?;
                        continue;
                    }
                    match self.target(dir.as_fd(), entry.name_cstr(), path, ancestors.as_ref()) {
                        None => drop(dir.skip_name(name)),
                        Some(file_type) => {
                            self.entry(path, name, || Ok(file_type))?;
                            if file_type == FileType::Directory {
                                dir.follow_name(name);
                            }
                        }
                    }
                }
            } else {
                while let Some(entry) = dir.next_or(|error| self.complain(error)) {
                    let (name, path) = (entry.name(), [&parent, entry.name()]);
                    if !self.is_to_follow(entry.file_type()) {
                        self.entry(path, name, || entry.resolve_file_type().map_err(Error::into_io_error))?;
                        continue;
                    }
                    match self.target(entry.dir(), entry.name_cstr(), path, ancestors.as_ref()) {
                        None => dir.skip_entry(),
                        Some(file_type) => {
                            self.entry(path, name, || Ok(file_type))?;
                            if file_type == FileType::Directory {
                                dir.follow_entry();
                            }
                        }
                    }
                }
            }
        }
        self.finish()
    }

    /// Of a directory -L must know whether the walk is in it already.
    fn is_to_follow(&self, file_type: FileType) -> bool {
        self.wanted.follow && matches!(file_type, FileType::Symlink | FileType::Directory | FileType::Unknown)
    }

    /// The type of what a link leads to, or else of the entry itself. `None` for a loop, which is reported.
    fn target(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        path: [&[u8]; 2],
        ancestors: Option<&Arc<Ancestor>>,
    ) -> Option<FileType> {
        let (error, file_type) = match statat(dir, name, AtFlags::empty()) {
            Ok(stat) => {
                let file_type = FileType::from_raw_mode(stat.st_mode);
                let mut ancestors = successors(ancestors, |below| below.above.as_ref());
                let is_loop = ancestors.any(|above| (above.device, above.ino) == (stat.st_dev, stat.st_ino));
                if file_type != FileType::Directory || !is_loop {
                    return Some(file_type);
                }
                (Errno::LOOP, None)
            }
            Err(Errno::NOENT) => return Some(FileType::Symlink), // to nowhere
            Err(Errno::LOOP) => (Errno::LOOP, None),
            Err(Errno::NOTDIR) => (Errno::NOTDIR, Some(FileType::Symlink)),
            Err(error) => (error, Some(FileType::Unknown)),
        };
        self.complain(format_args!("{}: {error}", String::from_utf8_lossy(&path.concat())));
        file_type
    }

    /// Asks for the type only where it matters, because a file system that does not list types takes a system call for each.
    fn entry(&mut self, path: [&[u8]; 2], name: &[u8], file_type: impl Fn() -> io::Result<FileType>) -> io::Result<()> {
        for test in &self.wanted.tests {
            let holds = match test {
                Test::Name(glob) => Ok(matches(glob.as_bytes(), name)),
                Test::Type(wanted) => file_type().map(|found| found == *wanted),
            };
            match holds {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    self.complain(format_args!("{}: {error}", String::from_utf8_lossy(&path.concat())));
                    return Ok(());
                }
            }
        }
        if self.wanted.terminal {
            self.lines.extend_from_slice(without_controls(&path.concat()).as_bytes());
        } else {
            self.lines.extend_from_slice(path[0]);
            self.lines.extend_from_slice(path[1]);
        }
        self.lines.push(self.wanted.end);
        if self.lines.len() > 1 << 16 { self.print() } else { Ok(()) }
    }

    /// Whole lines at a time, as other threads print too.
    fn print(&mut self) -> io::Result<()> {
        self.out.lock().unwrap().write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<bool> {
        self.print()?;
        self.out.lock().unwrap().flush()?;
        Ok(self.complete)
    }

    /// Reports an error, after which not everything was found.
    fn complain(&mut self, error: impl Display) {
        self.complete = false;
        let _ = writeln!(io::stderr(), "find: {}", without_controls(error.to_string().as_bytes()));
    }
}

/// Whether the whole name matches, byte by byte.
fn matches(mut glob: &[u8], mut name: &[u8]) -> bool {
    // What follows the last star, and where in the name it is to be tried next.
    let mut retry = None;
    loop {
        if let [b'*', rest @ ..] = glob {
            glob = rest;
            retry = Some((rest, name));
        } else if glob.is_empty() && name.is_empty() {
            return true;
        } else if let Some((after, rest)) = name.split_first().and_then(|(byte, rest)| Some((one(glob, *byte)?, rest)))
        {
            (glob, name) = (after, rest);
        } else if let Some((after_star, [_, rest @ ..])) = retry {
            (glob, name) = (after_star, rest);
            retry = Some((glob, name));
        } else {
            return false;
        }
    }
}

/// What is left of the glob after the byte, if it begins with what matches this byte.
fn one(glob: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_match, rest) = match glob {
        [] | [b'\\'] => return None,
        [b'?', rest @ ..] => (true, rest),
        [b'\\', escaped, rest @ ..] => (*escaped == byte, rest),
        [b'[', set @ ..] => one_of(set, byte).unwrap_or((byte == b'[', set)),
        [literal, rest @ ..] => (*literal == byte, rest),
    };
    is_match.then_some(rest)
}

/// Whether the byte is in the set that the glob begins with, after its [, and what is left after its ]. `None` without a ].
fn one_of(set: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (is_negated, mut set) = match set {
        [b'!' | b'^', set @ ..] => (true, set),
        _ => (false, set),
    };
    let mut is_in_set = false;
    for place in 0.. {
        let (low, rest) = match set {
            [b']', rest @ ..] if place > 0 => return Some((is_in_set != is_negated, rest)),
            [b'\\', low, rest @ ..] | [low, rest @ ..] => (low, rest),
            [] => break,
        };
        let (high, rest) = match rest {
            [b'-', b']', ..] => (low, rest),
            [b'-', b'\\', high, rest @ ..] | [b'-', high, rest @ ..] => (high, rest),
            _ => (low, rest),
        };
        is_in_set |= (low..=high).contains(&&byte);
        set = rest;
    }
    None
}

/// Control characters in a name could be commands to a terminal.
fn without_controls(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(char::is_control, "?")
}

//! Walks trees: `Walk` lends directories, and a directory lends its entries. Nothing is allocated for either.

const HELP: &str = "\
Usage: find [-sx0] [-t TYPE] [-n TEXT] [-j THREADS] [--] [PATH]...

Prints PATH and the path of everything below it. PATH is . by default. Symbolic links are not followed.

  -t TYPE     print only this type: f file, d directory, l symbolic link, p FIFO, s socket, b or c device
  -n TEXT     print only what has TEXT in its name
  -s          sort the entries of each directory by bytes
  -x          do not enter a directory that a file system is mounted on
  -0          print a NUL after each path, not a newline
  -j THREADS  use this many threads, and one by default
  --help      print this text

All entries of a directory come before those of the directories in it. With several threads, chance decides the order of the
directories. On a terminal, control characters are printed as ?.
Exit status: 0, or 1 for an error.
";

use lendir::{Error, FileType, Listing, Walk};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

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
    let mut wanted = Wanted { file_type: None, text: OsString::new(), end: b'\n', sorted: false, terminal: false };
    let (mut one_mount, mut threads, mut roots) = (false, 1, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return out.write_all(HELP.as_bytes()).map(|()| true),
            b"--" => roots.extend(args.by_ref()),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b't' => wanted.file_type = Some(file_type(&args.next().unwrap_or_default())?),
                        b'n' => wanted.text = args.next().ok_or_else(|| usage("-n needs a TEXT"))?,
                        b'j' => threads = number(&args.next().unwrap_or_default())?,
                        b's' => wanted.sorted = true,
                        b'x' => one_mount = true,
                        b'0' => wanted.end = b'\0',
                        _ => return Err(usage(format!("unknown option {arg:?}"))),
                    }
                }
            }
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
            let walk = if one_mount { walk.same_mount(true) } else { walk };
            for part in walk.spread(threads, |walk| Found::new(&wanted, &out).tree(walk)) {
                complete &= part?;
            }
        }
        complete &= found.finish()?;
    }
    Ok(complete)
}

fn file_type(letter: &OsStr) -> io::Result<FileType> {
    Ok(match letter.as_bytes() {
        b"f" => FileType::RegularFile,
        b"d" => FileType::Directory,
        b"l" => FileType::Symlink,
        b"p" => FileType::Fifo,
        b"s" => FileType::Socket,
        b"b" => FileType::BlockDevice,
        b"c" => FileType::CharacterDevice,
        _ => return Err(usage("-t needs one of f, d, l, p, s, b, c")),
    })
}

fn number(threads: &OsStr) -> io::Result<usize> {
    let number = threads.to_str().and_then(|text| text.parse::<NonZero<u8>>().ok());
    number.map(|number| number.get().into()).ok_or_else(|| usage("-j needs a number from 1 to 255"))
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

struct Wanted {
    file_type: Option<FileType>,
    text: OsString,
    /// Behind each path.
    end: u8,
    sorted: bool,
    terminal: bool,
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
        let metadata = match fs::symlink_metadata(root) {
            Ok(metadata) => metadata,
            Err(error) => {
                self.complain(format_args!("{}: {error}", root.display()));
                return Ok(None);
            }
        };
        let parent_len = root.parent().map_or(0, |parent| parent.as_os_str().len());
        let (parent, name) = root.as_os_str().as_bytes().split_at(parent_len);
        self.entry(parent, name, || Ok(FileType::from_raw_mode(metadata.mode())))?;
        let walk = metadata.is_dir().then(|| Walk::open(root)).transpose();
        Ok(walk.inspect_err(|error| self.complain(error)).unwrap_or_default())
    }

    /// Finds everything in the directories that `walk` lends to this thread. Returns whether it could read all of it.
    fn tree(mut self, walk: &mut Walk) -> io::Result<bool> {
        let (mut listing, mut parent) = (Listing::new(), Vec::new());
        while let Some(dir) = walk.next().transpose() {
            let mut dir = match dir {
                Ok(dir) => dir,
                Err(error) => {
                    self.complain(error);
                    continue;
                }
            };
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
                    self.entry(&parent, entry.name(), || entry.resolve_file_type(&dir))?;
                }
            } else {
                while let Some(entry) = dir.next().transpose() {
                    match entry {
                        Ok(entry) => self
                            .entry(&parent, entry.name(), || entry.resolve_file_type().map_err(Error::into_io_error))?,
                        Err(error) => self.complain(error),
                    }
                }
            }
        }
        self.finish()
    }

    /// Asks for the type only where it matters, because a file system that does not list types takes a system call for each.
    fn entry(
        &mut self,
        parent: &[u8],
        name: &[u8],
        file_type: impl FnOnce() -> io::Result<FileType>,
    ) -> io::Result<()> {
        let Wanted { text, end, terminal, .. } = self.wanted;
        if !text.is_empty() && !name.windows(text.len()).any(|part| part == text.as_bytes()) {
            return Ok(());
        }
        if let Some(wanted) = self.wanted.file_type {
            match file_type() {
                Ok(found) if found == wanted => {}
                Ok(_) => return Ok(()),
                Err(error) => {
                    let path = [parent, name].concat();
                    self.complain(format_args!("{}: {error}", String::from_utf8_lossy(&path)));
                    return Ok(());
                }
            }
        }
        if *terminal {
            self.lines.extend_from_slice(without_controls(&[parent, name].concat()).as_bytes());
        } else {
            self.lines.extend_from_slice(parent);
            self.lines.extend_from_slice(name);
        }
        self.lines.push(*end);
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

/// Control characters in a name could be commands to a terminal.
fn without_controls(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(char::is_control, "?")
}

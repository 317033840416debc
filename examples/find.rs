//! Walks trees: `Walk` lends directories, and a directory lends its entries. Nothing is allocated for either.

const HELP: &str = "\
Usage: find [-sx0] [-t TYPE] [-n TEXT] [--] [PATH]...

Prints PATH and the path of everything below it. PATH is . by default. Symbolic links are not followed.

  -t TYPE  print only this type: f file, d directory, l symbolic link, p FIFO, s socket, b or c device
  -n TEXT  print only what has TEXT in its name
  -s       sort the entries of each directory by bytes
  -x       do not enter a directory that a file system is mounted on
  -0       print a NUL after each path, not a newline
  --help   print this text

All entries of a directory come before those of the directories in it. On a terminal, control characters are printed as ?.
Exit status: 0, or 1 for an error.
";

use lendir::{FileType, Listing, Walk};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match find(std::env::args_os().skip(1), &mut out).and_then(|complete| out.flush().map(|()| complete)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("find: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the arguments ask for, and returns whether it could read all of it. An error is one of `out` or of usage.
pub(crate) fn find(mut args: impl Iterator<Item = OsString>, out: &mut impl Write) -> io::Result<bool> {
    let mut found = Found { out, file_type: None, text: OsString::new(), end: b'\n', terminal: false, complete: true };
    let (mut sorted, mut one_mount, mut roots) = (false, false, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return found.out.write_all(HELP.as_bytes()).map(|()| true),
            b"--" => roots.extend(args.by_ref()),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b't' => found.file_type = Some(file_type(&args.next().unwrap_or_default())?),
                        b'n' => found.text = args.next().ok_or_else(|| usage("-n needs a TEXT"))?,
                        b's' => sorted = true,
                        b'x' => one_mount = true,
                        b'0' => found.end = b'\0',
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
    found.terminal = found.end == b'\n' && io::stdout().is_terminal();
    for root in &roots {
        tree(root.as_ref(), sorted, one_mount, &mut found)?;
    }
    Ok(found.complete)
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

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

/// Prints the root, and if it is a directory, everything below it.
fn tree(root: &Path, sorted: bool, one_mount: bool, found: &mut Found<impl Write>) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(root) {
        Ok(metadata) => metadata,
        Err(error) => return found.complain(format_args!("{}: {error}", root.display())),
    };
    let parent_len = root.parent().map_or(0, |parent| parent.as_os_str().len());
    let (parent, name) = root.as_os_str().as_bytes().split_at(parent_len);
    found.entry(parent, name, || Ok(FileType::from_raw_mode(metadata.mode())))?;
    if !metadata.is_dir() {
        return Ok(());
    }

    let mut walk = match Walk::open(root) {
        Ok(walk) if one_mount => walk.same_mount(),
        Ok(walk) => walk,
        Err(error) => return found.complain(error),
    };
    let (mut listing, mut parent) = (Listing::new(), Vec::new());
    while let Some(dir) = walk.next().transpose() {
        let mut dir = match dir {
            Ok(dir) => dir,
            Err(error) => {
                found.complain(error)?;
                continue;
            }
        };
        parent.clear();
        parent.extend_from_slice(dir.path().as_os_str().as_bytes());
        if !parent.ends_with(b"/") {
            parent.push(b'/');
        }
        if sorted {
            if let Err(error) = dir.read(&mut listing) {
                found.complain(error)?; // and print the entries that came before it
            }
            for entry in &listing {
                found.entry(&parent, entry.name(), || entry.resolve_file_type(&dir))?;
            }
        } else {
            while let Some(entry) = dir.next().transpose() {
                match entry {
                    Ok(entry) => found.entry(&parent, entry.name(), || entry.resolve_file_type())?,
                    Err(error) => found.complain(error)?,
                }
            }
        }
    }
    Ok(())
}

/// Prints what is found, if it is wanted.
struct Found<W> {
    out: W,
    file_type: Option<FileType>,
    text: OsString,
    end: u8,
    terminal: bool,
    complete: bool,
}

impl<W: Write> Found<W> {
    /// Asks for the type only where it matters, because a file system that does not list types takes a system call for each.
    fn entry(
        &mut self,
        parent: &[u8],
        name: &[u8],
        file_type: impl FnOnce() -> io::Result<FileType>,
    ) -> io::Result<()> {
        if !self.text.is_empty() && !name.windows(self.text.len()).any(|part| part == self.text.as_bytes()) {
            return Ok(());
        }
        if let Some(wanted) = self.file_type {
            match file_type() {
                Ok(found) if found == wanted => {}
                Ok(_) => return Ok(()),
                Err(error) => {
                    let path = [parent, name].concat();
                    return self.complain(format_args!("{}: {error}", String::from_utf8_lossy(&path)));
                }
            }
        }
        if self.terminal {
            self.out.write_all(without_controls(&[parent, name].concat()).as_bytes())?;
        } else {
            self.out.write_all(parent)?;
            self.out.write_all(name)?;
        }
        self.out.write_all(&[self.end])
    }

    /// Reports an error, after which not everything was found.
    fn complain(&mut self, error: impl Display) -> io::Result<()> {
        self.complete = false;
        writeln!(io::stderr(), "find: {}", without_controls(error.to_string().as_bytes()))
    }
}

/// Control characters in a name could be commands to a terminal.
fn without_controls(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(char::is_control, "?")
}

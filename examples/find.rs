//! Walks trees on any number of threads: a walk lends directories, and each directory lends its entries.

const HELP: &str = "\
Usage: find [PATH]... [-xdev] [-maxdepth N] [-type C] [-name GLOB] [-print] [-print0] [-j N]

Prints each PATH and the path of everything below it. PATH is . by default. Options and paths may come in any order.

  -xdev        do not enter a directory that a file system is mounted on
  -maxdepth N  go at most N levels below PATH; 0 prints only PATH
  -type C      print only entries of this type: f file, d directory, l symbolic link
  -name GLOB   print only names that match, as in fnmatch(3): * is any bytes, ? is one byte, [a-z] is one of these
  -print       print a newline after each path, the default; -print0 prints a NUL instead
  -j N         use N threads: 1 by default; 0: one for each core, at least 8
  --help       print this text

All entries of a directory come before those of the directories in it. With several threads, chance decides the order of
directories. Every -type and -name must match: there are no operators. Write ./-x for a PATH of -x. On a terminal, control
characters are printed as ?. Exit status: 0, or 1 for an error.
";

use lendir::{Error, FileType, Walk};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn main() -> ExitCode {
    match find(std::env::args_os().skip(1)) {
        Ok(is_complete) => ExitCode::from(u8::from(!is_complete)),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "find: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs with these arguments, and returns whether it could read everything. The error is one of output or of usage.
fn find(mut args: impl Iterator<Item = OsString>) -> io::Result<bool> {
    let (mut types, mut globs, mut end, mut roots) = (Vec::new(), Vec::new(), b'\n', Vec::new());
    let (mut options, mut threads) = (Walk::options().follow_roots(false), 1);
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| true),
            b"--" if roots.is_empty() => {}
            b"-xdev" => options = options.same_mount(true),
            b"-maxdepth" => options = options.max_depth(number("-maxdepth", b"", &mut args)?),
            b"-type" => types.push(match args.next().unwrap_or_default().as_bytes() {
                b"f" => FileType::RegularFile,
                b"d" => FileType::Directory,
                b"l" => FileType::Symlink,
                _ => return Err(usage("-type needs one of f, d, l")),
            }),
            b"-name" => globs.push(CString::new(args.next().ok_or_else(|| usage("-name needs a GLOB"))?.into_vec())?),
            b"-print" => end = b'\n',
            b"-print0" => end = b'\0',
            [b'-', b'j', value @ ..] => threads = number("-j", value, &mut args)?,
            // If ! were taken for a path, the test after it would select the opposite of what was asked for.
            [b'-', _, ..] | b"!" | b"(" => return Err(usage(format!("unknown option {arg:?}"))),
            _ => roots.push(arg),
        }
    }
    let roots = if roots.is_empty() { vec![".".into()] } else { roots };

    let terminal = end == b'\n' && io::stdout().is_terminal();
    let find = Find { types, globs, end, terminal, failed: false.into() };
    let parts = options.open_all(roots).spread(threads, |walk| {
        let mut lines = Vec::new();
        while let Some(mut dir) = walk.next_ok(|error| find.error(&mut lines, &error)) {
            let path = dir.path().as_os_str().as_bytes();
            if dir.depth() == 0 {
                let name = CString::new(dir.name())?;
                find.entry(&mut lines, [path, b"", b""], &name, || Ok(FileType::Directory));
            }
            let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
            while let Some(entry) = dir.next_ok(|error| find.complain(error)) {
                find.entry(&mut lines, [path, slash, entry.name()], entry.name_cstr(), || entry.file_type());
                // Threads that locked standard output for each line would wait for each other.
                if find.terminal || lines.len() >= 32 << 10 {
                    if let Err(error) = io::stdout().write_all(&lines) {
                        walk.stop();
                        return Err(error);
                    }
                    lines.clear();
                }
            }
        }
        io::stdout().write_all(&lines)
    });
    parts.into_iter().collect::<io::Result<()>>()?;
    io::stdout().flush().map(|()| !find.failed.into_inner())
}

/// The rest of the option, as in -j2, or else the next argument.
fn number(option: &str, value: &[u8], args: &mut impl Iterator<Item = OsString>) -> io::Result<usize> {
    let value = if value.is_empty() { args.next() } else { Some(OsStr::from_bytes(value).into()) };
    value.and_then(|value| value.to_str()?.parse().ok()).ok_or_else(|| usage(format!("{option} needs a number")))
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

struct Find {
    types: Vec<FileType>,
    globs: Vec<CString>,
    end: u8,
    terminal: bool,
    failed: AtomicBool,
}

impl Find {
    /// Queries the type only if it matters: where a file system does not list types, that takes a system call.
    fn entry(&self, lines: &mut Vec<u8>, path: [&[u8]; 3], name: &CStr, kind: impl Fn() -> Result<FileType, Error>) {
        // SAFETY: both strings end in a NUL and live until the call returns. It keeps neither, and is thread-safe.
        let matches = |glob: &CString| unsafe { libc::fnmatch(glob.as_ptr(), name.as_ptr(), 0) == 0 };
        let has_type = |wanted: &FileType| kind().map_err(|error| self.complain(error)) == Ok(*wanted);
        if !(self.globs.iter().all(matches) && self.types.iter().all(has_type)) {
            return;
        }
        if self.terminal {
            // Control characters in a name could be terminal commands.
            lines.extend(String::from_utf8_lossy(&path.concat()).replace(char::is_control, "?").as_bytes());
        } else {
            for part in path {
                lines.extend_from_slice(part);
            }
        }
        lines.push(self.end);
    }

    /// A root that is not a directory is printed, not reported as an error.
    fn error(&self, lines: &mut Vec<u8>, error: &Error) {
        let path = error.path();
        match (error.depth() == 0).then(|| path.symlink_metadata()) {
            Some(Ok(found)) if !found.is_dir() => {
                let name = CString::new(path.file_name().unwrap_or_default().as_bytes()).unwrap_or_default();
                let kind = || Ok(FileType::from_raw_mode(found.mode()));
                self.entry(lines, [path.as_os_str().as_bytes(), b"", b""], &name, kind);
            }
            _ => self.complain(error),
        }
    }

    fn complain(&self, error: impl Display) {
        self.failed.store(true, Relaxed);
        let _ = writeln!(io::stderr(), "find: {error}");
    }
}

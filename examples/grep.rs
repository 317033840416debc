//! Searches files on all cores. Each file is a job, which an idle thread runs, even if all files are in one directory.

const HELP: &str = "\
Usage: grep [-r] [-j N] [--] TEXT [PATH]...

Prints the lines that contain TEXT, in each PATH and in all files below it, after the path of the file. PATH is . by default.

  -r      go below directories, the default
  -j N    use N threads; 0, the default: one for each core, at least 8
  --help  print this text

TEXT is not a pattern: it is compared byte by byte. A symbolic link is followed only as a PATH. A binary file, one with a NUL in
its first 32 KiB, is skipped silently, as by grep -I. With several threads, chance decides the order of files. On a terminal,
control characters are printed as ?. Exit status: 0 if a line was found, 1 if none was, 2 for an error.
";

use lendir::{Error, FileType, Jobs, OFlags, Walk};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn main() -> ExitCode {
    match grep(std::env::args_os().skip(1)) {
        Ok(status) => ExitCode::from(status),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "grep: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs with these arguments, and returns the exit status. The error is one of output or of usage.
fn grep(mut args: impl Iterator<Item = OsString>) -> io::Result<u8> {
    let (mut threads, mut paths) = (0, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| 0),
            b"--" => paths.extend(args.by_ref()),
            b"-r" => {}
            [b'-', b'j', value @ ..] => threads = number("-j", value, &mut args)?,
            [b'-', _, ..] => return Err(usage(format!("unknown option {arg:?}"))),
            _ => paths.push(arg),
        }
    }
    if paths.is_empty() {
        return Err(usage("TEXT is missing"));
    }
    let text = paths.remove(0).into_vec();
    let paths = if paths.is_empty() { vec![".".into()] } else { paths };

    let (found, failed) = (AtomicBool::new(false), AtomicBool::new(false));
    let grep = Grep { text, terminal: io::stdout().is_terminal(), found, failed, written: Ok(()).into() };
    Walk::options().open_all(paths).spread(threads, |walk| {
        let (grep, jobs) = (&grep, walk.jobs());
        while let Some(mut dir) = walk.next_ok(|error| grep.error(jobs, error)) {
            while let Some(entry) = dir.next_ok(|error| grep.complain(error)) {
                let path = entry.path();
                match entry.resolve_file_type() {
                    Ok(FileType::RegularFile) => match entry.open(OFlags::RDONLY) {
                        Ok(file) => jobs.run(move |jobs| grep.search(jobs, file.into(), &path)),
                        Err(error) => grep.complain(error),
                    },
                    Ok(_) => {}
                    Err(error) => grep.complain(error),
                }
            }
        }
    });
    grep.written.into_inner().unwrap()?;
    Ok(if grep.failed.into_inner() { 2 } else { u8::from(!grep.found.into_inner()) })
}

/// The rest of the option, as in -j2, or else the next argument.
fn number(option: &str, value: &[u8], args: &mut impl Iterator<Item = OsString>) -> io::Result<usize> {
    let value = if value.is_empty() { args.next() } else { Some(OsStr::from_bytes(value).into()) };
    value.and_then(|value| value.to_str()?.parse().ok()).ok_or_else(|| usage(format!("{option} needs a number")))
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

struct Grep {
    text: Vec<u8>,
    terminal: bool,
    found: AtomicBool,
    failed: AtomicBool,
    written: Mutex<io::Result<()>>,
}

impl Grep {
    /// A PATH that is not a directory is a file to search.
    fn error<'env>(&'env self, jobs: Jobs<'_, 'env>, error: Error) {
        match File::open(error.path()) {
            Ok(file) if error.depth() == 0 => jobs.run(move |jobs| self.search(jobs, file, error.path())),
            _ => self.complain(error),
        }
    }

    /// Prints the lines of a file at once, because other threads print too. If it cannot, all threads end.
    fn search(&self, jobs: Jobs<'_, '_>, file: File, path: &Path) {
        match self.lines(file, path) {
            Ok(lines) if lines.is_empty() => {}
            Ok(lines) => {
                self.found.store(true, Relaxed);
                if let Err(error) = io::stdout().write_all(&lines) {
                    *self.written.lock().unwrap() = Err(error);
                    jobs.stop();
                }
            }
            Err(error) => self.complain(format_args!("{}: {error}", path.display())),
        }
    }

    /// The lines that contain the text.
    fn lines(&self, file: File, path: &Path) -> io::Result<Vec<u8>> {
        let mut file = BufReader::with_capacity(1 << 15, file);
        let (mut line, mut lines) = (Vec::new(), Vec::new());
        let is_binary = file.fill_buf()?.contains(&b'\0');
        while !is_binary && file.read_until(b'\n', &mut line)? > 0 {
            if self.text.is_empty() || line.windows(self.text.len()).any(|part| part == self.text) {
                lines.extend(self.shown(path.as_os_str().as_bytes()));
                lines.push(b':');
                lines.extend(self.shown(line.strip_suffix(b"\n").unwrap_or(&line)));
                lines.push(b'\n');
            }
            line.clear();
        }
        Ok(lines)
    }

    /// Control characters could be terminal commands.
    fn shown(&self, text: &[u8]) -> Vec<u8> {
        let is_control = |char: char| char.is_control() && char != '\t';
        if self.terminal { String::from_utf8_lossy(text).replace(is_control, "?").into() } else { text.to_vec() }
    }

    fn complain(&self, error: impl Display) {
        self.failed.store(true, Relaxed);
        let _ = writeln!(io::stderr(), "grep: {}", error.to_string().replace(char::is_control, "?"));
    }
}

//! Reads any number of directories into one `Buffer` and one `Listing`, and goes on after an error.

const HELP: &str = "\
Usage: ls [-Aip] [--sort=ORDER] [--] [PATH]...

Lists files, then the entries of directories, one name per line. PATH is . by default.

  -A            list names that begin with a dot too; . and .. are never listed
  -i            print inode numbers
  -p            print a / after the name of a directory
  --sort=ORDER  name      by bytes, the default
                caseless  by bytes, A to Z as a to z
                path      by bytes, a directory as if its name ended in /
                inode     by inode number
                none      in the order of the directory
  --help        print this text

On a terminal, control characters are printed as ?.
Exit status: 0, or 2 for an error.
";

use lendir::{Buffer, Entries, FileType, Listing, Order};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    match ls(std::env::args_os().skip(1), &mut out).and_then(|complete| out.flush().map(|()| complete)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ls: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does what the arguments ask for, and returns whether it could read all of it. An error is one of `out` or of usage.
fn ls(mut args: impl Iterator<Item = OsString>, out: &mut impl Write) -> io::Result<bool> {
    let (mut hidden, mut inodes, mut slashes, mut order, mut paths) = (false, false, false, Order::Bytes, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return out.write_all(HELP.as_bytes()).map(|()| true),
            b"--sort=name" => order = Order::Bytes,
            b"--sort=caseless" => order = Order::AsciiCaseless,
            b"--sort=path" => order = Order::Path,
            b"--sort=inode" => order = Order::Inode,
            b"--sort=none" => order = Order::Directory,
            b"--" => paths.extend(args.by_ref()),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'A' => hidden = true,
                        b'i' => inodes = true,
                        b'p' => slashes = true,
                        _ => return Err(io::Error::other(format!("unknown option {arg:?}; try --help"))),
                    }
                }
            }
            _ => paths.push(arg),
        }
    }
    if paths.is_empty() {
        paths.push(".".into());
    }
    if order != Order::Directory {
        paths.sort();
    }

    let terminal = io::stdout().is_terminal();
    let (mut complete, mut dirs, mut separator) = (true, Vec::new(), "");
    for path in &paths {
        // A link stands for the directory that it leads to; one that leads nowhere is a file.
        match fs::metadata(path).or_else(|_| fs::symlink_metadata(path)) {
            Ok(metadata) if metadata.is_dir() => dirs.push(path),
            Ok(metadata) => {
                write_name(out, terminal, inodes.then_some(metadata.ino()), path, "\n")?;
                separator = "\n";
            }
            Err(error) => complete = complain(path, error),
        }
    }

    // After the first directory, no other allocates unless it is larger.
    let (mut buffer, mut listing) = (Buffer::new(), Listing::with_order(order));
    for path in dirs {
        let dir = match lendir::open(path.as_os_str()) {
            Ok(dir) => dir,
            Err(error) => {
                complete = complain(path, error);
                continue;
            }
        };
        if paths.len() > 1 {
            out.write_all(separator.as_bytes())?;
            write_name(out, terminal, None, path, ":\n")?;
            separator = "\n";
        }
        if let Err(error) = listing.read(Entries::new(&dir, &mut buffer)) {
            complete = complain(path, error); // and list the entries that came before it
        }
        for entry in listing.iter().filter(|entry| hidden || !entry.name().starts_with(b".")) {
            let mut end = "\n";
            if slashes {
                match entry.resolve_file_type(&dir) {
                    Ok(FileType::Directory) => end = "/\n",
                    Ok(_) => {}
                    Err(error) => complete = complain(Path::new(path).join(entry.name_os()), error),
                }
            }
            write_name(out, terminal, inodes.then_some(entry.ino()), entry.name_os(), end)?;
        }
    }
    Ok(complete)
}

/// On a terminal, control characters in a name could be commands to it.
fn write_name(out: &mut impl Write, terminal: bool, ino: Option<u64>, name: &OsStr, end: &str) -> io::Result<()> {
    if let Some(ino) = ino {
        write!(out, "{ino} ")?;
    }
    if terminal {
        out.write_all(name.to_string_lossy().replace(char::is_control, "?").as_bytes())?;
    } else {
        out.write_all(name.as_bytes())?;
    }
    out.write_all(end.as_bytes())
}

/// Reports an error, after which the listing is not complete.
fn complain(path: impl AsRef<OsStr>, error: impl Display) -> bool {
    let path = path.as_ref().to_string_lossy().replace(char::is_control, "?");
    let _ = writeln!(io::stderr(), "ls: {path}: {error}");
    false
}

//! Reads any number of directories into one `Buffer` and one `Listing`, and goes on after an error.

const HELP: &str = "\
Usage: ls [-1Ailp] [--sort=ORDER] [--] [PATH]...

Lists files, then the entries of directories, one name per line. PATH is . by default.

  -A            list names that begin with a dot too; . and .. are never listed
  -i            print inode numbers
  -l            print mode, links, numbers of owner and group, size, time of modification in UTC, and where a link leads
  -p            print a / after the name of a directory
  -1            one name per line, as always
  --sort=ORDER  name      by bytes, the default
                caseless  by bytes, A to Z as a to z
                path      by bytes, a directory as if its name ended in /
                inode     by inode number, as the directory lists it
                none      in the order of the directory
  --help        print this text

On a terminal, control characters are printed as ?.
Exit status: 0, 1 if something of an entry is not known, or 2 for a PATH that cannot be read and for wrong usage.
";

use lendir::rustix::fd::AsFd;
use lendir::rustix::fs::{AtFlags, CWD, Statx, StatxFlags, readlinkat, statx};
use lendir::rustix::path::Arg;
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
    match ls(std::env::args_os().skip(1), &mut out).and_then(|status| out.flush().map(|()| status)) {
        Ok(status) => ExitCode::from(status),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ls: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does what the arguments ask for, and returns the exit status. An error is one of `out` or of usage.
fn ls(mut args: impl Iterator<Item = OsString>, out: &mut impl Write) -> io::Result<u8> {
    let (mut options, mut order, mut paths) = (Vec::new(), Order::Bytes, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return out.write_all(HELP.as_bytes()).map(|()| 0),
            b"--sort" => order = self::order(args.next().unwrap_or_default().as_bytes())?,
            long if long.starts_with(b"--sort=") => order = self::order(&long["--sort=".len()..])?,
            b"--" => paths.extend(args.by_ref()),
            [b'-', b'-', ..] => return Err(usage(format!("unknown option {arg:?}"))),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'A' | b'i' | b'l' | b'p' | b'1' => options.push(*letter),
                        _ => return Err(usage(format!("unknown option -{}", letter.escape_ascii()))),
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
    let mut ls = Ls { out, options, terminal: io::stdout().is_terminal(), status: 0 };
    ls.list(&paths, order)?;
    Ok(ls.status)
}

fn order(name: &[u8]) -> io::Result<Order> {
    Ok(match name {
        b"name" => Order::Bytes,
        b"caseless" => Order::AsciiCaseless,
        b"path" => Order::Path,
        b"inode" => Order::Inode,
        b"none" => Order::Directory,
        _ => return Err(usage("--sort needs one of name, caseless, path, inode, none")),
    })
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

/// No link is followed, nothing is mounted.
const ITSELF: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::NO_AUTOMOUNT);

struct Ls<'o, W> {
    out: &'o mut W,
    /// Their letters.
    options: Vec<u8>,
    terminal: bool,
    status: u8,
}

impl<W: Write> Ls<'_, W> {
    fn list(&mut self, paths: &[OsString], order: Order) -> io::Result<()> {
        let (mut rows, mut dirs, mut separator) = (Vec::new(), Vec::new(), "");
        for path in paths {
            // A link stands for the directory that it leads to; one that leads nowhere is a file, and with -l each is one.
            let linked = if self.has(b'l') { fs::symlink_metadata(path) } else { fs::metadata(path) };
            match linked.or_else(|_| fs::symlink_metadata(path)) {
                Ok(metadata) if metadata.is_dir() => dirs.push(path),
                Ok(_) if self.has(b'l') => rows.push(self.row(CWD, path.as_os_str(), path, FileType::Unknown)),
                Ok(metadata) => {
                    let ino = fs::symlink_metadata(path).map_or(metadata.ino(), |link| link.ino());
                    self.print(ino, path, "\n")?;
                    separator = "\n";
                }
                Err(error) => self.complain(2, path, error),
            }
        }
        if !rows.is_empty() {
            self.print_rows(&mut rows)?;
            separator = "\n";
        }

        // After the first directory, no other allocates unless it is larger.
        let (mut buffer, mut listing) = (Buffer::new(), Listing::with_order(order));
        for path in dirs {
            let dir = match lendir::open(path.as_os_str()) {
                Ok(dir) => dir,
                Err(error) => {
                    self.complain(2, path, error);
                    continue;
                }
            };
            if paths.len() > 1 {
                self.out.write_all(separator.as_bytes())?;
                self.write_name(path)?;
                self.out.write_all(b":\n")?;
                separator = "\n";
            }
            if let Err(error) = listing.read(Entries::new(&dir, &mut buffer)) {
                self.complain(2, path, error); // and list the entries that came before it
            }
            let all = self.has(b'A');
            for entry in listing.iter().filter(|entry| all || !entry.name().starts_with(b".")) {
                if self.has(b'l') {
                    let path = Path::new(path).join(entry.name_os());
                    let mut row = self.row(&dir, entry.name_cstr(), path.as_os_str(), entry.file_type());
                    row.name = entry.name().to_vec();
                    rows.push(row);
                    continue;
                }
                let file_type = if self.has(b'p') { entry.resolve_file_type(&dir) } else { Ok(FileType::Unknown) };
                let end = if matches!(file_type, Ok(FileType::Directory)) { "/\n" } else { "\n" };
                if let Err(error) = file_type {
                    self.complain(1, Path::new(path).join(entry.name_os()), error.io_error());
                }
                // The directory itself lists the inode that is hidden where a file system is mounted.
                let stat = self.has(b'i').then(|| statx(&dir, entry.name_cstr(), ITSELF, StatxFlags::INO));
                let ino = stat.and_then(Result::ok).map_or(entry.ino(), |stat| stat.stx_ino);
                self.print(ino, entry.name_os(), end)?;
            }
            if self.has(b'l') {
                let blocks: u64 = rows.iter().map(|row| row.blocks).sum();
                writeln!(self.out, "total {}", blocks.div_ceil(2))?; // a block has 512 bytes
                self.print_rows(&mut rows)?;
            }
        }
        Ok(())
    }

    fn has(&self, option: u8) -> bool {
        self.options.contains(&option)
    }

    fn print(&mut self, ino: u64, name: &OsStr, end: &str) -> io::Result<()> {
        if self.has(b'i') {
            write!(self.out, "{ino} ")?;
        }
        self.write_name(name)?;
        self.out.write_all(end.as_bytes())
    }

    /// On a terminal, control characters in a name could be commands to it.
    fn write_name(&mut self, name: &OsStr) -> io::Result<()> {
        if self.terminal {
            self.out.write_all(name.to_string_lossy().replace(char::is_control, "?").as_bytes())
        } else {
            self.out.write_all(name.as_bytes())
        }
    }

    /// What -l prints of a file. The name is `path`, and the directory's entry gives its type if the file cannot be asked.
    fn row(&mut self, dir: impl AsFd, name: impl Arg + Copy, path: &OsStr, file_type: FileType) -> Row {
        let stat = statx(&dir, name, ITSELF, StatxFlags::BASIC_STATS);
        if let Err(error) = stat {
            self.complain(1, path, error);
        }
        let stat = stat.ok();
        let file_type = stat.map_or(file_type, |stat| FileType::from_raw_mode(stat.stx_mode.into()));
        let mut columns = Row::columns(stat.as_ref(), file_type);
        if !self.has(b'i') {
            columns.remove(0);
        }
        let mut end = Vec::new();
        if file_type == FileType::Symlink {
            match readlinkat(&dir, name, Vec::new()) {
                Ok(target) => end = [b" -> ", target.as_bytes()].concat(),
                Err(error) => self.complain(1, path, error),
            }
        } else if file_type == FileType::Directory && self.has(b'p') {
            end.push(b'/');
        }
        Row { columns, name: path.as_bytes().into(), end, blocks: stat.map_or(0, |stat| stat.stx_blocks) }
    }

    /// Each column as wide as its longest text.
    fn print_rows(&mut self, rows: &mut Vec<Row>) -> io::Result<()> {
        let width = |column: usize| rows.iter().filter_map(|row| Some(row.columns.get(column)?.len())).max();
        let widths: Vec<_> = (0..).map_while(width).collect();
        for row in rows.drain(..) {
            for (text, width) in row.columns.iter().zip(&widths) {
                write!(self.out, "{text:>width$} ")?;
            }
            self.write_name(OsStr::from_bytes(&[row.name, row.end].concat()))?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Reports an error, after which the listing is not complete.
    fn complain(&mut self, status: u8, path: impl AsRef<OsStr>, error: impl Display) {
        self.status = self.status.max(status);
        let path = path.as_ref().to_string_lossy().replace(char::is_control, "?");
        let _ = writeln!(io::stderr(), "ls: {path}: {error}");
    }
}

/// One line of -l.
struct Row {
    columns: Vec<String>,
    name: Vec<u8>,
    end: Vec<u8>,
    blocks: u64,
}

impl Row {
    /// Inode number, mode, links, owner, group, size, and time.
    fn columns(stat: Option<&Statx>, file_type: FileType) -> Vec<String> {
        let Some(stat) = stat else {
            let unknown = ["?", &mode(file_type, None), "?", "?", "?", "?", "               ?"];
            return unknown.map(String::from).into();
        };
        let size = match file_type {
            FileType::BlockDevice | FileType::CharacterDevice => {
                format!("{}, {:>3}", stat.stx_rdev_major, stat.stx_rdev_minor)
            }
            _ => stat.stx_size.to_string(),
        };
        vec![
            stat.stx_ino.to_string(),
            mode(file_type, Some(stat.stx_mode)),
            stat.stx_nlink.to_string(),
            stat.stx_uid.to_string(),
            stat.stx_gid.to_string(),
            size,
            time(stat.stx_mtime.tv_sec),
        ]
    }
}

/// As in `drwxr-xr-t`.
fn mode(file_type: FileType, mode: Option<u16>) -> String {
    let first = match file_type {
        FileType::RegularFile => '-',
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::Socket => 's',
        FileType::BlockDevice => 'b',
        FileType::CharacterDevice => 'c',
        FileType::Unknown => '?',
    };
    let Some(mode) = mode else { return format!("{first}?????????") };
    let permissions = "rwxrwxrwx".chars().zip(0..).map(|(letter, bit)| {
        let special = match bit {
            2 if mode & 0o4000 != 0 => 's',
            5 if mode & 0o2000 != 0 => 's',
            8 if mode & 0o1000 != 0 => 't',
            _ => '\0',
        };
        match (mode & (0o400 >> bit) != 0, special) {
            (true, '\0') => letter,
            (false, '\0') => '-',
            (true, special) => special,
            (false, special) => special.to_ascii_uppercase(),
        }
    });
    [first].into_iter().chain(permissions).collect()
}

/// As in `2024-02-29 23:59`.
fn time(seconds: i64) -> String {
    let (days, minutes) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400) / 60);
    // Years begin on the first of March, so a leap day is the last day of its year. 400 of them have 146,097 days.
    let days = days + 719_468; // from 0000-03-01
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March, five months have 153 days, and then again.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    format!("{:04}-{month:02}-{day:02} {:02}:{:02}", cycle * 400 + year, minutes / 60, minutes % 60)
}

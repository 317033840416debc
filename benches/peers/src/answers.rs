//! Answers the questions of `monitors`. Each way finds the processes or files in question below a
//! directory, and writes a line for each.

use lendir::{Buffer, Entries};
use procfs::process::{FDTarget, all_processes};
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, openat, readlinkat_raw};
use rustix::io::read;
use rustix::path::Arg;
use std::fmt::Display;
use std::fs::{self, DirEntry};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use walkdir::WalkDir;

const WANTED: &str = "idle-3";

pub fn threads_by_std(proc: &Path, lines: &mut Vec<u8>) {
    for (pid, process) in numbers_by_std(proc) {
        for (tid, thread) in numbers_by_std(&process.path().join("task")) {
            let Ok(comm) = fs::read_to_string(thread.path().join("comm")) else { continue };
            if comm.trim_end_matches('\n') == WANTED {
                write_line(lines, format_args!("{pid} {tid}"));
            }
        }
    }
}

/// Answers in the same way as `pgrep -w` of uutils, which reads `/proc/PID` to find `task`, and the
/// name in `stat`.
pub fn threads_by_walkdir(proc: &Path, lines: &mut Vec<u8>) {
    let is_number = |name: &[u8]| name.iter().all(u8::is_ascii_digit);
    let walk = WalkDir::new(proc).min_depth(1).max_depth(3).into_iter().filter_entry(|entry| {
        let name = entry.file_name().as_bytes();
        if entry.depth() == 2 { name == b"task" } else { is_number(name) }
    });
    for thread in walk.flatten().filter(|entry| entry.depth() == 3) {
        let path = thread.path();
        let Ok(stat) = fs::read_to_string(path.join("stat")) else { continue };
        let name =
            stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map(|(name, _)| name);
        if name == Some(WANTED) {
            let mut above = path.iter().rev();
            let (tid, pid) = (
                above.next().expect("BUG: above depth 3"),
                above.nth(1).expect("BUG: above depth 3"),
            );
            write_line(lines, format_args!("{} {}", pid.display(), tid.display()));
        }
    }
}

pub fn threads_by_procfs(_: &Path, lines: &mut Vec<u8>) {
    for process in all_processes().expect("cannot read /proc").flatten() {
        for thread in process.tasks().into_iter().flatten().flatten() {
            if thread.stat().is_ok_and(|stat| stat.comm == WANTED) {
                write_line(lines, format_args!("{} {}", process.pid(), thread.tid));
            }
        }
    }
}

pub fn threads_by_lendir(proc: &Path, lines: &mut Vec<u8>) {
    let proc = lendir::open(proc).expect("cannot read /proc");
    let (mut buffer, mut path, mut comm) = (Buffer::new(), Vec::new(), [0; 64]);
    each_process(&proc, |pid, name| {
        let Ok(tasks) = lendir::openat(&proc, joined(&mut path, name, b"/task")) else { return };
        let mut threads = Entries::new(tasks.as_fd(), &mut buffer);
        while let Ok(Some(thread)) = threads.next() {
            let Ok(comm) = read_at(&tasks, joined(&mut path, thread.name(), b"/comm"), &mut comm)
            else {
                continue;
            };
            if comm.strip_suffix(b"\n") == Some(WANTED.as_bytes()) {
                write_line(lines, format_args!("{pid} {}", thread.file_name().display()));
            }
        }
    });
}

pub fn descriptors_by_std(proc: &Path, lines: &mut Vec<u8>) {
    for (pid, process) in numbers_by_std(proc) {
        for (fd, entry) in numbers_by_std(&process.path().join("fd")) {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            write_line(lines, format_args!("{pid} {fd} {}", target.display()));
        }
    }
}

pub fn descriptors_by_procfs(_: &Path, lines: &mut Vec<u8>) {
    for process in all_processes().expect("cannot read /proc").flatten() {
        let pid = process.pid();
        for descriptor in process.fd().into_iter().flatten().flatten() {
            let fd = descriptor.fd;
            match descriptor.target {
                FDTarget::Path(path) => {
                    write_line(lines, format_args!("{pid} {fd} {}", path.display()));
                }
                FDTarget::Pipe(inode) => {
                    write_line(lines, format_args!("{pid} {fd} pipe:[{inode}]"));
                }
                other => write_line(lines, format_args!("{pid} {fd} {other:?}")),
            }
        }
    }
}

pub fn descriptors_by_lendir(proc: &Path, lines: &mut Vec<u8>) {
    let proc = lendir::open(proc).expect("cannot read /proc");
    let (mut buffer, mut path, mut target) = (Buffer::new(), Vec::new(), [0; 4096]);
    each_process(&proc, |pid, name| {
        let Ok(dir) = lendir::openat(&proc, joined(&mut path, name, b"/fd")) else { return };
        let mut descriptors = Entries::new(dir.as_fd(), &mut buffer);
        while let Ok(Some(fd)) = descriptors.next() {
            let Ok(len) = readlinkat_raw(fd.dir_fd(), fd.name_cstr(), &mut target) else {
                continue;
            };
            write!(lines, "{pid} {} ", fd.file_name().display())
                .expect("BUG: writing to a `Vec` failed");
            lines.extend_from_slice(&target[..len]);
            lines.push(b'\n');
        }
    });
}

pub fn stat_by_std(proc: &Path, lines: &mut Vec<u8>) {
    for (pid, process) in numbers_by_std(proc) {
        if let Ok(stat) = fs::read_to_string(process.path().join("stat")) {
            write_stat(lines, pid, stat.as_bytes());
        }
    }
}

pub fn stat_by_procfs(_: &Path, lines: &mut Vec<u8>) {
    for process in all_processes().expect("cannot read /proc").flatten() {
        if let Ok(stat) = process.stat() {
            write_line(lines, format_args!("{} {} {}", stat.pid, stat.starttime, stat.comm));
        }
    }
}

pub fn stat_by_lendir(proc: &Path, lines: &mut Vec<u8>) {
    let proc = lendir::open(proc).expect("cannot read /proc");
    let (mut path, mut stat) = (Vec::new(), [0; 4096]);
    each_process(&proc, |pid, name| {
        if let Ok(stat) = read_at(&proc, joined(&mut path, name, b"/stat"), &mut stat) {
            write_stat(lines, pid, stat);
        }
    });
}

/// Writes the start time of a process and its name, which can contain any byte, even a parenthesis.
fn write_stat(lines: &mut Vec<u8>, pid: u32, stat: &[u8]) {
    let (Some(begin), Some(end)) =
        (stat.iter().position(|byte| *byte == b'('), stat.iter().rposition(|byte| *byte == b')'))
    else {
        return;
    };
    let started = stat[end..].split(|byte| *byte == b' ').nth(20).unwrap_or_default();
    write!(lines, "{pid} ").expect("BUG: writing to a `Vec` failed");
    lines.extend_from_slice(started);
    lines.push(b' ');
    lines.extend_from_slice(&stat[begin + 1..end]);
    lines.push(b'\n');
}

const PROCS: &str = "cgroup.procs";

pub fn cgroups_by_std(cgroup: &Path, lines: &mut Vec<u8>) {
    if let Ok(pids) = fs::read_to_string(cgroup.join(PROCS)) {
        lines.extend_from_slice(pids.as_bytes());
    }
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            cgroups_by_std(&entry.path(), lines);
        }
    }
}

pub fn cgroups_by_walkdir(root: &Path, lines: &mut Vec<u8>) {
    for entry in WalkDir::new(root).into_iter().flatten().filter(|entry| entry.file_type().is_dir())
    {
        if let Ok(pids) = fs::read_to_string(entry.path().join(PROCS)) {
            lines.extend_from_slice(pids.as_bytes());
        }
    }
}

pub fn cgroups_by_lendir(root: &Path, lines: &mut Vec<u8>) {
    let mut walk = lendir::walk_dirs(root).expect("cannot open the root");
    while let Some(cgroup) = walk.next().transpose() {
        let Ok(cgroup) = cgroup else { continue };
        let Ok(procs) = openat(cgroup.fd(), PROCS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        else {
            continue;
        };
        // To the end, because one read returns only some PIDs.
        while {
            lines.reserve(4096);
            read(&procs, spare_capacity(lines)).is_ok_and(|len| len > 0)
        } {}
    }
}

fn write_line(lines: &mut Vec<u8>, line: impl Display) {
    writeln!(lines, "{line}").expect("BUG: writing to a `Vec` failed");
}

/// Returns the entries of a directory whose names are numbers, or none if the process is gone.
fn numbers_by_std(dir: &Path) -> impl Iterator<Item = (u32, DirEntry)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry)))
}

/// Calls `take` for each process with its PID, as a number and as bytes.
fn each_process(proc: &OwnedFd, mut take: impl FnMut(u32, &[u8])) {
    let mut buffer = Buffer::new();
    let mut processes = Entries::new(proc.as_fd(), &mut buffer);
    while let Some(process) = processes.next().expect("cannot read the directory") {
        if let Some(pid) = process.numeric_name() {
            take(pid, process.name());
        }
    }
}

/// Joins `name` and `rest` in memory that is reused.
fn joined<'m>(memory: &'m mut Vec<u8>, name: &[u8], rest: &[u8]) -> &'m [u8] {
    memory.clear();
    memory.extend_from_slice(name);
    memory.extend_from_slice(rest);
    memory
}

/// Returns the bytes of one `read`. These are the whole file if procfs writes it at once and it
/// fits into `memory`.
fn read_at(dir: impl AsFd, path: impl Arg, memory: &mut [u8]) -> rustix::io::Result<&[u8]> {
    let file = openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let len = read(file, &mut *memory)?;
    Ok(&memory[..len])
}

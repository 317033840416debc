//! The example `ls`, as a program: against `LC_ALL=C ls`.

use crate::fixture::{example, make_file, numbered, run};
use crate::machine::{can_trace, skip};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

fn ls(dir: &Path, args: &[&str]) -> Output {
    run(example("ls").current_dir(dir).args(args))
}

fn system_ls(dir: &Path, args: &[&str]) -> Output {
    run(Command::new("ls").current_dir(dir).env("LC_ALL", "C").args(args))
}

/// Where both print the same to the last byte and agree that there was, or was not, trouble.
fn assert_same(dir: &Path, ours: &[&str], theirs: &[&str], paths: &[&str]) {
    let ours = ls(dir, &[ours, paths].concat());
    let theirs = system_ls(dir, &[theirs, paths].concat());
    assert_eq!(ours.stdout.escape_ascii().to_string(), theirs.stdout.escape_ascii().to_string(), "{paths:?}");
    assert_eq!(ours.status.code(), theirs.status.code(), "{paths:?}");
    assert_eq!(ours.stderr.is_empty(), theirs.stderr.is_empty(), "{paths:?}");
}

const SAME: [(&[&str], &[&str]); 4] =
    [(&[], &["-1A"]), (&["-F"], &["-1AF"]), (&["-f"], &["-1AU"]), (&["-fF"], &["-1AUF"])];

fn make_mode(path: &Path, mode: u32) {
    make_file(path);
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Every type that needs no privilege, names of many lengths and bytes.
fn mixed() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path();
    for name in ["directory", "Directory", ".hidden", "-f"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    for (name, target) in [("link", "nowhere"), ("link to a directory", "directory"), ("link to a program", "u+x")] {
        symlink(target, dir.join(name)).unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    drop(UnixListener::bind(dir.join("socket")).unwrap());
    for (name, mode) in [("plain", 0o644), ("u+x", 0o744), ("g+x", 0o610), ("o+x", 0o001), ("none", 0o000)] {
        make_mode(&dir.join(name), mode);
    }
    let letters = ["a", "A", "ab", "aB", "Ab", "b", "B", "_", "[", "~", " ", "\t", "\n", "é"];
    let odd: [&[u8]; 5] = [b"\xff", b"\xff\xfe", b"\x01", b"\x80 \xc3", b"two\nlines"];
    for name in letters.iter().map(|name| name.as_bytes()).chain(odd) {
        make_file(&dir.join(OsStr::from_bytes(name)));
    }
    for len in [7, 8, 9, 16, 255] {
        make_file(&dir.join("x".repeat(len)));
    }
    root
}

fn system_has_ls(test: &str) -> bool {
    let found = Command::new("ls").arg("-1AUF").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        skip(test, "an ls with -1AUF");
    }
    found
}

#[test]
fn agrees_with_the_system_on_every_type_and_name() {
    if !system_has_ls("agrees_with_the_system_on_every_type_and_name") {
        return;
    }
    let root = mixed();
    let many = numbered(3000);
    for (ours, theirs) in SAME {
        for dir in [root.path(), many.path(), Path::new("/dev"), Path::new("/sys"), Path::new("/proc/self/ns")] {
            assert_same(dir, ours, theirs, &[]);
            assert_same(Path::new("/"), ours, theirs, &[dir.to_str().unwrap()]);
        }
    }
}

#[test]
fn agrees_with_the_system_on_several_directories() {
    if !system_has_ls("agrees_with_the_system_on_several_directories") {
        return;
    }
    let root = mixed();
    for empty in ["empty", "vacant"] {
        fs::create_dir(root.path().join(empty)).unwrap();
    }
    make_mode(&root.path().join("directory/program"), 0o755);
    make_mode(&root.path().join("Directory/text"), 0o644);
    for (ours, theirs) in SAME {
        for paths in [
            &["directory", "Directory"][..],
            &["vacant", "directory/", "empty", "./Directory", "."],
            &["empty", "vacant"],
            &["empty"],
            &["directory", "directory"],
            &["directory", "missing"],
            &["missing", "empty"],
            &["missing", "amiss"],
            &["missing"],
        ] {
            assert_same(root.path(), ours, theirs, paths);
        }
    }
}

#[test]
fn inode_order_has_the_numbers_and_ties_by_name() {
    let root = tempfile::tempdir().unwrap();
    for name in ["c", "a", "d", "b"] {
        make_file(&root.path().join(name));
    }
    for (name, original) in [("0", "d"), ("e", "d"), ("C", "c")] {
        fs::hard_link(root.path().join(original), root.path().join(name)).unwrap();
    }
    let mut expected: Vec<(u64, Vec<u8>)> = fs::read_dir(root.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.ino(), entry.file_name().into_encoded_bytes()))
        .collect();
    let width = expected.iter().map(|(ino, _)| ino.to_string().len()).max().unwrap();
    let mut check = |args: &[&str], sort: fn(&mut Vec<(u64, Vec<u8>)>)| {
        sort(&mut expected);
        let lines = expected.iter().flat_map(|(ino, name)| [format!("{ino:width$} ").as_bytes(), name, b"\n"].concat());
        let output = ls(root.path(), args);
        assert!(output.status.success());
        assert!(output.stdout.into_iter().eq(lines), "{args:?}");
    };
    check(&["-if"], |_| {});
    check(&["-i"], |all| all.sort());
    check(&["-fi"], |all| all.sort());
    check(&["-i", "-c"], |all| all.sort_by_key(|(_, name)| (name.to_ascii_lowercase(), name.clone())));
}

#[test]
fn caseless_order_ends_in_bytes() {
    let root = tempfile::tempdir().unwrap();
    for name in ["b", "B", "aB", "AB", "ab", "Ab", "_", "[", "~", "C"] {
        make_file(&root.path().join(name));
    }
    let output = ls(root.path(), &["-c"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "[\n_\nAB\nAb\naB\nab\nB\nb\nC\n~\n");
}

/// Opened, but read with an error: `EINVAL` from the `net` of a process that has ended and waits to be reaped.
#[test]
fn an_error_of_the_reading_leaves_the_others() {
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    child.kill().unwrap();
    let zombie = format!("/proc/{}/net", child.id());
    let root = mixed();
    let is_dead = || fs::read_dir(&zombie).is_ok_and(|mut entries| entries.next().is_some_and(|entry| entry.is_err()));
    let waited = |_| {
        std::thread::sleep(Duration::from_millis(1));
        is_dead()
    };
    if (0..1000).any(waited) {
        for paths in [&[&*zombie][..], &[&*zombie, "directory", "missing"], &[".", &*zombie]] {
            if system_has_ls("an_error_of_the_reading_leaves_the_others") {
                assert_same(root.path(), &[], &["-1A"], paths);
            }
            let output = ls(root.path(), paths);
            assert_eq!(output.status.code(), Some(2));
            let report = String::from_utf8(output.stderr).unwrap();
            assert!(report.contains(&format!("ls: {zombie}: Invalid argument")), "{report}");
        }
    } else {
        skip("an_error_of_the_reading_leaves_the_others", "a zombie without a `net`");
    }
    child.wait().unwrap();
}

/// The second `getdents64` fails, injected by strace: the entries of the first are listed and the error is reported.
#[test]
fn what_came_before_an_error_is_listed() {
    const TEST: &str = "what_came_before_an_error_is_listed";
    if !can_trace(TEST) {
        return;
    }
    let root = numbered(3000);
    let path = root.path().to_str().unwrap();
    let all = ls(root.path(), &["-f"]).stdout;
    let interrupted = |args: &[&str]| {
        let mut strace = Command::new("strace");
        strace.args(["-qq", "--output=/dev/null", "--trace=getdents64", "--inject=getdents64:error=EIO:when=2"]);
        let output = run(strace.arg(example("ls").get_program()).args(args).arg(path));
        assert_eq!(output.status.code(), Some(2));
        let report = String::from_utf8(output.stderr).unwrap();
        assert!(
            report.starts_with(&format!("ls: {path}: Input/output error")) && report.lines().count() == 1,
            "{report}"
        );
        output.stdout
    };
    let before = interrupted(&["-f"]);
    assert!(!before.is_empty() && before.len() < all.len() && all.starts_with(&before));
    let mut lines: Vec<_> = before.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    assert_eq!(interrupted(&[]), lines.concat());
}

#[test]
fn what_cannot_be_opened_is_reported_with_its_path() {
    let root = mixed();
    fs::create_dir(root.path().join("locked")).unwrap();
    fs::set_permissions(root.path().join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    for path in ["missing", "plain", "link", "fifo", "locked"] {
        let mut ls = example("ls");
        ls.current_dir(root.path()).args(["directory", path, "link to a directory"]);
        let output = run(as_anybody(&mut ls));
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert_eq!(output.stdout, b"directory:\n\nlink to a directory:\n", "{path}");
        let report = String::from_utf8(output.stderr).unwrap();
        assert!(report.starts_with(&format!("ls: {path}: ")) && report.lines().count() == 1, "{report}");
    }
}

/// Even root is refused what permissions refuse: without the capabilities that override them.
fn as_anybody(command: &mut Command) -> &mut Command {
    const CAP_DAC_OVERRIDE: libc::c_ulong = 1;
    const CAP_DAC_READ_SEARCH: libc::c_ulong = 2;
    // SAFETY: `prctl` is async-signal-safe and this operation touches no memory.
    unsafe {
        command.pre_exec(|| {
            for capability in [CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH] {
                libc::prctl(libc::PR_CAPBSET_DROP, capability); // EPERM: it is not there to be dropped
            }
            Ok(())
        })
    }
}

#[test]
fn an_unknown_option_is_refused() {
    let output = ls(Path::new("/"), &["-x"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert_eq!(output.stderr, b"ls: usage: ls [-fciF] [DIR]...\n");
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = example("ls").arg("/").stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert!(output.stderr.is_empty());
}

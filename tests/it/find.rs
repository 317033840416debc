//! The example `find`, as a program: against the system's `find`.

use crate::fixture::{
    check_broken_pipe, check_full_device, check_help, check_usage_error, example, make_file, mixed, numbered, run,
    run_on_terminal, run_unprivileged,
};
use crate::machine::skip;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn find(dir: &Path, args: &[&str]) -> Output {
    run(example("find").current_dir(dir).args(args))
}

/// The paths printed, each ended by NUL, without regard to their order.
fn sorted_paths(output: &Output) -> Vec<String> {
    let mut paths: Vec<_> =
        output.stdout.split_inclusive(|&byte| byte == 0).map(|path| path.escape_ascii().to_string()).collect();
    paths.sort_unstable();
    paths
}

fn system_has_find(test: &str) -> bool {
    let found = Command::new("find").args([".", "-prune", "-print0"]).stderr(Stdio::null()).output();
    let found = found.is_ok_and(|output| output.stdout == b".\0");
    if !found {
        skip(test, "a find with -print0");
    }
    found
}

/// Checks that both print the same paths and as many errors, and end with the same status, whatever the number of threads.
/// Returns the paths.
fn assert_same(dir: &Path, roots: &[&str], ours: &[&str], theirs: &[&str]) -> Vec<String> {
    let mut system = Command::new("find");
    let expected = run_unprivileged(system.current_dir(dir).args(roots).args(theirs).arg("-print0"));
    let errors = |output: &Output| String::from_utf8_lossy(&output.stderr).lines().count();
    for threads in ["1", "3"] {
        let args = [ours, &["-j", threads, "-0", "--"], roots].concat();
        let output = run_unprivileged(example("find").current_dir(dir).args(&args));
        assert_eq!(sorted_paths(&output), sorted_paths(&expected), "{args:?}");
        assert_eq!(errors(&output), errors(&expected), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), expected.status.code(), "{args:?}");
    }
    sorted_paths(&expected)
}

/// Directories in directories, with every type and name that needs no privilege.
fn tree() -> TempDir {
    let root = mixed();
    let dir = root.path();
    let odd: [&[u8]; 5] =
        [b"directory/\xff\xfe", b"directory/new\nline", b"directory/.hidden", b"directory/ ", b"-f/-x"];
    for path in odd.map(|path| dir.join(OsStr::from_bytes(path))) {
        fs::create_dir_all(path.join("below/empty")).unwrap();
        make_file(&path.join("file"));
        symlink("..", path.join("loop")).unwrap();
        symlink(".", path.join("below/self")).unwrap();
    }
    root
}

#[test]
fn agrees_with_the_system_on_every_type_and_name() {
    if !system_has_find("agrees_with_the_system_on_every_type_and_name") {
        return;
    }
    let (tree, many) = (tree(), numbered(3000));
    for dir in [tree.path(), many.path(), Path::new("/sys/class"), Path::new("/etc")] {
        let all = assert_same(dir, &[], &[], &[]);
        assert_eq!(assert_same(Path::new("/"), &[dir.to_str().unwrap()], &[], &[]).len(), all.len());
        assert_eq!(assert_same(dir, &["."], &["-s"], &[]).len(), all.len());
    }
    for file_type in ["f", "d", "l", "p", "s"] {
        let some = assert_same(tree.path(), &["."], &["-t", file_type], &["-type", file_type]);
        assert!(!some.is_empty());
    }
    for file_type in ["b", "c"] {
        assert_same(Path::new("/dev"), &["."], &["-xt", file_type], &["-xdev", "-type", file_type]);
    }
    for text in ["", "e", "ir", ".h", "\n"] {
        let some = assert_same(tree.path(), &["."], &["-n", text], &["-name", &format!("*{text}*")]);
        assert!(!some.is_empty());
    }
    assert_same(tree.path(), &["."], &["-t", "d", "-n", "e"], &["-type", "d", "-name", "*e*"]);
}

#[test]
fn agrees_with_the_system_on_every_root() {
    if !system_has_find("agrees_with_the_system_on_every_root") {
        return;
    }
    let tree = tree();
    let dir = tree.path().join("directory");
    symlink(".hidden", dir.join("link")).unwrap();
    make_file(&dir.join("file"));
    let absolute = dir.join(".hidden").into_os_string().into_string().unwrap();
    for roots in [
        &["."][..],
        &[".."],
        &["./"],
        &["../directory//"],
        &[".hidden/."],
        &[".hidden/.."],
        &["link"],
        &["link/"],
        &["link/below"],
        &["../link"],
        &["../fifo"],
        &["file"],
        &["file/"],
        &["missing"],
        &[&absolute],
        &["file", "missing", ".hidden", "new\nline", "link", ".hidden"],
    ] {
        assert_same(&dir, roots, &[], &[]);
        // The name of this root is `.hidden` to us and `.` to the system.
        if roots != [".hidden/."] {
            assert_same(&dir, roots, &["-n", "d"], &["-name", "*d*"]);
        }
    }
    assert_same(Path::new("/"), &["//sys/class//"], &[], &[]);
}

#[test]
fn slash_of_the_root_directory_is_not_doubled() {
    let mut find = example("find").args(["-xs", "/"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(find.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = fs::read_dir("/").unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
    assert!(lines.take(2).eq(["/", first.to_str().unwrap()]));
    assert!(find.wait().unwrap().success());
}

#[test]
fn agrees_with_the_system_beyond_path_max() {
    const TEST: &str = "agrees_with_the_system_beyond_path_max";
    if !system_has_find(TEST) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let name = "a".repeat(200);
    let mut dir = lendir::open(root.path()).unwrap();
    for _ in 0..100 {
        for name in ["before", &name, "behind"] {
            mkdirat(&dir, name, Mode::RWXU).unwrap();
        }
        openat(&dir, "before/file", OFlags::CREATE | OFlags::CLOEXEC, Mode::RWXU).unwrap();
        dir = lendir::openat(&dir, &name).unwrap();
    }
    for ours in [&[][..], &["-s"], &["-x"]] {
        assert_eq!(assert_same(root.path(), &["."], ours, &[]).len(), 401);
    }
}

#[test]
fn agrees_with_the_system_on_unreadable_directories() {
    const TEST: &str = "agrees_with_the_system_on_unreadable_directories";
    if !system_has_find(TEST) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let modes = [("none", 0o000), ("search only", 0o100), ("list only", 0o400), ("read only", 0o500)];
    let set_modes = |change: fn(u32) -> u32| {
        for (name, mode) in modes {
            fs::set_permissions(root.path().join(name), Permissions::from_mode(change(mode))).unwrap();
        }
    };
    for (name, _) in modes {
        fs::create_dir_all(root.path().join(name).join("below/empty")).unwrap();
        make_file(&root.path().join(name).join("file"));
    }
    set_modes(|mode| mode);
    for roots in [&[][..], &["none"], &["search only/below"], &["list only/file"], &["none/file"]] {
        assert_same(root.path(), roots, &[], &[]);
    }
    let output = run_unprivileged(example("find").current_dir(root.path()));
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(report.contains("find: ./none: Permission denied"), "{report}");
    set_modes(|_| 0o700);
}

#[test]
fn agrees_with_the_system_on_one_mount() {
    const TEST: &str = "agrees_with_the_system_on_one_mount";
    if !system_has_find(TEST) {
        return;
    }
    let mut is_crossed = false;
    for root in ["/dev", "/sys/fs"] {
        let one_mount = assert_same(Path::new("/"), &[root], &["-x"], &["-xdev"]);
        is_crossed |= one_mount.len() < sorted_paths(&find(Path::new("/"), &["-0", root])).len();
    }
    if !is_crossed {
        skip(TEST, "a mount below /dev or /sys/fs that is not empty");
    }
}

/// The paths in the order that is promised.
fn in_order(dir: &Path, paths: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    paths.extend_from_slice(&entries);
    for path in entries.iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        in_order(path, paths);
    }
}

#[test]
fn sorts_each_directory_and_goes_below_in_that_order() {
    let tree = tree();
    let mut expected = vec![tree.path().to_owned()];
    in_order(tree.path(), &mut expected);
    let output = run(example("find").arg("-s").arg(tree.path()));
    let expected: Vec<_> =
        expected.into_iter().flat_map(|path| [path.into_os_string().into_vec(), vec![b'\n']].concat()).collect();
    assert!(output.status.success() && output.stdout == expected);
}

#[test]
fn control_characters_are_question_marks_on_a_terminal() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("new\nline")).unwrap();
    make_file(&root.path().join("new\nline").join(OsStr::from_bytes(b"\x1b[31mred\xc2\x9b\xff")));
    let shown = |args: &[&str]| {
        let mut find = example("find");
        find.current_dir(root.path()).args(args);
        run_on_terminal(find)
    };
    let Some((text, errors)) = shown(&["new\nline", "miss\x1bing"]) else {
        return skip("control_characters_are_question_marks_on_a_terminal", "pseudo-terminals");
    };
    assert_eq!(text, "new?line\r\nnew?line/?[31mred?\u{fffd}\r\n");
    assert!(errors.starts_with("find: miss?ing: No such file"), "{errors}");
    assert_eq!(shown(&["-0t", "d", "new\nline"]).unwrap().0, "new\r\nline\0");
}

#[test]
fn help_is_the_text_at_the_head() {
    check_help("find");
}

#[test]
fn wrong_usage_is_named() {
    check_usage_error("find", &["-z"], r#"unknown option "-z""#);
    check_usage_error("find", &["-sz", "."], r#"unknown option "-sz""#);
    check_usage_error("find", &[".", "--sort"], r#"unknown option "--sort""#);
    check_usage_error("find", &["-t"], "-t needs one of f, d, l, p, s, b, c");
    check_usage_error("find", &["-t", "fd"], "-t needs one of f, d, l, p, s, b, c");
    check_usage_error("find", &["-n"], "-n needs a TEXT");
}

#[test]
fn two_dashes_end_the_options() {
    let root = tempfile::tempdir().unwrap();
    for name in ["-s", "--", "--help"] {
        make_file(&root.path().join(name));
    }
    let output = find(root.path(), &["--", "--help", "--", "-s"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "--help\n--\n-s\n");
    assert!(output.status.success());
}

#[test]
fn errors_that_nobody_reads_end_nothing() {
    let dir = numbered(3);
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(reader);
    let mut find = example("find");
    find.current_dir(dir.path()).args(["missing", "."]).stderr(OwnedFd::from(writer)).stdout(Stdio::piped());
    let output = find.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!((output.stdout.split(|&byte| byte == b'\n').count() - 1, output.status.code()), (4, Some(1)));
}

#[test]
fn broken_pipe_is_quiet() {
    check_broken_pipe("find", &["/sys/class"]);
}

#[test]
fn full_device_is_reported() {
    check_full_device("find", &["/sys/class"]);
}

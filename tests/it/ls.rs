//! The example `ls`, as a program: against `LC_ALL=C ls`.

use crate::fixture::{
    check_broken_pipe, check_full_device, check_help, check_usage_error, example, in_mount_namespace, make_file, mixed,
    numbered, run, run_on_terminal, run_unprivileged,
};
use crate::machine::{can_trace, skip};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

fn ls(dir: &Path, args: &[&str]) -> Output {
    run(example("ls").current_dir(dir).args(args))
}

fn system_ls(dir: &Path, args: &[&str]) -> Output {
    run(Command::new("ls").current_dir(dir).env("LC_ALL", "C").env("TZ", "UTC").args(args))
}

/// Checks that both print the same bytes and end with the same status, and that both or neither report an error.
fn assert_same(dir: &Path, ours: &[&str], theirs: &[&str], paths: &[&str]) {
    let ours = ls(dir, &[ours, paths].concat());
    let theirs = system_ls(dir, &[theirs, paths].concat());
    let text = |output: &Output| {
        let text = output.stdout.escape_ascii().to_string();
        // The system's `ls` gives the columns of files the width that the directories beside them need.
        if paths.len() > 1 { text.split_inclusive(' ').filter(|word| *word != " ").collect() } else { text }
    };
    assert_eq!(text(&ours), text(&theirs), "{paths:?}");
    assert_eq!(ours.status.code(), theirs.status.code(), "{paths:?}");
    assert_eq!(ours.stderr.is_empty(), theirs.stderr.is_empty(), "{paths:?}");
}

/// Options of ours, and those that ask the system's `ls` for the same.
const SAME: [(&[&str], &[&str]); 5] = [
    (&[], &["-1"]),
    (&["-A"], &["-1A"]),
    (&["-p", "--sort=name"], &["-1p"]),
    (&["-A", "--sort=none"], &["-1AU"]),
    (&["--sort", "none", "-1pA"], &["-1AUp"]),
];

const LONG: [(&[&str], &[&str]); 3] = [
    (&["-l"], &["-n", "--time-style=long-iso"]),
    (&["-lA", "-p"], &["-nAp", "--time-style=long-iso"]),
    (&["-Ali", "--sort=none"], &["-nAUi", "--time-style=long-iso"]),
];

fn system_has_ls(test: &str) -> bool {
    let found = Command::new("ls").arg("-1AUp").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        skip(test, "an ls with -1AUp");
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
    for (ours, theirs) in LONG {
        for dir in [root.path(), many.path(), Path::new("/sys")] {
            assert_same(dir, ours, theirs, &[]);
        }
    }
}

#[test]
fn agrees_with_the_system_on_several_operands() {
    if !system_has_ls("agrees_with_the_system_on_several_operands") {
        return;
    }
    let root = mixed();
    for empty in ["empty", "vacant"] {
        fs::create_dir(root.path().join(empty)).unwrap();
    }
    for file in ["-", "directory/program", "Directory/text"] {
        make_file(&root.path().join(file));
    }
    for (ours, theirs) in [&SAME[..], &LONG].concat() {
        for paths in [
            &["directory", "Directory"][..],
            &["plain"],
            &["plain", "fifo", "-", "Directory/text", "socket", "A", "a", "two\nlines", "plain"],
            &["plain", "directory", "missing", "Directory", "B"],
            &["plain", "empty"],
            &["plain", "missing", "plain/"],
            &["link", "link to a file", ".hidden", "link to a directory"],
            &["link", "empty", "link to a directory/"],
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
fn modes_times_and_sizes_agree_with_the_system() {
    if !system_has_ls("modes_times_and_sizes_agree_with_the_system") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    for mode in (0..=0o7777).step_by(73) {
        let path = root.path().join(format!("mode {mode:o}"));
        make_file(&path);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    // Ends of months, leap years and centuries, before 1902 and after 2400.
    let days = [-24_900, -1, 0, 58, 59, 365, 789, 790, 10_956, 10_957, 11_015, 11_016, 17_956, 47_540, 47_541, 157_113];
    for (day, seconds) in days.iter().flat_map(|day| [0, 4242, 86_399, 86_400].map(|seconds| (day, seconds))) {
        let file = File::create(root.path().join(format!("{day} {seconds}"))).unwrap();
        file.set_len(seconds * 1_000_003).unwrap();
        let days = Duration::from_secs(86_400) * i32::unsigned_abs(*day);
        let midnight = if *day < 0 { SystemTime::UNIX_EPOCH - days } else { SystemTime::UNIX_EPOCH + days };
        let set = file.set_modified(midnight + Duration::from_secs(seconds));
        assert!(
            set.is_ok() || cfg!(target_pointer_width = "32"),
            "day {day} is refused, but a time of 64 bits holds it"
        );
    }
    assert_same(root.path(), &["-l"], &["-n", "--time-style=long-iso"], &[]);
}

/// Device numbers have columns of their own, so the spaces are not compared.
#[test]
fn devices_agree_with_the_system_but_for_spaces() {
    if !system_has_ls("devices_agree_with_the_system_but_for_spaces") {
        return;
    }
    let devices = |output: Output| {
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(['b', 'c']));
        lines.map(|line| line.split_whitespace().map(String::from).collect()).collect::<Vec<Vec<_>>>()
    };
    let theirs = devices(system_ls(Path::new("/dev"), &["-n", "--time-style=long-iso"]));
    assert_eq!(devices(ls(Path::new("/dev"), &["-l"])), theirs);
}

#[test]
fn an_entry_whose_attributes_are_refused_has_question_marks() {
    if !system_has_ls("an_entry_whose_attributes_are_refused_has_question_marks") {
        return;
    }
    let root = mixed();
    let locked = root.path().join("directory");
    make_file(&locked.join("file"));
    fs::create_dir(locked.join("below")).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o444)).unwrap();
    let outcome = |command: &mut Command, args: &[&str]| {
        let output = run_unprivileged(command.current_dir(root.path()).args(args).arg("directory"));
        (String::from_utf8(output.stdout).unwrap(), output.status.code(), output.stderr.is_empty())
    };
    let ours = outcome(&mut example("ls"), &["-l"]);
    let theirs = outcome(&mut Command::new("ls"), &["-n", "--time-style=long-iso"]);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(ours, theirs);
    assert_eq!((ours.1, ours.2), (Some(1), false));
}

/// The first lesson, `sorted`.
#[test]
fn sorted_prints_all_names_by_bytes() {
    let root = mixed();
    let output = run(example("sorted").arg(root.path()));
    assert!(output.status.success());
    assert_eq!(output.stdout, ls(root.path(), &["-A"]).stdout);
    assert_eq!(run(example("sorted").current_dir(root.path())).stdout, output.stdout);
    let output = run(example("sorted").arg("/nowhere"));
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.is_empty()), (Some(1), 0, false));
}

#[test]
fn inode_numbers_are_printed_and_sorted_by() {
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
    let mut check = |args: &[&str], sort: fn(&mut Vec<(u64, Vec<u8>)>)| {
        sort(&mut expected);
        let lines = expected.iter().flat_map(|(ino, name)| [format!("{ino} ").as_bytes(), name, b"\n"].concat());
        let output = ls(root.path(), args);
        assert!(output.status.success());
        assert!(output.stdout.into_iter().eq(lines), "{args:?}");
    };
    check(&["-i", "--sort=none"], |_| {});
    check(&["-i", "--sort=inode"], |all| all.sort());
    check(&["-i"], |all| all.sort_by_key(|(_, name)| name.clone()));
    check(&["-i", "--sort=caseless"], |all| all.sort_by_key(|(_, name)| (name.to_ascii_lowercase(), name.clone())));

    symlink("a", root.path().join("link")).unwrap();
    let link = fs::symlink_metadata(root.path().join("link")).unwrap().ino();
    assert_eq!(String::from_utf8(ls(root.path(), &["-i", "link"]).stdout).unwrap(), format!("{link} link\n"));
    let output = ls(root.path(), &["-i", "a", "C"]);
    let of = |name: &str| expected.iter().find(|(_, other)| other == name.as_bytes()).unwrap().0;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{} C\n{} a\n", of("C"), of("a")));
}

#[test]
fn inode_number_is_that_of_what_is_mounted() {
    const TEST: &str = "inode_number_is_that_of_what_is_mounted";
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("dir")).unwrap();
    make_file(&root.path().join("file"));
    let script = r#"mount -t tmpfs none dir && touch dir/other && mount --bind dir/other file || exit
        stat -c "%i %n" dir file > dir/expected; "$0" -i | diff dir/expected - && echo same"#;
    let Some(output) = in_mount_namespace(root.path(), "ls", script) else {
        return skip(TEST, "user namespaces");
    };
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "same\n");
}

#[test]
fn caseless_order_breaks_ties_by_bytes() {
    let root = tempfile::tempdir().unwrap();
    for name in ["b", "B", "aB", "AB", "ab", "Ab", "_", "[", "~", "C"] {
        make_file(&root.path().join(name));
    }
    let output = ls(root.path(), &["--sort=caseless"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "[\n_\nAB\nAb\naB\nab\nB\nb\nC\n~\n");
}

#[test]
fn path_order_counts_the_slash_of_a_directory() {
    let root = tempfile::tempdir().unwrap();
    for name in ["ab", "a-b", "a.b", "a0"] {
        make_file(&root.path().join(name));
    }
    fs::create_dir(root.path().join("a")).unwrap();
    let output = ls(root.path(), &["-p", "--sort=path"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a-b\na.b\na/\na0\nab\n");
}

/// Opened, but read with an error: `EINVAL` from the `net` of a process that has ended and waits to be reaped.
#[test]
fn a_read_error_does_not_end_the_listing() {
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
            if system_has_ls("a_read_error_does_not_end_the_listing") {
                assert_same(root.path(), &[], &["-1"], paths);
            }
            let output = ls(root.path(), paths);
            assert_eq!(output.status.code(), Some(2));
            let report = String::from_utf8(output.stderr).unwrap();
            assert!(report.contains(&format!("ls: {zombie}: Invalid argument")), "{report}");
        }
    } else {
        skip("a_read_error_does_not_end_the_listing", "a zombie whose `net` cannot be read");
    }
    child.wait().unwrap();
}

/// The second `getdents64` fails, injected by strace: the entries of the first are listed and the error is reported.
#[test]
fn entries_before_an_error_are_listed() {
    const TEST: &str = "entries_before_an_error_are_listed";
    if !can_trace(TEST) {
        return;
    }
    let root = numbered(3000);
    let path = root.path().to_str().unwrap();
    let all = ls(root.path(), &["--sort=none"]).stdout;
    let interrupted = |args: &[&str]| {
        let mut strace = Command::new("strace");
        strace.args(["-qq", "--output=/dev/null", "--trace=getdents64", "--inject=getdents64:error=EIO:when=2"]);
        let output = run(strace.arg(example("ls").get_program()).args(args).arg(path));
        assert_eq!(output.status.code(), Some(2));
        let report = String::from_utf8(output.stderr).unwrap();
        assert_eq!(report, format!("ls: {path}: {}\n", io::Error::from_raw_os_error(libc::EIO)));
        output.stdout
    };
    let before = interrupted(&["--sort=none"]);
    assert!(!before.is_empty() && before.len() < all.len() && all.starts_with(&before));
    let mut lines: Vec<_> = before.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    assert_eq!(interrupted(&[]), lines.concat());
}

#[test]
fn a_directory_that_cannot_be_opened_is_reported_with_its_path() {
    let root = mixed();
    fs::create_dir(root.path().join("locked")).unwrap();
    fs::set_permissions(root.path().join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    for path in ["missing", "plain/", "locked"] {
        let mut ls = example("ls");
        ls.current_dir(root.path()).args(["directory", path, "link to a directory"]);
        let output = run_unprivileged(&mut ls);
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert_eq!(output.stdout, b"directory:\n\nlink to a directory:\n", "{path}");
        let report = String::from_utf8(output.stderr).unwrap();
        assert!(report.starts_with(&format!("ls: {path}: ")) && report.lines().count() == 1, "{report}");
    }
    fs::remove_dir(root.path().join("locked")).unwrap(); // `TempDir` would open it first
}

#[test]
fn help_is_the_text_at_the_head() {
    check_help("ls");
}

#[test]
fn wrong_usage_is_named() {
    check_usage_error("ls", &["-z"], "unknown option -z");
    check_usage_error("ls", &["-Azl", "plain"], "unknown option -z");
    check_usage_error("ls", &["--long"], r#"unknown option "--long""#);
    for sort in [&[".", "--sort=size"][..], &["--sort="], &["--sort"], &["--sort", "-l"]] {
        check_usage_error("ls", sort, "--sort needs one of name, caseless, path, inode, none");
    }
}

#[test]
fn two_dashes_end_the_options() {
    let root = tempfile::tempdir().unwrap();
    for name in ["-p", "--", "--help"] {
        make_file(&root.path().join(name));
    }
    let output = ls(root.path(), &["--", "-p", "--", "--help"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "--\n--help\n-p\n");
    assert!(output.status.success());
}

#[test]
fn broken_pipe_is_quiet() {
    check_broken_pipe("ls", &["/"]);
}

#[test]
fn full_device_is_reported() {
    check_full_device("ls", &["/"]);
}

#[test]
fn control_characters_are_question_marks_on_a_terminal() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("new\nline");
    fs::create_dir(&dir).unwrap();
    for name in ["\x1b[31mred", "\u{9b}31mred", "tab\t", "rub\x7fout", "é"] {
        make_file(&dir.join(name));
    }
    make_file(&dir.join(OsStr::from_bytes(b"\xff\x1b")));
    let mut ls = example("ls");
    ls.current_dir(root.path()).args(["new\nline", "new\nline/tab\t", "miss\x1bing"]);
    let Some((shown, errors)) = run_on_terminal(ls) else {
        return skip("control_characters_are_question_marks_on_a_terminal", "pseudo-terminals");
    };
    let lines = ["new?line/tab?", "", "new?line:", "?[31mred", "rub?out", "tab?", "?31mred", "é", "\u{fffd}?", ""];
    assert_eq!(shown, lines.join("\r\n"));
    assert!(errors.starts_with("ls: miss?ing: No such file"), "{errors}");
}

//! The example `du`, as a program: against `du -k` of the system.

use crate::fixture::{
    check_broken_pipe, check_full_device, check_help, check_usage_error, example, in_mount_namespace, run,
    run_on_terminal, run_unprivileged, while_root_is_swapped,
};
use crate::machine::{can_trace, runs_long, skip};
use crate::support::tree::{self, Tree};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

fn du(dir: &Path, args: &[&str]) -> Output {
    run_unprivileged(example("du").current_dir(dir).args(args))
}

fn system_du(dir: &Path, args: &[&str]) -> Output {
    run_unprivileged(Command::new("du").current_dir(dir).arg("-k").args(args))
}

fn system_has_du(test: &str) -> bool {
    let has = Command::new("du").arg("--version").output().is_ok_and(|output| output.stdout.starts_with(b"du (GNU"));
    if !has {
        skip(test, "GNU du");
    }
    has
}

/// The lines, as text, without regard to their order.
fn sorted_lines(output: &Output) -> Vec<String> {
    let mut lines = escaped_lines(output);
    lines.sort_unstable();
    lines
}

fn escaped_lines(output: &Output) -> Vec<String> {
    output.stdout.split_inclusive(|&byte| byte == b'\n').map(|line| line.escape_ascii().to_string()).collect()
}

/// Checks that ours, with one thread and with several, and the system's print the same lines and as many errors, and end with
/// the same status. Returns the lines.
fn assert_same(dir: &Path, args: &[&str]) -> Vec<String> {
    let outcome = |output: &Output| {
        let errors = String::from_utf8_lossy(&output.stderr).lines().count();
        (sorted_lines(output), errors, output.status.code())
    };
    let expected = outcome(&system_du(dir, args));
    for threads in ["1", "2", "8"] {
        let output = du(dir, &[&["-j", threads], args].concat());
        assert_eq!(outcome(&output), expected, "-j {threads} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    expected.0
}

fn assert_same_with_each_option(dir: &Path, paths: &[&str]) {
    for options in [
        &[][..],
        &["-a"],
        &["-s"],
        &["-x"],
        &["-ax"],
        &["-sx"],
        &["-c"],
        &["-ach"],
        &["-schx"],
        &["-d0"],
        &["-d", "1"],
        &["-hd2"],
        &["-ad", "1"],
        &["-cad3"],
    ] {
        assert_same(dir, &[options, &["--"], paths].concat());
    }
}

/// A file that takes its final space on disk: file systems may allocate it only when it is written back.
fn write(path: &Path, bytes: usize) {
    let mut file = File::create_new(path).unwrap();
    file.write_all(&vec![1; bytes]).unwrap();
    file.sync_all().unwrap();
}

/// Hidden, sparse, empty and odd files, and hard links in one directory.
fn make(at: &Path) {
    tree::make(at, &["a/b/c/", "a/.hidden/.file", "a/empty", "b/"]);
    let odd: [&[u8]; 4] = [b"a/new\nline", b"a/\xff\xfe", b"a/ ", b"b/-a"];
    for dir in odd.map(|path| at.join(OsStr::from_bytes(path))) {
        fs::create_dir(&dir).unwrap();
        write(&dir.join("file\n"), 5000);
    }
    for (path, bytes) in
        [("a/file", 1), ("a/b/large", 1_000_000), ("a/b/c/.file", 4097), ("b/file", 513), ("b/one", 9999)]
    {
        write(&at.join(path), bytes);
    }
    let sparse = File::create_new(at.join("a/sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    sparse.sync_all().unwrap();
    for link in ["b/two", "b/three"] {
        fs::hard_link(at.join("b/one"), at.join(link)).unwrap();
    }
    symlink("b", at.join("link")).unwrap();
    symlink("nowhere", at.join("a/dangling")).unwrap();
    symlink("x".repeat(1000), at.join("a/long link")).unwrap();
}

#[test]
fn agrees_with_the_system() {
    if !system_has_du("agrees_with_the_system") {
        return;
    }
    // On tmpfs, where sizes on disk differ, a few operands are enough.
    for (tree, step) in [(Tree::on_disk(make), 1), (Tree::new(make), 7)] {
        let operands = [
            &[][..],
            &["a"],
            &["a/"],
            &["./a/."],
            &["a/../b"],
            &["b/file"],
            &["link"],
            &["link/"],
            &["link/one"],
            &["a/dangling"],
            &["a/new\nline"],
            &["missing"],
            &["b/file/"],
            &["missing", "a", "b/missing", "b"],
            &[tree.path().to_str().unwrap()],
        ];
        for paths in operands.into_iter().step_by(step) {
            assert_same_with_each_option(tree.path(), paths);
        }
    }
    for path in ["/sys/class", "/etc"] {
        assert_same_with_each_option(Path::new("/"), &[path]);
    }
    for seed in 0..5 {
        assert_same_with_each_option(Tree::on_disk(|at| tree::random(at, seed)).path(), &["."]);
    }
}

#[test]
fn sizes_for_humans_agree_with_the_system() {
    if !system_has_du("sizes_for_humans_agree_with_the_system") {
        return;
    }
    let tree = Tree::on_disk(|at| {
        for kibibytes in
            [0, 1, 4, 8, 9, 10, 11, 12, 99, 100, 101, 1020, 1023, 1024, 1028, 9_999, 10_200, 10_240, 10_244]
        {
            write(&at.join(format!("{kibibytes}")), kibibytes * 1024);
        }
    });
    for options in ["-ah", "-sh", "-ch"] {
        assert_same(tree.path(), &[options]);
    }
}

/// A directory that is mounted below itself, directly or deeper, is not counted again; one that is mounted elsewhere is.
#[test]
fn cycle_of_mounts_is_counted_once() {
    const TEST: &str = "cycle_of_mounts_is_counted_once";
    if !system_has_du(TEST) {
        return;
    }
    for mounts in [
        "mount --bind a a/b",
        "mount --bind a/b a/b/c",
        "mount --bind a a/b/c && mount --rbind a a/d",
        "mount --bind a/b a/d",
        "mount --bind a/d a/b/c && mount --rbind a/b a/d/e",
        "mount -t tmpfs none a/b && mkdir -p a/b/x/y a/b/z && mount --bind a/b a/b/x/y && mount --bind a a/b/z",
    ] {
        let tree = Tree::on_disk(|at| {
            tree::make(at, &["a/b/c/deeper/", "a/b/file", "a/d/e/", "a/d/file"]);
            write(&at.join("a/d/large"), 100_000);
            write(&at.join("a/b/c/deeper/large"), 20_000);
        });
        let script = format!(
            r#"{mounts} || exit
            for options in "-j1 a" "-j8 a" "-sj1 a" "-aj2 a" "-j2 a/b a" "-d1 ." "a/b" "a/d"; do "$0" $options 2>&1 | sort; echo; done
            for options in "a" "a" "-s a" "-a a" "a/b a" "-d1 ." "a/b" "a/d"; do du -k $options 2>&1 | sort; echo; done"#
        );
        let Some(output) = in_mount_namespace(tree.path(), "du", &script) else { return skip(TEST, "user namespaces") };
        let text = String::from_utf8_lossy(&output.stdout);
        let parts: Vec<_> = text.split("\n\n").collect();
        assert!(parts.len() == 17 && !parts[0].is_empty(), "{mounts}: {output:?}");
        assert_eq!(parts[..8], parts[8..16], "{mounts}: `du` prints something else");
    }
}

/// What others put in the place of the root after it was looked at is not followed.
#[test]
fn link_swapped_in_at_the_root_is_not_followed() {
    let at = Tree::of(&["root/inside", "outside/outside"]);
    symlink("outside", at.path().join("link")).unwrap();
    let text = while_root_is_swapped(at.path(), || du(at.path(), &["-a", "root"]));
    assert!(!text.contains("outside"), "{text}");
}

#[test]
fn what_comes_again_is_counted_once() {
    if !system_has_du("what_comes_again_is_counted_once") {
        return;
    }
    let tree = Tree::on_disk(|at| {
        make(at);
        fs::hard_link(at.join("b/one"), at.join("a/b/another")).unwrap();
    });
    for paths in [
        &["a", "b"][..],
        &["b", "a"],
        &["a", "a"],
        &["a", "a/b", "."],
        &["a/b", "a", "."],
        &["a/b/c/.file", "a"],
        &["a", "a/b/c/.file", "a/b/c/.file"],
        &["b/one", "b/two", "b", "link", "link/"],
        &["b", ".", "missing", "."],
    ] {
        assert_same_with_each_option(tree.path(), paths);
    }
    assert_eq!(assert_same(tree.path(), &["b/one", "b/two", "a/b/another"]).len(), 1);
    assert_eq!(assert_same(tree.path(), &["a/b", "a/b/../b"]).len(), 2);
}

#[test]
fn total_does_not_depend_on_the_link_that_is_found_first() {
    const TEST: &str = "total_does_not_depend_on_the_link_that_is_found_first";
    if !system_has_du(TEST) {
        return;
    }
    let tree = Tree::on_disk(|at| {
        write(&at.join("file"), 100_000);
        for number in 0..100 {
            let dir = at.join(format!("{}/{}", number / 10, number % 10));
            fs::create_dir_all(&dir).unwrap();
            fs::hard_link(at.join("file"), dir.join("link")).unwrap();
        }
        fs::remove_file(at.join("file")).unwrap();
    });
    let total = assert_same(tree.path(), &["-s"]).remove(0);
    for threads in ["1", "2", "8"].repeat(5) {
        let lines = escaped_lines(&du(tree.path(), &["-a", "-j", threads]));
        assert_eq!(lines.last(), Some(&total));
        assert_eq!((lines.len(), lines.iter().filter(|line| line.ends_with("/link\\n")).count()), (112, 1));
    }
}

#[test]
fn directory_comes_after_those_below_it() {
    let tree = Tree::new(|at| tree::comb(at, 200));
    for threads in ["1", "2", "8"].repeat(5) {
        let output = String::from_utf8(du(tree.path(), &["-j", threads]).stdout).unwrap();
        let mut seen = HashSet::new();
        for path in output.lines().map(|line| Path::new(line.trim_start_matches("0\t"))) {
            assert!(!path.ancestors().any(|above| seen.contains(above)), "{path:?}");
            seen.insert(path);
        }
        assert_eq!(seen.len(), 601);
    }
}

#[test]
fn agrees_with_the_system_on_any_depth() {
    if !system_has_du("agrees_with_the_system_on_any_depth") {
        return;
    }
    assert_same(Tree::on_disk(|at| tree::chain(at, 2500)).path(), &["."]);
    assert_same(Tree::on_disk(|at| tree::comb(at, 500)).path(), &["."]);
    let levels = if runs_long() { 20_000 } else { 5000 };
    assert_same(Tree::new(|at| tree::comb(at, levels)).path(), &["-s"]);
    assert_same(Tree::new(|at| tree::wide(at, 10_000, 20)).path(), &["."]);
}

#[test]
fn agrees_with_the_system_on_what_may_not_be_read() {
    if !system_has_du("agrees_with_the_system_on_what_may_not_be_read") {
        return;
    }
    let modes = [0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600, 0o700];
    let set_modes = |at: &Path, change: fn(u32) -> u32| {
        for mode in modes {
            fs::set_permissions(at.join(format!("dir/{mode:o}")), Permissions::from_mode(change(mode))).unwrap();
        }
    };
    let tree = Tree::on_disk(|at| {
        for mode in modes {
            tree::make(&at.join(format!("dir/{mode:o}")), &["below/empty/", "file"]);
            write(&at.join(format!("dir/{mode:o}/below/large")), 10_000);
        }
        set_modes(at, |mode| mode);
    });
    assert_same_with_each_option(tree.path(), &[]);
    assert_same_with_each_option(tree.path(), &["dir/0", "dir/0/file", "dir/100", "dir/100/below", "dir/400", "dir"]);
    let report = String::from_utf8(du(tree.path(), &["-s", "dir/0", "dir/100/", "missing"]).stderr).unwrap();
    let denied = "Permission denied (os error 13)";
    let expected = [
        format!("du: dir/0: {denied}"),
        format!("du: dir/100/: {denied}"),
        "du: missing: No such file or directory (os error 2)".into(),
    ];
    assert!(report.lines().eq(expected), "{report}");
    let report = String::from_utf8(du(tree.path(), &["-s", "dir"]).stderr).unwrap();
    assert!(report.lines().any(|line| line == format!("du: dir/400/file: {denied}")), "{report}");
    set_modes(tree.path(), |_| 0o700);
}

#[test]
fn agrees_with_the_system_on_usr() {
    const TEST: &str = "agrees_with_the_system_on_usr";
    if !system_has_du(TEST) {
        return;
    }
    // A file with links in several directories may be counted in any of them.
    let found = run(Command::new("find").args(["/usr", "-type", "f", "-links", "+1", "-printf", "%i %h\\n"]));
    let places = HashSet::<_>::from_iter(escaped_lines(&found));
    let files: HashSet<_> = places.iter().map(|place| place.split(' ').next()).collect();
    if files.len() < places.len() {
        return skip(TEST, "a /usr whose directories share no hard links");
    }
    for option in if runs_long() { &["-s", "-x", "-a"][..] } else { &["-a"] } {
        // Tried again, because others may change /usr meanwhile.
        let outcomes = std::iter::from_fn(|| {
            let ours = ["1", "2"].map(|threads| du(Path::new("/"), &["-j", threads, option, "usr"]));
            let expected = sorted_lines(&system_du(Path::new("/"), &[option, "usr"]));
            Some(ours.iter().all(|ours| sorted_lines(ours) == expected))
        });
        assert!(outcomes.take(10).any(|is_same| is_same), "{option}: ours and the system's never agree");
    }
}

#[test]
fn other_file_systems_are_left_out() {
    const TEST: &str = "other_file_systems_are_left_out";
    if !system_has_du(TEST) {
        return;
    }
    let tree = Tree::on_disk(make);
    let script = r#"mount -t tmpfs none b && mkdir b/dir && echo text >b/file && mount --bind a b/dir || exit
        for options in "-x -j 1" "-x -j 8" "-j 8"; do "$0" $options b . | sort; echo; done
        for options in -x -x ""; do du -k $options b . | sort; echo; done"#;
    let Some(output) = in_mount_namespace(tree.path(), "du", script) else { return skip(TEST, "user namespaces") };
    let text = String::from_utf8_lossy(&output.stdout);
    let parts: Vec<_> = text.split("\n\n").collect();
    assert_eq!(parts[..3], parts[3..6]);
    assert_ne!(parts[0], parts[2]);
}

#[test]
fn progress_is_shown_on_a_terminal_after_a_second() {
    const TEST: &str = "progress_is_shown_on_a_terminal_after_a_second";
    if !can_trace(TEST) {
        return;
    }
    let tree = Tree::of(&["a/", "b/", "c/"]);
    let shown = |delayed: &str, options: &[&str]| {
        let mut shell = Command::new("sh");
        // Standard error is the terminal, and standard output is not.
        let script = "exec 3>&1 >&2 2>&3; exec strace -fqqo /dev/null -e inject=$0:delay_enter=500000 \"$@\"";
        shell.current_dir(tree.path()).args(["-c", script, delayed]).arg(example("du").get_program()).args(options);
        run_on_terminal(shell)
    };
    for options in [&["-s"][..], &["-j", "1"]] {
        let Some((errors, output)) = shown("getdents64", options) else { return skip(TEST, "pseudo-terminals") };
        let Some(progress) = errors.strip_suffix("\r\x1b[K") else { panic!("{errors:?}") };
        let counts = progress.split_terminator(" directories").map(|count| count.strip_prefix('\r').unwrap().parse());
        let counts: Vec<usize> = counts.map(Result::unwrap).collect();
        assert!(
            !counts.is_empty() && counts.is_sorted() && counts[0] > 0 && counts[counts.len() - 1] <= 4,
            "{counts:?}"
        );
        assert_eq!(output.as_bytes(), run(example("du").current_dir(tree.path()).args(options)).stdout);
        assert!(!shown("sync", options).unwrap().0.contains("directories"));
    }
}

#[test]
fn control_characters_are_question_marks_on_a_terminal() {
    let tree = Tree::new(|at| tree::make(at, &["new\nline/\x1b[31mred"]));
    let mut command = example("du");
    command.current_dir(tree.path()).args(["-a", "new\nline", "miss\x1bing"]);
    let Some((text, errors)) = run_on_terminal(command) else {
        return skip("control_characters_are_question_marks_on_a_terminal", "pseudo-terminals");
    };
    assert_eq!(text, "0\tnew?line/?[31mred\r\n0\tnew?line\r\n");
    assert_eq!(errors, "du: miss?ing: No such file or directory (os error 2)\n");
}

#[test]
fn help_is_the_text_at_the_head() {
    check_help("du");
}

#[test]
fn wrong_usage_is_named() {
    check_usage_error("du", &["-z"], "unknown option -z");
    check_usage_error("du", &[".", "-szx"], "unknown option -z");
    check_usage_error("du", &["--summarize"], r#"unknown option "--summarize""#);
    for both in [&["-as"][..], &["-s", "-a", "."], &["-sad0"]] {
        check_usage_error("du", both, "-s prints PATH alone, -a all below it");
    }
    check_usage_error("du", &["-s", "-d1"], "-s prints PATH alone, as -d 0");
    for depth in [&["-d"][..], &["-d", "-1"], &["-dx"], &["-xd", "x"], &["-da"]] {
        check_usage_error("du", depth, "-d needs a number of levels");
    }
    for threads in ["0", "-1", "x", "", "256"] {
        check_usage_error("du", &["-j", threads], "-j needs a number from 1 to 255");
    }
    for threads in ["-j0", "-xj-1", "-jx", "-j256", "-j2s"] {
        check_usage_error("du", &[threads], "-j needs a number from 1 to 255");
    }
    check_usage_error("du", &["-j"], "-j needs a number from 1 to 255");
}

#[test]
fn two_dashes_end_the_options() {
    let tree = Tree::new(|at| tree::make(at, &["-s", "--", "--help"]));
    let output = du(tree.path(), &["--", "--help", "--", "-s"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "0\t--help\n0\t--\n0\t-s\n");
    assert!(output.status.success());
}

#[test]
fn broken_pipe_is_quiet() {
    check_broken_pipe("du", &["/sys/class"]);
    check_broken_pipe("du", &["-j", "4", "/usr"]);
}

#[test]
fn full_device_is_reported() {
    check_full_device("du", &["/sys/class"]);
    check_full_device("du", &["-j", "4", "/usr"]);
}

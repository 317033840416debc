//! The example `find`, as a program: against the system's `find`.

use crate::fixture::{
    check_broken_pipe, check_full_device, check_help, check_usage_error, example, make_file, mixed, numbered, run,
    run_on_terminal, run_unprivileged, while_root_is_swapped,
};
use crate::machine::{passed, runs_long, skip, watchdog};
use crate::support::tree::{self, Random, Tree};
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader};
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
    let system = system.current_dir(dir).env("LC_ALL", "C").args(roots).args(theirs).arg("-print0");
    let expected = run_unprivileged(system);
    let errors = |output: &Output| String::from_utf8_lossy(&output.stderr).lines().count();
    for threads in ["1", "3"] {
        let args = [roots, ours, &["-j", threads, "-print0"]].concat();
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
        let options = ["-type", file_type];
        assert!(!assert_same(tree.path(), &["."], &options, &options).is_empty());
    }
    for file_type in ["b", "c"] {
        let options = ["-xdev", "-type", file_type];
        assert_same(Path::new("/dev"), &["."], &options, &options);
    }
    for glob in ["*", "*e*", "*ir*", ".h*", "?", "[a-z]?", "[!a-z]", "*\n*", "*.*", "\\*", "*[^a-zA-Z]", "file"] {
        let options = ["-name", glob];
        assert!(!assert_same(tree.path(), &["."], &options, &options).is_empty() || glob == "\\*", "{glob}");
    }
    for options in [
        &["-type", "d", "-name", "*e*"][..],
        &["-name", "*e*", "-name", "*f*", "-type", "l"],
        &["-type", "d", "-type", "f"],
    ] {
        assert_same(tree.path(), &["."], options, options);
    }
}

impl Random {
    fn byte(&mut self, bytes: &[u8]) -> u8 {
        bytes[self.below(bytes.len())]
    }

    /// A star, a question mark, a byte, or a set. Every set has its end: what one without means differs between systems.
    fn part_of_a_glob(&mut self) -> Vec<u8> {
        let mut part = match self.below(6) {
            0 | 1 => return vec![b'*'],
            2 => return vec![b'?'],
            3 => return vec![self.byte(b"aabbcz-]!^\xff")],
            4 => return vec![b'\\', self.byte(b"aabbcz.-*?[]\\!^\xff")],
            _ => vec![b'['],
        };
        part.extend_from_slice([&b""[..], b"!", b"^", b"]", b"!]", b"-", b"^-"][self.below(7)]);
        for _ in 0..=self.below(3) {
            let byte = self.byte(b"aabbcz*?[!^\xff");
            let end = self.byte(b"abcz\xff");
            part.extend_from_slice(
                [&[byte][..], &[b'\\', byte], &[byte, b'-', end], &[byte, b'-', b'\\', end]][self.below(4)],
            );
        }
        part.extend_from_slice([&b"]"[..], b"-]"][self.below(2)]);
        part
    }
}

#[test]
fn globs_agree_with_the_system() {
    const TEST: &str = "globs_agree_with_the_system";
    if !system_has_find(TEST) {
        return;
    }
    let mut random = Random(1);
    let root = tempfile::tempdir().unwrap();
    for _ in 0..1000 {
        let name: Vec<u8> = (0..=random.below(6)).map(|_| random.byte(b"aabbcz.-*?[]\\!^\xff")).collect();
        if name != b"." && name != b".." {
            let _ = File::create(root.path().join(OsStr::from_bytes(&name)));
        }
    }
    let found = |mut command: Command, glob: &[u8]| {
        let output = run(command
            .current_dir(root.path())
            .env("LC_ALL", "C")
            .args([OsStr::new("-name"), OsStr::from_bytes(glob)]));
        assert!(output.status.success(), "{}: {output:?}", glob.escape_ascii());
        output.stdout
    };
    let (count, mut matched) = (if runs_long() { 10_000 } else { 200 }, 0);
    for _ in 0..count {
        let glob: Vec<u8> = (0..=random.below(5)).flat_map(|_| random.part_of_a_glob()).collect();
        let ours = found(example("find"), &glob);
        let theirs = found(Command::new("find"), &glob);
        let lines = |text: &[u8]| {
            let mut lines: Vec<_> =
                text.split(|byte| *byte == b'\n').map(|line| line.escape_ascii().to_string()).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines(&ours), lines(&theirs), "{}", glob.escape_ascii());
        matched += usize::from(!ours.is_empty());
    }
    assert!(matched > count / 10, "{matched} of {count} globs match something");
    passed(TEST, count, "globs, each on a thousand names");
}

#[test]
fn agrees_with_the_system_on_depths() {
    if !system_has_find("agrees_with_the_system_on_depths") {
        return;
    }
    let tree = Tree::new(|at| tree::random(at, 1));
    let depths = ["0", "1", "2", "3", "5", "100"];
    let counts = depths.map(|depth| {
        let options = ["-maxdepth", depth];
        assert_same(tree.path(), &[".", "missing"], &["-s", "-maxdepth", depth], &options);
        assert_same(tree.path(), &["."], &options, &options).len()
    });
    assert!(counts[0] == 1 && counts.is_sorted(), "{counts:?}");
    assert_same(tree.path(), &["."], &["-maxdepth", "3", "-type", "d"], &["-maxdepth", "3", "-type", "d"]);
}

#[test]
fn agrees_with_the_system_on_links_that_are_followed() {
    const TEST: &str = "agrees_with_the_system_on_links_that_are_followed";
    if !system_has_find(TEST) {
        return;
    }
    let _watchdog = watchdog();
    let links = Tree::new(|at| {
        tree::make(at, &["r/a/b/c/file", "r/x/y/file", "r/x/z/", "out/below/file", "locked/in/file"]);
        for (link, target) in [
            ("r/self", "self"),
            ("r/one", "two"),
            ("r/two", "one"),
            ("r/dangling", "nowhere"),
            ("r/not a directory", "a/b/c/file/x"),
            ("r/denied", "../locked/in"),
            ("r/locked", "../locked"),
            ("r/loop", "."),
            ("r/a/loop", ".."),
            ("r/a/b/to x", "../../x"),
            ("r/x/to a", "../a"),
            ("r/x/y/to b", "../../a/b"),
            ("r/x/z/out", "../../../out"),
            ("r/to out", "../out/below"),
            ("r/file", "a/b/c/file"),
            ("r/again", "file"),
            ("link", "r"),
        ] {
            symlink(target, at.join(link)).unwrap();
        }
        fs::set_permissions(at.join("locked"), Permissions::from_mode(0o000)).unwrap();
    });
    for roots in [&["r"][..], &["link"], &["link/"], &["r/self", "r/dangling", "r/file", "r/denied"]] {
        for options in [
            &[][..],
            &["-xdev"],
            &["-maxdepth", "2"],
            &["-type", "d"],
            &["-type", "f"],
            &["-type", "l"],
            &["-name", "*o*"],
        ] {
            assert_same_following(links.path(), roots, options, options);
            assert_same_following(links.path(), roots, &[options, &["-s"]].concat(), options);
        }
    }
    fs::set_permissions(links.path().join("locked"), Permissions::from_mode(0o700)).unwrap();
    // The system's `find` goes there, and round once.
    let above = find(links.path(), &["-L", "r/a", "-name", "loop*"]);
    assert_eq!(String::from_utf8(above.stdout).unwrap(), "r/a/loop\n");
    let expected = format!("find: r/a/loop: {}\n", io::Error::from_raw_os_error(libc::ELOOP));
    assert!(String::from_utf8(above.stderr).unwrap().contains(&expected));

    assert_same_following(tree().path(), &["."], &[], &[]);
    for seed in 0..3 {
        let tree = Tree::new(|at| {
            tree::random(at, seed);
            for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_symlink() {
                    fs::remove_file(entry.path()).unwrap(); // it leads out of the tree
                }
            }
        });
        assert_same_following(tree.path(), &["."], &[], &[]);
    }
    // Without a limit, neither would ever end here.
    let depth = ["-maxdepth", if runs_long() { "4" } else { "2" }];
    assert_same_following(Path::new("/"), &["/sys/class"], &depth, &depth);
    if runs_long() {
        assert_same_following(Path::new("/"), &["/usr"], &[], &[]);
    }
}

/// As [`assert_same`], with `-L`, which must come first for the system.
fn assert_same_following(dir: &Path, roots: &[&str], ours: &[&str], theirs: &[&str]) {
    let paths = assert_same(dir, &[&["-L"], roots].concat(), ours, theirs);
    assert!(!paths.is_empty() || theirs.contains(&"-type") || theirs.contains(&"-name"), "{roots:?}");
}

/// What others put in the place of the root after it was looked at is not followed.
#[test]
fn link_swapped_in_at_the_root_is_not_followed() {
    let at = Tree::of(&["root/inside", "outside/outside"]);
    symlink("outside", at.path().join("link")).unwrap();
    let text = while_root_is_swapped(at.path(), || find(at.path(), &["root"]));
    assert!(!text.contains("outside"), "{text}");
}

/// The first lesson, `count`.
#[test]
fn count_counts_every_entry() {
    let tree = tree();
    let all = find(tree.path(), &["-print0"]).stdout.split_inclusive(|byte| *byte == 0).count();
    let output = run(example("count").arg(tree.path()));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", all - 1));
    assert!(output.status.success() && output.stderr.is_empty());

    let locked = tree.path().join("directory");
    fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
    let output = run_unprivileged(example("count").current_dir(tree.path()));
    fs::set_permissions(&locked, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "count: ./directory: Permission denied (os error 13)\n");
    assert!(output.status.success() && output.stdout.len() > 1);
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
        for glob in ["*d*", ".", "..", "[.]", "link"] {
            assert_same(&dir, roots, &["-name", glob], &["-name", glob]);
        }
        for depth in ["0", "1"] {
            assert_same(&dir, roots, &["-maxdepth", depth], &["-maxdepth", depth]);
        }
    }
    assert_same(Path::new("/"), &["//sys/class//"], &[], &[]);
    let slash = ["-maxdepth", "0", "-name", "/"];
    assert_eq!(assert_same(Path::new("/"), &["/", "//", "/."], &slash, &slash).len(), 2);
}

#[test]
fn slash_of_the_root_directory_is_not_doubled() {
    let mut find = example("find").args(["-xdev", "-s", "/"]).stdout(Stdio::piped()).spawn().unwrap();
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
    for ours in [&[][..], &["-s"], &["-xdev"]] {
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
    // Not /dev: other tests make and remove directories in /dev/shm.
    for root in ["/sys/fs", "/sys/kernel"] {
        let one_mount = assert_same(Path::new("/"), &[root], &["-xdev"], &["-xdev"]);
        is_crossed |= one_mount.len() < sorted_paths(&find(Path::new("/"), &["-print0", root])).len();
    }
    if !is_crossed {
        skip(TEST, "a mount below /sys/fs or /sys/kernel that is not empty");
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
    assert_eq!(shown(&["-print0", "-type", "d", "new\nline"]).unwrap().0, "new\r\nline\0");
}

#[test]
fn help_is_the_text_at_the_head() {
    check_help("find");
}

#[test]
fn wrong_usage_is_named() {
    check_usage_error("find", &["-z"], r#"unknown option "-z""#);
    check_usage_error("find", &[".", "-mindepth", "1"], r#"unknown option "-mindepth""#);
    check_usage_error("find", &[".", "--sort"], r#"unknown option "--sort""#);
    check_usage_error("find", &[".", "!", "-name", "x"], r#"unknown operator "!""#);
    check_usage_error("find", &["(", "-type", "d", ")"], r#"unknown operator "(""#);
    for file_type in [&["-type"][..], &["-type", "fd"], &["-type", "F"]] {
        check_usage_error("find", file_type, "-type needs one of f, d, l, p, s, b, c");
    }
    check_usage_error("find", &["-name"], "-name needs a GLOB");
    check_usage_error(
        "find",
        &["-name", "[[:alpha:]]*"],
        r#"-name knows no [: :], [. .] or [= =], as in "[[:alpha:]]*""#,
    );
    for depth in [&["-maxdepth"][..], &["-maxdepth", "-1"], &["-maxdepth", "+1"], &["-maxdepth", "x", "."]] {
        check_usage_error("find", depth, "-maxdepth needs a number");
    }
    for threads in [&["-j"][..], &["-j", "0"], &["-j0"], &["-jx"], &["-j", "256"], &["-j", ""]] {
        check_usage_error("find", threads, "-j needs a number from 1 to 255");
    }
}

/// `find -- PATH -type f` selects, as with other finds: it does not take the rest as paths.
#[test]
fn two_dashes_before_the_first_path_mean_nothing() {
    let root = tempfile::tempdir().unwrap();
    for name in ["-s", "--", "file"] {
        make_file(&root.path().join(name));
    }
    let output = find(root.path(), &["--", "./-s", "./--", ".", "-name", "-*"]);
    let mut lines: Vec<_> = str::from_utf8(&output.stdout).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["./--", "./--", "./-s", "./-s"]);
    assert!(output.status.success());

    let output = find(root.path(), &["./-s", "--", "file"]);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap().lines().next(),
        Some("find: unknown option \"--\"; try --help")
    );
    assert!(output.stdout.is_empty() && !output.status.success());
}

#[test]
fn unread_errors_do_not_end_the_search() {
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
    check_broken_pipe("find", &["-j2", "/sys/class"]);
}

#[test]
fn full_device_is_reported() {
    check_full_device("find", &["/sys/class"]);
}

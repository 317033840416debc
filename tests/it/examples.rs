//! Runs the examples, except `rm`, which has a module of its own.

use crate::fixture::{has_gnu, in_mount_namespace, run, run_into};
use crate::support::prelude::*;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom, Write};
use std::process::Output;

/// Answers of containers' filters to a call that they do not know.
pub const STATX_REFUSED: [&str; 2] = ["inject=statx:error=ENOSYS", "inject=statx:error=EPERM"];

/// Runs `command` without privileges. Returns the sorted lines of its output, the number of its
/// errors, and its exit status.
pub fn outcome(
    mut command: Command,
    dir: &Path,
    args: &[&str],
) -> (Vec<String>, usize, Option<i32>) {
    let output = run_unprivileged(command.current_dir(dir).env("LC_ALL", "C").args(args));
    let lines = sorted(
        output
            .stdout
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| line.escape_ascii().to_string()),
    );
    (lines, String::from_utf8_lossy(&output.stderr).lines().count(), output.status.code())
}

fn sorted(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_unstable();
    lines
}

/// Checks that an example prints these lines, in any order, and this number of errors.
fn check(name: &str, dir: &Path, args: &[&str], lines: &[impl AsRef<str>], errors: usize) {
    let lines = sorted(
        lines
            .iter()
            .map(|line| format!("{line}\n", line = line.as_ref()).escape_default().to_string()),
    );
    let status = Some(i32::from(errors > 0));
    assert_eq!(outcome(example(name), dir, args), (lines, errors, status), "{name} {args:?}");
}

/// A closed pipe is no error. The status still tells of what was found or reported before.
#[allow(
    clippy::incompatible_msrv,
    reason = "only the crate and its examples keep to the oldest Rust"
)]
#[test]
fn closed_pipe_is_quiet_and_full_device_an_error() {
    let tree = Tree::of(&["a/b/c", "a/d", "b/c"]);
    fs::write(tree.path().join("a/d"), "text\n").unwrap();
    for (name, args, closed_status, errors) in [
        ("compare", &["a", "b"][..], 1, 0),
        ("count", &["a"], 0, 0),
        ("du", &["-j", "4", "/sys/bus", "/sys/class"], 0, 0),
        ("find", &["-j", "2", "/sys/bus"], 0, 0),
        ("find", &["missing", "a"], 1, 1),
        ("sorted", &["a"], 0, 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = example(name);
        command.current_dir(tree.path()).args(args);
        let output = run_into(&mut command, writer);
        let error_count = String::from_utf8(output.stderr).unwrap().lines().count();
        assert_eq!((output.status.code(), error_count), (Some(closed_status), errors), "{name}");
        let output = run_into(&mut command, File::options().write(true).open("/dev/full").unwrap());
        let status = if name == "compare" { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        let full = format!("{name}: No space left on device (os error 28)");
        assert_eq!(errors.lines().last(), Some(&*full));
    }
}

#[test]
fn example_reports_errors_and_reads_the_rest() {
    let tree = Tree::on_disk(|at| {
        make(at, &["a/locked/below/", "a/denied"]);
        fs::write(at.join("a/text"), "one\n").unwrap();
        symlink("a/text", at.join("link")).unwrap();
        mkfifoat(CWD, at.join("fifo"), Mode::RWXU).unwrap(); // a process waits to write into it
    });
    let _watchdog = watchdog();
    let mut writer = Command::new("sh");
    let writer = Process::start(writer.args(["-c", "echo kept > fifo"]).current_dir(tree.path()));
    for denied in ["a/denied", "a/locked"] {
        chmod(tree.path().join(denied), 0o000);
    }
    let check =
        |name, args: &[&str], lines: &[&str], errors| check(name, tree.path(), args, lines, errors);
    check("count", &[], &["6"], 1);
    check("sorted", &["a/text"], &[], 1);
    check("find", &["a", "missing", "a/text/"], &["a", "a/denied", "a/locked", "a/text"], 3);
    let found = ["a/text:one", "link:one"];
    check("grep", &["one", "a", "link", "missing", "fifo"], &found, 4);
    assert_eq!(fs::read(tree.path().join("fifo")).unwrap(), b"kept\n"); // `grep` did not open it
    drop(writer);
    let blocks = |path: &str| tree.path().join(path).metadata().unwrap().blocks();
    let kib = ["a", "a/locked", "a/denied", "a/text"].map(blocks).iter().sum::<u64>().div_ceil(2);
    check("du", &["-s", "a", "missing"], &[&format!("{kib}\ta")], 2);
}

/// There are enough files for several writes of each thread. No line may interrupt another line.
#[test]
fn find_prints_whole_lines() {
    let dirs = (0..40).map(|dir| format!("wide/{dir}"));
    let files = (0..4000).map(|file| format!("wide/{}/{}{file}", file % 40, "x".repeat(file % 90)));
    let all: Vec<_> = ["wide".to_owned()].into_iter().chain(dirs).chain(files).collect();
    let tree = Tree::new(|at| make(at, &all[41..]));
    symlink("wide", tree.path().join("link")).unwrap(); // `find` does not follow it
    for threads in ["0", "1", "3"] {
        check("find", tree.path(), &["-j", threads, "wide"], &all, 0);
        check(
            "find",
            tree.path(),
            &["link", "wide/1/x1", "-j", threads],
            &["link", "wide/1/x1"],
            0,
        );
    }
}

/// A file with several hard links counts once, and so does a directory that two arguments name.
/// Symbolic links are not followed.
#[test]
fn du_adds_up_the_subtree() {
    let tree = Tree::on_disk(|at| {
        make(at, &["a/b/c/empty", "other/"]);
        for (path, bytes) in [
            ("a/file", 1),
            ("a/b/large", 1_000_000),
            ("a/b/c/.file", 4097),
            ("other/huge", 1_500_000),
        ] {
            // File systems may allocate space only on writeback.
            fs::write(at.join(path), vec![1; bytes]).unwrap();
            File::open(at.join(path)).unwrap().sync_all().unwrap();
        }
        fs::hard_link(at.join("a/b/large"), at.join("a/b/c/again")).unwrap();
        symlink("../other", at.join("a/link")).unwrap();
    });
    let blocks = |path: &&str| tree.path().join(path).symlink_metadata().unwrap().blocks();
    let line = |paths: &[&str], path: &str| {
        format!("{}\t{path}", paths.iter().map(blocks).sum::<u64>().div_ceil(2))
    };
    let all = ["a/b/c", "a/b/c/empty", "a/b/c/.file", "a/b", "a/b/large", "a", "a/file", "a/link"];
    let a = line(&all, "a");
    let roots = ["a/file", "a/link"].map(|path| line(&[path], path));
    for threads in ["1", "8"] {
        check("du", tree.path(), &["-j", threads, "-s", "a", "a"], &[&a], 0);
        check("du", tree.path(), &["-j", threads, "a/file", "a/link"], &roots, 0);
    }
    let without_file: Vec<_> = all.into_iter().filter(|path| *path != "a/file").collect();
    let lines = [roots[0].clone(), line(&without_file, "a")];
    check("du", tree.path(), &["-j", "1", "-s", "a/file", "a"], &lines, 0);
    check("du", tree.path(), &["-j", "1", "-s", "a", "a/file"], &[&a], 0);
    if can_trace("du_adds_up_the_subtree") {
        for inject in STATX_REFUSED {
            let outcome = run_with_faults("du", &["-s", "a"], &tree, &["-e", inject]);
            assert_eq!(outcome, (Some(0), format!("{a}\n"), String::new()), "{inject}");
        }
    }
    let below = [line(&all[..3], "a/b/c"), line(&all[..5], "a/b"), a];
    fs::remove_file(tree.path().join("a/b/c/again")).unwrap();
    check("du", tree.path(), &["a"], &below, 0);
}

/// Runs `name` as a user without privileges, and returns its exit status and the lines of both
/// outputs.
fn outputs(name: &str, dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = run_unprivileged(example(name).current_dir(dir).args(args));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn copy_keeps_contents_modes_links_and_holes() {
    const DATA: u64 = 1 << 20;
    let mode = |path: &Path| path.symlink_metadata().unwrap().mode();
    let tree = Tree::on_disk(|at| {
        let deep = format!("from/{}", "d/".repeat(100));
        make(at, &[&*deep, "from/ro/file", "from/z", "from/gone/"]);
        fs::write(at.join(deep).join("file"), "text").unwrap();
        fs::write(at.join("from/ro/file"), "in a directory without w").unwrap();
        symlink("nowhere", at.join("from/link")).unwrap();
        mkfifoat(CWD, at.join("from/fifo"), Mode::RUSR).unwrap();
        let mut sparse = File::create(at.join("from/sparse")).unwrap();
        sparse.seek(SeekFrom::Start(DATA)).unwrap();
        sparse.write_all(b"data").unwrap();
        sparse.set_len(2 * DATA).unwrap();
        for (path, mode) in
            [("ro", 0o555), ("z", 0o640), ("d", 0o1777), ("d/d", 0o2770), ("", 0o711)]
        {
            chmod(at.join("from").join(path), mode);
        }
    });
    let [from, to] = ["from", "from/to"].map(|name| tree.path().join(name));
    let fifo = "copy: from/fifo: unsupported\n";
    let found = outputs("copy", tree.path(), &["from", "from/to"]);
    assert_eq!(found, (Some(1), String::new(), fifo.into()));
    let copied: Vec<_> =
        lendir::walk(&to).unwrap().into_iter().map(|entry| entry.unwrap().into_path()).collect();
    assert_eq!(copied.len(), 100 + 7, "{copied:?}");
    for copy in copied.iter().chain([&to]) {
        let original = from.join(copy.strip_prefix(&to).unwrap());
        assert_eq!(mode(copy), mode(&original), "{copy:?}");
        let both = [copy, &original].map(|path| (fs::read(path).ok(), fs::read_link(path).ok()));
        assert!(both[0] == both[1], "{copy:?}");
    }
    let blocks = ["from", "from/to"]
        .map(|at| tree.path().join(at).join("sparse").metadata().unwrap().blocks());
    assert!(blocks[1] <= blocks[0], "{blocks:?} blocks");
    for made in [&from, &to] {
        chmod(made.join("ro"), 0o755);
    }
    for to in ["from", "from/z", "/", ".", "from/.."] {
        let expected = (Some(1), String::new(), format!("copy: {to}: File exists (os error 17)\n"));
        assert_eq!(outputs("copy", tree.path(), &["from", to]), expected);
    }
}

/// The sizes of files in procfs are 0, and those in sysfs 4096, whatever the files contain. A umask
/// could deny the program what it makes.
#[test]
fn copy_reads_to_the_end_under_any_umask() {
    let tree = Tree::of(&["from/dir/file"]);
    for (from, file) in
        [("/proc/sys/fs/inotify", "max_queued_events"), ("/sys/module/kernel/parameters", "panic")]
    {
        if !Path::new(from).join(file).exists() {
            skip("copy_reads_to_the_end_under_any_umask", file);
            continue;
        }
        outputs("copy", tree.path(), &[from, file]); // some entries may be unreadable
        let both =
            [Path::new(from), &tree.path().join(file)].map(|at| fs::read(at.join(file)).unwrap());
        assert_eq!(both[0], both[1], "{file}");
    }
    let output = limited("umask 0700", "copy", tree.path(), &["from", "to"]);
    assert!(output.status.success(), "{output:?}");
    for path in ["", "dir", "dir/file"] {
        let mode = |at: &str| tree.path().join(at).join(path).metadata().unwrap().mode();
        assert_eq!(mode("to"), mode("from"), "{path}");
    }
}

#[test]
fn copy_names_the_file_that_finds_the_disk_full() {
    let tree = Tree::of(&["from/dir/", "to/"]);
    fs::write(tree.path().join("from/dir/file"), vec![1; 1 << 20]).unwrap();
    let script = r#"mount -t tmpfs -o size=64k none to && "$0" from to/copy"#;
    let Some(output) = in_mount_namespace(tree.path(), "copy", script) else {
        return skip("copy_names_the_file_that_finds_the_disk_full", "user namespaces");
    };
    let full = "copy: to/copy/dir/file: No space left on device (os error 28)\n";
    assert_eq!((str::from_utf8(&output.stderr), output.status.code()), (Ok(full), Some(1)));
}

/// Runs a program while strace injects these faults. Returns the exit status and both outputs.
fn run_with_faults(
    name: &str,
    args: &[&str],
    tree: &Tree,
    faults: &[&str],
) -> (Option<i32>, String, String) {
    let mut strace = Command::new("timeout"); // a program that never ends fails the test
    strace.args(["20", "strace", "-f", "-qq", "-o", "/dev/null"]).args(faults);
    strace.arg(example(name).get_program()).args(args);
    let output = run(strace.current_dir(tree.path()).env_remove("LD_LIBRARY_PATH"));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn copy_with_faults(tree: &Tree, faults: &[&str]) -> (Option<i32>, String) {
    let (status, _, errors) = run_with_faults("copy", &["from", "to"], tree, faults);
    (status, errors)
}

/// A file system may interrupt a reading, even without a signal. The system may refuse all threads.
#[test]
fn interrupted_or_refused_call_loses_nothing() {
    if !can_trace("interrupted_or_refused_call_loses_nothing") {
        return;
    }
    let tree = Tree::of(&["a/", "b/"]);
    for dir in ["a", "b"] {
        fs::write(tree.path().join(dir).join("file"), "text\n").unwrap();
    }
    let file = tree.path().canonicalize().unwrap().join("a/file");
    let interrupted = ["-P", file.to_str().unwrap(), "-e", "inject=read:error=EINTR:when=1"];
    let refused = ["-e", "inject=clone,clone3:error=EAGAIN"];
    for faults in [&interrupted[..], &refused] {
        for (name, args, lines) in
            [("compare", &["a", "b"][..], ""), ("find", &["-j", "4", "a"], "a\na/file\n")]
        {
            let expected = (Some(0), lines.into(), String::new());
            assert_eq!(run_with_faults(name, args, &tree, faults), expected, "{name}");
        }
    }
}

/// Runs a program in a shell that has these limits.
pub fn limited(limits: &str, name: &str, dir: &Path, args: &[&str]) -> Output {
    let script = format!("{limits} && exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(example(name).get_program()).args(args).current_dir(dir);
    run(&mut shell)
}

/// Each line that it found there would make the file longer.
#[test]
fn grep_does_not_search_its_own_output() {
    let tree = Tree::of(&["other", "own"]);
    let [other, own] = ["other", "own"].map(|name| tree.path().join(name));
    fs::write(other, "one\n").unwrap();
    fs::write(&own, "one\n".repeat(20_000)).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -f 1000 && exec \"$0\" one ."]).current_dir(tree.path());
    shell.arg(example("grep").get_program());
    let output = run_into(&mut shell, File::options().append(true).open(&own).unwrap());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*errors), (Some(1), "grep: ./own: it is also the output\n"));
    assert_eq!(
        fs::read(own).unwrap().strip_prefix("one\n".repeat(20_000).as_bytes()),
        Some(&b"./other:one\n"[..])
    );
}

/// A path is escaped, and marked by a backslash, as in the output of `sha256sum`.
#[test]
fn manifest_escapes_paths_as_sha256sum_does() {
    if !has_gnu("sha256sum", "manifest_escapes_paths_as_sha256sum_does") {
        return;
    }
    let tree = Tree::of(&["x\ny", "x\ry", r"x\y", "x y"]);
    let script = "sha256sum ./* | LC_ALL=C sort -k 2";
    let [own, gnu] =
        [example("manifest").arg("."), Command::new("sh").args(["-c", script])].map(|command| {
            let output = run(command.current_dir(tree.path())).stdout;
            let lines = String::from_utf8(output).unwrap();
            let marked =
                |line: &str| (line.starts_with('\\'), line.split_once("  ").unwrap().1.into());
            lines.lines().map(marked).collect::<BTreeSet<(bool, String)>>()
        });
    assert_eq!(own, gnu);
}

/// If the original of a directory cannot be opened, the copy keeps the mode 0700 that `copy` made
/// it with.
#[test]
fn copy_gives_no_directory_the_mode_of_its_parent() {
    if !can_trace("copy_gives_no_directory_the_mode_of_its_parent") {
        return;
    }
    // The walk tries both calls. Before it, `copy` opens the two roots.
    for (openat2, openat) in (1..5).flat_map(|openat2| (1..16).map(move |openat| (openat2, openat)))
    {
        let tree = Tree::of(&["from/a/private/file"]);
        let from = tree.path().join("from");
        for (path, mode) in [("a/private", 0o700), ("a", 0o755), ("", 0o755)] {
            chmod(from.join(path), mode);
        }
        let inject = |call, number| format!("inject={call}:error=EIO:when={number}");
        let faults = [inject("openat2", openat2), inject("openat", openat)];
        copy_with_faults(
            &tree,
            &["-e", "trace=openat,openat2", "-e", &faults[0], "-e", &faults[1]],
        );
        for path in ["a", "a/private"] {
            let at = tree.path();
            let mode = |tree: &str| {
                let found = at.join(tree).join(path).metadata();
                found.map_or(0o700, |found| found.mode() & 0o777) // or the copy was not made
            };
            let copy = mode("to");
            assert!(copy == mode("from") || copy == 0o700, "{path}: {copy:o}, {openat2}, {openat}");
        }
    }
}

/// An entry that is listed and cannot be found is missing in the copy. TO may have been removed. A
/// file system may place the next hole where the data begins, or the next data before its offset.
/// Each is an error, and all else is copied.
#[test]
fn copy_reports_what_it_cannot_copy() {
    const TEST: &str = "copy_reports_what_it_cannot_copy";
    if !can_trace(TEST) {
        return;
    }
    let file = &["from/file"][..];
    // The original is positioned at data, at a hole, at the data that is copied, and at data again.
    // On 32 bits it is positioned by `_llseek`, which returns its answer in memory.
    for (at, fault, errno, failed) in [
        ("from/file", "?newfstatat,?fstatat64,?statx:error=ENOENT", libc::ENOENT, file),
        (
            "to",
            "mkdirat,openat,symlinkat:error=ENOENT",
            libc::ENOENT,
            &["to/dir", "to/file", "to/link"],
        ),
        ("from/file", "?lseek:retval=0", libc::EIO, file),
        ("from/file", "?lseek:retval=8:when=4", libc::EIO, file),
    ] {
        let tree = Tree::of(&["from/dir/below"]);
        let root = tree.path().canonicalize().unwrap();
        symlink("file", root.join("from/link")).unwrap();
        fs::write(root.join("from/file"), "0123456789").unwrap();
        let file = File::options().write(true).open(root.join("from/file")).unwrap();
        file.set_len(1 << 20).unwrap();
        let (at, inject) = (root.join(at), format!("inject={fault}"));
        let (status, errors) =
            copy_with_faults(&tree, &["-P", at.to_str().unwrap(), "-e", &inject]);
        if (status, &*errors) == (Some(0), "") {
            skip(TEST, "an injected fault");
            continue;
        }
        let error = io::Error::from_raw_os_error(errno); // the text depends on the C library
        let expected = failed.iter().map(|path| format!("copy: {path}: {error}\n"));
        let lines = sorted(errors.split_inclusive('\n').map(Into::into));
        assert_eq!((status, lines), (Some(1), expected.collect()), "{fault}");
        let is_copied = |path: &str| fs::symlink_metadata(root.join("to").join(path)).is_ok();
        assert_eq!(is_copied("dir/below") && is_copied("link"), failed.len() == 1, "{fault}");
    }
}

/// Swaps a directory for a link after the `step`th `call` of the program. Returns whether the
/// directory already existed, or `None` if the program made fewer calls.
fn swap_while_copying(swapped: &str, call: &str, step: usize) -> Option<bool> {
    let tree = Tree::new(|at| {
        make(at, &["own/up/from/sub/file", "victim/up/from/sub/", "victim/up/to/sub/"]);
    });
    let at = |path: &str| tree.path().join(path);
    let modes = || {
        let paths =
            lendir::walk(at("victim")).unwrap().into_iter().map(|entry| entry.unwrap().into_path());
        paths.map(|path| (path.metadata().unwrap().mode(), path)).collect::<Vec<_>>()
    };
    let before = modes();
    let mut copy = example("copy");
    copy.args(["up/from", "up/to"]).current_dir(at("own"));
    let mut stepped = Stepped::start(&copy, call, step);
    if !stepped.wait() {
        return None;
    }
    let is_swapped = fs::rename(at("own").join(swapped), at("aside")).is_ok();
    if is_swapped {
        symlink(at("victim").join(swapped), at("own").join(swapped)).unwrap();
    }
    stepped.resume();
    assert_eq!(modes(), before, "{swapped}, {call} {step}");
    Some(is_swapped)
}

/// Swaps a directory of the original or of the copy for a link after each call of the program.
#[test]
fn copy_writes_nowhere_else_whatever_is_swapped() {
    swap_after_each_call(
        "copy_writes_nowhere_else_whatever_is_swapped",
        &["up", "up/from", "up/from/sub", "up/to", "up/to/sub"],
        &["openat", "openat2", "getdents64", "mkdirat", "fchmod", "?newfstatat"],
        swap_while_copying,
    );
}

#[test]
fn compare_merges_two_trees_in_order() {
    let tree = Tree::new(|at| {
        make(
            at,
            &[
                "l/b/same/",
                "l/a/only/",
                "r/b/same/",
                "r/z/only/",
                "l/c/",
                "r/d/deep/",
                "l/e/x",
                "r/e.x",
            ],
        );
        for (path, text) in [("b/same/file", "1"), ("b/y", "2"), ("b/long", "34")] {
            fs::write(at.join("l").join(path), text).unwrap();
        }
        for (path, text) in
            [("b/same/file", "1"), ("b/y", "1"), ("b/long", "3"), ("c", ""), ("e", "")]
        {
            fs::write(at.join("r").join(path), text).unwrap();
        }
        fs::write(at.join("l/d"), "").unwrap();
        symlink("1", at.join("l/link")).unwrap();
        symlink("2", at.join("r/link")).unwrap();
    });
    let lines = "only left: a\ndifferent: b/long\ndifferent: b/y\ndifferent: c\ndifferent: d\ndifferent: e\n\
                 only right: e.x\ndifferent: link\nonly right: z\n";
    let found = outputs("compare", tree.path(), &["l", "r"]);
    assert_eq!(found, (Some(1), lines.into(), String::new()));
    let found = outputs("compare", tree.path(), &["l", "l"]);
    assert_eq!(found, (Some(0), String::new(), String::new()));
    let missing = "compare: r/no: No such file or directory (os error 2)\n";
    let found = outputs("compare", tree.path(), &["l", "r/no"]);
    assert_eq!(found, (Some(2), String::new(), missing.into()));
}

/// An entry that cannot be compared is an error, in either tree. Neither the entry nor its subtree
/// counts as a difference.
#[test]
fn compare_reports_unreadable_entries_as_errors() {
    for (locked, mode) in [("l/b", 0), ("r/b", 0), ("l/b", 0o400), ("r/b/file", 0)] {
        let tree = Tree::of(&["l/b/c/d", "l/b/file", "l/z", "r/b/c/e", "r/b/file", "r/y"]);
        let allow = |mode| {
            chmod(tree.path().join(locked), mode);
        };
        allow(mode);
        let (status, lines, errors) = outputs("compare", tree.path(), &["l", "r"]);
        allow(0o700);
        let below = if locked == "r/b/file" { "only left: b/c/d\nonly right: b/c/e\n" } else { "" };
        let expected = (Some(2), format!("{below}only right: y\nonly left: z\n"));
        assert_eq!((status, lines), expected, "{locked} {mode:o}");
        assert!(
            errors.lines().all(|line| line.starts_with("compare: ") && line.contains(locked)),
            "{errors}"
        );
    }
}

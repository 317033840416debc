//! The example `rm`, as a program: against the system's `rm`, and while others change the tree.

use crate::fixture::{
    check_broken_pipe, check_full_device, check_help, check_usage_error, example, in_mount_namespace, run,
    run_unprivileged,
};
use crate::machine::{can_trace, runs_long, skip, watchdog};
use crate::support::tree::{self, Random, Tree};
use lendir::Walk;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

fn rm(dir: &Path, args: &[&str]) -> Output {
    run_unprivileged(example("rm").current_dir(dir).args(args))
}

/// The paths of all that is there, sorted.
fn left(dir: &Path) -> Vec<PathBuf> {
    let mut walk = Walk::options().from_fd(lendir::open(dir).unwrap(), "");
    let mut left = Vec::new();
    while let Some(mut dir) = walk.next().unwrap() {
        let path = dir.path();
        while let Some(entry) = dir.next().unwrap() {
            left.push(path.join(entry.name_os()));
        }
    }
    left.sort();
    left
}

/// Runs ours and the system's on the same tree. Both must leave the same, report as many errors and end with the same status.
/// Returns what is left.
fn assert_same(make: impl Fn(&Path), args: &[&str]) -> Vec<PathBuf> {
    let outcome = |command: &mut Command| {
        let tree = Tree::new(&make);
        let output = run_unprivileged(command.current_dir(tree.path()).args(args));
        assert!(Command::new("chmod").args(["-R", "u+rwx", "."]).current_dir(tree.path()).status().unwrap().success());
        let errors = String::from_utf8_lossy(&output.stderr).lines().count();
        (left(tree.path()), errors, output.status.code(), output)
    };
    let ours = outcome(&mut example("rm"));
    let system = outcome(&mut Command::new("rm"));
    assert_eq!((&ours.0, ours.1, ours.2), (&system.0, system.1, system.2), "{args:?}: {:?} {:?}", ours.3, system.3);
    ours.0
}

fn system_has_rm(test: &str) -> bool {
    let has = Command::new("rm").arg("--version").output().is_ok_and(|output| output.stdout.starts_with(b"rm (GNU"));
    if !has {
        skip(test, "GNU rm");
    }
    has
}

#[test]
fn removes_what_the_system_removes() {
    if !system_has_rm("removes_what_the_system_removes") {
        return;
    }
    let make = |at: &Path| {
        tree::make(at, &["dir/below/empty/", "dir/file", "dir/.hidden", "other/file", "new\nline/file", "file", "-f"]);
        for (target, link) in [("other", "link"), ("other/file", "link to a file"), ("nowhere", "dangling")] {
            symlink(target, at.join(link)).unwrap();
        }
        symlink("../other", at.join("dir/link")).unwrap();
    };
    let all = assert_same(make, &["-r", "missing"]).len();
    for (args, removed) in [
        (&["dir"][..], 6),
        (&["dir//"], 6),
        (&["./dir/below"], 2),
        (&["dir/../dir/below/"], 2),
        (&["dir", "missing", "other", "dir", "new\nline"], 10),
        (&["-f", "dir", "missing", "file", "file"], 7),
        (&["file", "link", "link to a file", "dangling"], 4),
        (&["--", "-f"], 1),
        (&["link/file"], 1),
        (&["link to a file/"], 0),
        (&["file/"], 0),
        (&["-f", "file/"], 0),
        (&["file/below"], 0),
        (&["-f", "file/below", "missing/below", ""], 0),
        (&["", "dir"], 6),
        (&[".", "dir"], 6),
        (&["dir/."], 0),
        (&["dir/..", "dir/../"], 0),
        (&["-f"], 0),
    ] {
        assert_eq!(assert_same(make, &[&["-r"], args].concat()).len(), all - removed, "{args:?}");
    }
    for (args, removed) in [
        (&["dir"][..], 0),
        (&["dir/", "file", "other/."], 1),
        (&["-f", "dir", "missing", "file"], 1),
        (&["dir/below/empty"], 0),
        (&["file", "link", "link to a file", "dangling"], 4),
        (&["link/file", "dir/.hidden"], 2),
        (&["link to a file/", "file/", "file/below", "missing", ""], 0),
        (&[".", "..", "dir/..", "file"], 1),
        (&["-rf", "dir", "missing", "other"], 8),
        (&["-fr", "dir"], 6),
        (&["-R", "dir"], 6),
        (&["dir", "-r", "-f"], 6),
        (&["-f", "--", "-f", "dir"], 1),
    ] {
        assert_eq!(assert_same(make, args).len(), all - removed, "{args:?}");
    }
}

/// GNU rm 9.1 goes below the directory that the link leads to.
#[test]
fn link_with_a_slash_is_not_followed() {
    let tree = Tree::of(&["dir/file"]);
    symlink("dir", tree.path().join("link")).unwrap();
    let all = left(tree.path());
    for options in ["-r", "--"] {
        let output = rm(tree.path(), &[options, "link/"]);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "rm: link/: Not a directory (os error 20)\n");
        assert_eq!((left(tree.path()), output.status.code()), (all.clone(), Some(1)));
    }
}

#[test]
fn removes_what_the_system_removes_where_permissions_are_missing() {
    if !system_has_rm("removes_what_the_system_removes_where_permissions_are_missing") {
        return;
    }
    let modes = [0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600, 0o700];
    let make = |at: &Path| {
        for mode in modes {
            for (kind, below) in [("empty", &[][..]), ("file", &["f"]), ("dir", &["d/"]), ("deep", &["d/d/f", "g"])] {
                let dir = at.join(format!("all/{kind} {mode:o}"));
                fs::create_dir_all(&dir).unwrap();
                tree::make(&dir, below);
                fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
            }
        }
    };
    let kept = assert_same(make, &["-r", "all"]);
    assert!(kept.contains(&"all/file 0/f".into()) && !kept.contains(&"all/empty 0".into()), "{kept:?}");
    for mode in modes {
        for kind in ["empty", "file", "dir", "deep"] {
            assert_same(make, &["-r", &format!("all/{kind} {mode:o}")]);
        }
    }
}

#[test]
fn error_has_its_path() {
    let tree = Tree::of(&["dir/locked/below/file"]);
    let locked = tree.path().join("dir/locked");
    fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
    let output = rm(tree.path(), &["-r", "./dir/"]);
    fs::set_permissions(&locked, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "rm: ./dir/locked: Permission denied (os error 13)\n");

    fs::set_permissions(locked.join("below"), Permissions::from_mode(0o500)).unwrap();
    let output = rm(tree.path(), &["-r", "dir"]);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "rm: dir/locked/below/file: Permission denied (os error 13)\n"
    );
}

#[test]
fn message_has_the_path_as_typed() {
    let tree = Tree::of(&["dir/file", "file"]);
    for (args, report) in [
        (&["-r", "dir/."][..], "dir/.: refused"),
        (&["-r", "./dir/..//"], "./dir/..//: refused"),
        (&["dir//"], "dir//: Is a directory (os error 21)"),
        (&["./dir"], "./dir: Is a directory (os error 21)"),
        (&["-r", "dir/../file/"], "dir/../file/: Not a directory (os error 20)"),
        (&["-r", ".//missing/"], ".//missing/: No such file or directory (os error 2)"),
    ] {
        let output = rm(tree.path(), args);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("rm: {report}\n"));
        assert_eq!((left(tree.path()).len(), output.status.code()), (3, Some(1)));
    }
}

#[test]
fn root_directory_is_refused() {
    const TEST: &str = "root_directory_is_refused";
    // Even if it is not refused, nothing is removed.
    const REMOVE_NOTHING: &[&str] = &["-qqo", "/dev/null", "-e", "inject=unlink,unlinkat,rmdir:error=EPERM"];
    if !can_trace(TEST) {
        return;
    }
    let tree = Tree::of(&["dir/"]);
    for path in ["/", "//", "/.", "/..", "/proc/../"] {
        let output =
            run(Command::new("strace").args(REMOVE_NOTHING).arg(example("rm").get_program()).args(["-r", path]));
        assert_eq!(output.status.code(), Some(1));
        let report = String::from_utf8(output.stderr).unwrap();
        assert!(report.starts_with("rm: /") && report.ends_with(": refused\n"), "{report}");
    }
    let script = format!("mount --rbind / dir && exec strace {} \"$0\" -r dir", REMOVE_NOTHING.join(" "));
    match in_mount_namespace(tree.path(), "rm", &script) {
        Some(output) => assert_eq!(String::from_utf8(output.stderr).unwrap(), "rm: dir: refused, as it is /\n"),
        None => skip(TEST, "user namespaces"),
    }
}

#[test]
fn one_mount() {
    let tree = Tree::of(&["a/b/mount/", "a/b/file", "a/file"]);
    let script = r#"mount -t tmpfs none a/b/mount && touch a/b/mount/file || exit
        "$0" -rx a; echo $?; ls a a/b a/b/mount; "$0" -r a; echo $?; ls a/b a/b/mount"#;
    let Some(output) = in_mount_namespace(tree.path(), "rm", script) else {
        return skip("one_mount", "user namespaces");
    };
    let listed = "1\na:\nb\n\na/b:\nmount\n\na/b/mount:\nfile\n1\na/b:\nmount\n\na/b/mount:\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), listed);
    let busy = io::Error::from_raw_os_error(libc::EBUSY);
    let errors = format!("rm: a/b/mount: left, as a file system is mounted on it\nrm: a/b/mount: {busy}\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), errors);
    assert!(rm(tree.path(), &["-r", "a"]).status.success());
}

#[test]
fn what_is_missing_is_so_on_a_read_only_file_system() {
    const TEST: &str = "what_is_missing_is_so_on_a_read_only_file_system";
    let tree = Tree::of(&["mount/"]);
    let script = r#"mount -t tmpfs none mount && touch mount/file && mount -o remount,ro mount || exit
        "$0" -f mount/missing; echo $?; "$0" -rf mount/missing; echo $?
        "$0" mount/missing; echo $?; "$0" -f mount/file; echo $?; ls mount"#;
    let Some(output) = in_mount_namespace(tree.path(), "rm", script) else {
        return skip(TEST, "user namespaces");
    };
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "0\n0\n1\n1\nfile\n");
    let [missing, read_only] = [libc::ENOENT, libc::EROFS].map(io::Error::from_raw_os_error);
    let errors = format!("rm: mount/missing: {missing}\nrm: mount/file: {read_only}\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), errors);
}

#[test]
fn removes_any_depth_and_width() {
    assert_removes_all("a chain", |at| tree::chain(at, 20_000));
    assert_removes_all("a comb", |at| tree::comb(at, 3000));
    assert_removes_all("directories", |at| tree::wide(at, 20_000, 20));
    assert_removes_all("files", |at| {
        let dir = lendir::open(at).unwrap();
        for number in 0..50_000 {
            mknodat(&dir, number.to_string(), FileType::RegularFile, Mode::RUSR, 0).unwrap();
        }
    });
    for seed in 0..10 {
        assert_removes_all(&format!("seed {seed}"), |at| tree::random(at, seed));
    }
}

fn assert_removes_all(what: &str, make: impl Fn(&Path)) {
    let tree = Tree::new(|at| {
        fs::create_dir(at.join("tree")).unwrap();
        make(&at.join("tree"));
    });
    let output = rm(tree.path(), &["-r", "tree"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{what}: {output:?}");
    assert!(left(tree.path()).is_empty());
}

/// 84 directories and as many files.
fn grow(at: &Path) {
    for number in 0..64 {
        let dirs = [(number / 16).to_string(), (number / 4 % 4).to_string(), (number % 4).to_string()];
        // Others may have made a part of it, or a file in its place.
        let _ = fs::create_dir_all(at.join(dirs.join("/")));
        for depth in 1..=dirs.len() {
            let _ = fs::write(at.join(dirs[..depth].join("/")).join("file"), "");
        }
    }
}

/// One of the directories that [`grow`] makes.
fn any_dir(random: &mut Random) -> String {
    (0..=random.below(3)).fold("tree".into(), |path, _| format!("{path}/{}", random.below(4)))
}

/// Removes `tree` again and again while `change` changes it: each time it grows back, and in the end it must be gone.
/// `change` is called with the directory that it is in, and returns whether it did something. Beside it is `outside`, which is
/// as `tree` was at first, and must stay so.
fn while_others_change(change: impl Fn(&Path, &mut Random) -> bool + Sync) {
    let _watchdog = watchdog();
    let at = Tree::new(|at| grow(&at.join("outside")));
    let outside = left(&at.path().join("outside"));
    let (mut changes, done, growing) = (0, AtomicBool::new(false), Mutex::new(()));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(1);
            while !done.load(Relaxed) {
                let _growing = growing.lock();
                changes += usize::from(change(at.path(), &mut random));
            }
        });
        for _ in 0..if runs_long() { 5000 } else { 100 } {
            let is_growing = growing.lock();
            grow(&at.path().join("tree"));
            drop(is_growing);
            let output = rm(at.path(), &["-r", "tree"]);
            for line in String::from_utf8(output.stderr).unwrap().lines() {
                let expected = ["(os error 2)", "(os error 20)", "(os error 39)"]; // ENOENT, ENOTDIR, ENOTEMPTY
                assert!(line.starts_with("rm: tree") && expected.iter().any(|end| line.ends_with(end)), "{line}");
            }
        }
        done.store(true, Relaxed);
    });
    assert!(changes > 1000, "{changes} changes");
    assert_eq!(left(&at.path().join("outside")), outside);
    assert!(rm(at.path(), &["-rf", "tree"]).status.success());
    assert!(!at.path().join("tree").exists());
}

#[test]
fn others_add_and_remove() {
    while_others_change(|at, random| {
        let path = at.join(any_dir(random)).join(["0", "1", "new"][random.below(3)]);
        match random.below(4) {
            0 => fs::write(path, "").is_ok(),
            1 => fs::create_dir(path).is_ok(),
            2 => fs::remove_file(path).is_ok(),
            _ => fs::remove_dir(path).is_ok(),
        }
    });
}

/// With `-f`, `rm` may be silent about a directory that is no longer one, but not about what follows from that.
#[test]
fn success_means_that_all_is_gone() {
    let others = ["0", "1", "2", "3", "4", "5"].map(|name| Path::new("tree").join(name));
    let mut replaced = 0;
    for _ in 0..if runs_long() { 200 } else { 5 } {
        let at = Tree::of(&[]);
        for other in &others {
            fs::create_dir_all(at.path().join(other)).unwrap();
        }
        let large = at.path().join("tree/large");
        tree::make(&large, &(0..300).map(|number| number.to_string()).collect::<Vec<_>>());
        let modified = || fs::metadata(&large).and_then(|metadata| metadata.modified()).ok();
        let before = modified();
        let mut removal =
            example("rm").args(["-rf", "tree"]).current_dir(at.path()).stderr(Stdio::null()).spawn().unwrap();
        while modified() == before {}
        for other in &others {
            let other = at.path().join(other);
            replaced += usize::from(fs::remove_dir(&other).is_ok() && fs::write(&other, "").is_ok());
        }
        let status = removal.wait().unwrap();
        assert_eq!(status.success(), !at.path().join("tree").exists(), "success, and whether all is gone");
    }
    assert!(replaced > 0, "`rm` was always too fast: nothing was replaced");
}

#[test]
fn others_swap_directories_for_links_to_the_outside() {
    while_others_change(|at, random| {
        let (dir, link) = (at.join(any_dir(random)), at.join("link"));
        let _ = fs::remove_dir_all(&link);
        let _ = fs::remove_file(&link);
        let _ = symlink(at.join("outside"), &link);
        let swap = || renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).is_ok();
        swap() && swap()
    });
}

#[test]
fn help_is_the_text_at_the_head() {
    check_help("rm");
}

#[test]
fn wrong_usage_is_named() {
    check_usage_error("rm", &["-z", "missing"], "unknown option -z");
    check_usage_error("rm", &["missing", "-fzr"], "unknown option -z");
    check_usage_error("rm", &["-r\x1b", "missing"], r"unknown option -\x1b");
    check_usage_error("rm", &["--recursive"], r#"unknown option "--recursive""#);
    check_usage_error("rm", &["-ri", "missing"], "-i is missing: this rm never asks");
    check_usage_error("rm", &[], "a PATH is missing");
    check_usage_error("rm", &["-x", "--"], "a PATH is missing");
}

#[test]
fn control_characters_are_question_marks() {
    let output = rm(Path::new("/"), &["miss\x1bing"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "rm: miss?ing: No such file or directory (os error 2)\n");
}

#[test]
fn broken_pipe_is_quiet() {
    check_broken_pipe("rm", &["--help"]);
}

#[test]
fn full_device_is_reported() {
    check_full_device("rm", &["--help"]);
}

//! Runs the example `rm`: next to GNU `rm`, and while another thread changes the tree.

use crate::examples::{limited, outcome};
use crate::fixture::{has_gnu, in_mount_namespace, run};
use crate::support::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Returns the sorted paths of all entries below `dir`.
fn all_below(dir: &Path) -> Vec<PathBuf> {
    let visits =
        collect_visits(&mut WalkDirs::options().from_fd(lendir::open(dir).unwrap(), ""), |_| {
            Requests::ALL
        });
    let mut paths: Vec<_> = visits.iter().flat_map(Visit::entries).collect();
    paths.sort();
    paths
}

/// Checks that the example, with one thread and with four, and GNU `rm` leave the same entries and
/// have the same outcome. Returns the remaining entries.
fn assert_same(make: impl Fn(&Path), args: &[&str]) -> Vec<PathBuf> {
    let mut with_threads = example("rm");
    with_threads.args(["-j", "4"]);
    let [one, four, gnu] = [example("rm"), with_threads, Command::new("rm")].map(|command| {
        let tree = Tree::new(&make);
        let outcome = outcome(command, tree.path(), args);
        assert!(
            Command::new("chmod")
                .args(["-R", "u+rwx", "."])
                .current_dir(tree.path())
                .status()
                .unwrap()
                .success()
        );
        (all_below(tree.path()), outcome)
    });
    assert_eq!(one, gnu, "{args:?}");
    assert_eq!(four, gnu, "{args:?} on four threads");
    gnu.0
}

#[test]
fn rm_removes_the_same_entries_as_gnu() {
    if !has_gnu("rm", "rm_removes_the_same_entries_as_gnu") {
        return;
    }
    let make = |at: &Path| {
        tree::make(
            at,
            &[
                "dir/below/empty/",
                "dir/file",
                "dir/.hidden",
                "other/file",
                "new\nline/file",
                "file",
            ],
        );
        for (target, link) in
            [("other", "link"), ("other/file", "link to a file"), ("../other", "dir/link")]
        {
            symlink(target, at.join(link)).unwrap();
        }
    };
    let all = assert_same(make, &["-r", "missing"]).len();
    for (args, removed) in [
        (&["-r", "dir//", "dir"][..], 6),
        (&["-r", "./dir/below", "dir/../dir/below/"], 2),
        (&["-r", "dir", "missing", "other", "new\nline"], 10),
        (&["-r", "link", "link to a file", "file/", "file/below", ""], 2),
        (&["-r", ".", "..", "dir/.", "dir/..", "dir/../", "other"], 2),
        (
            &[
                "dir/",
                "other/.",
                "dir/below/empty",
                "link to a file/",
                "file/",
                "missing",
                "",
                "dir/..",
                "file",
            ],
            1,
        ),
    ] {
        assert_eq!(assert_same(make, args).len(), all - removed, "{args:?}");
    }

    let dirs = || (0..8).flat_map(|mode| ["", "f", "d/", "d/d/f"].map(|below| (mode << 6, below)));
    let path = |mode, below: &str| format!("all/{mode:o} {}", below.replace('/', "_"));
    let make = |at: &Path| {
        for (mode, below) in dirs() {
            tree::make(at, &[format!("{}/{below}", path(mode, below))]);
            chmod(at.join(path(mode, below)), mode);
        }
    };
    let kept = assert_same(make, &["-r", "all"]);
    assert!(kept.contains(&"all/0 f/f".into()) && !kept.contains(&"all/0 ".into()), "{kept:?}");
    let each: Vec<_> = dirs().map(|(mode, below)| path(mode, below)).collect();
    let each: Vec<_> = ["-r"].into_iter().chain(each.iter().map(|path| &**path)).collect();
    assert_eq!(assert_same(make, &each), kept);
}

#[test]
fn rm_error_has_its_path() {
    let tree = Tree::of(&["dir/locked/below/file"]);
    symlink("dir", tree.path().join("link")).unwrap();
    chmod(tree.path().join("dir/locked/below"), 0o500);
    for (args, report) in [
        (&["-r", ""][..], "'': No such file or directory (os error 2)"),
        (&["-r", "dir"], "dir/locked/below/file: Permission denied (os error 13)"),
        (&["-r", "./dir/..//"], "./dir/..//: Operation not permitted (os error 1)"),
        (&["dir//"], "dir//: Is a directory (os error 21)"),
        (&["-r", "link/"], "link/: Not a directory (os error 20)"), // GNU rm 9.1 follows it
        (&["link/"], "link/: Not a directory (os error 20)"),
    ] {
        let output = run_unprivileged(example("rm").current_dir(tree.path()).args(args));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("rm: {report}\n"));
        assert_eq!((all_below(tree.path()).len(), output.status.code()), (5, Some(1)));
    }
}

/// Several threads need more descriptors than one does.
#[test]
fn rm_removes_all_with_few_descriptors() {
    for threads in ["1", "4"] {
        for limit in [10, 16] {
            let tree = Tree::new(|at| {
                for depth in 0..14 {
                    let dir = format!("tree/{}", "d/".repeat(depth));
                    tree::make(at, &["a", "b", "c"].map(|name| format!("{dir}{name}/z/file")));
                }
            });
            let limit = format!("ulimit -n {limit}");
            let output = limited(&limit, "rm", tree.path(), &["-r", "-j", threads, "tree"]);
            assert!(output.status.success() && output.stderr.is_empty(), "{limit}: {output:?}");
            assert!(all_below(tree.path()).is_empty());
        }
    }
}

/// A server leaves entries out. `rm` removes them once they are listed, and names each directory
/// that is not empty unless it has reported an entry below.
#[test]
fn rm_empties_a_directory_again_or_names_it() {
    const TEST: &str = "rm_empties_a_directory_again_or_names_it";
    if !can_trace(TEST) {
        return;
    }
    let missing = "rm: missing: No such file or directory (os error 2)\n";
    let not_empty = "rm: dir: Directory not empty (os error 39)\n";
    // A directory that looks empty is read twice.
    for (fault, remains) in [("when=1..2", false), ("when=1+", true)] {
        let tree = Tree::of(&["dir/below/file", "dir/file"]);
        let mut strace = Command::new("strace");
        strace.args(["-qq", "-o", "/dev/null", "-e"]);
        strace.arg(format!("inject=getdents64:retval=0:{fault}"));
        strace.arg(example("rm").get_program()).args(["-r", "missing", "dir"]);
        strace.current_dir(tree.path()).env_remove("LD_LIBRARY_PATH");
        let output = run(&mut strace);
        let expected = [missing, if remains { not_empty } else { "" }].concat();
        assert_eq!(str::from_utf8(&output.stderr), Ok(&*expected), "{fault}");
        assert_eq!(tree.path().join("dir").exists(), remains, "{fault}");
    }
}

/// The root directory is one that the test makes, so a wrong `rm` can remove nothing else.
#[test]
fn rm_refuses_the_root_directory() {
    let script = r#"mount -t tmpfs none dir && cp "$0" dir/rm && mkdir dir/again || exit
        for library in $(ldd "$0" 2> /dev/null | grep -o "/[^ )]*"); do cp -L --parents "$library" dir; done
        mount --bind dir dir/again; for path in / // /. /.. /again/; do chroot dir /rm -r $path; done; ls dir/rm"#;
    let Some(output) = in_mount_namespace(Tree::of(&["dir/"]).path(), "rm", script) else {
        return skip("rm_refuses_the_root_directory", "user namespaces");
    };
    let refused = |path| format!("rm: {path}: Operation not permitted (os error 1)\n");
    let expected = ["/", "//", "/.", "/..", "/again"].map(refused).concat();
    let found = (str::from_utf8(&output.stderr), str::from_utf8(&output.stdout));
    assert_eq!(found, (Ok(&*expected), Ok("dir/rm\n")));
}

/// Another thread swaps directories for links to a second tree. `rm` must remove nothing there, and
/// succeeds exactly if nothing remains of its own tree.
#[test]
fn rm_stays_in_its_tree_whatever_is_swapped() {
    let _watchdog = watchdog();
    let path = |number| format!("{}/{}/{}/file", number / 16, number / 4 % 4, number % 4);
    let paths: Vec<_> = (0..64).map(path).collect();
    let at = Tree::new(|at| tree::make(&at.join("outside"), &paths));
    let [outside, link, next, tree] =
        ["outside", "link", "next", "tree"].map(|name| at.path().join(name));
    let all = all_below(&outside);
    let (mut swaps, done) = (0, AtomicBool::new(false));
    // Before the scope: if this panicked in the scope, the other thread would never end.
    let mut rms = ["1", "2"].map(|threads| {
        let mut rm = example("rm");
        rm.current_dir(at.path()).args(["-r", "-j", threads, "tree"]);
        rm
    });
    let failure = thread::scope(|scope| {
        scope.spawn(|| {
            let dirs = paths.iter().flat_map(|path| [1, 3, 5].map(|depth| &path[..depth]));
            for dir in dirs.cycle().take_while(|_| !done.load(Relaxed)) {
                let _ = fs::remove_dir_all(&link); // the swapped directory, or the link
                let _ = symlink(&outside, &link);
                // Both swaps are in the tree of one round. If the second one came a round later,
                // it would take a directory out of the tree that `rm` is removing.
                let Ok(tree) = lendir::open(&tree) else { continue };
                let swap = || renameat_with(&tree, dir, CWD, &link, RenameFlags::EXCHANGE).is_ok();
                swaps += usize::from(swap() && swap());
            }
        });
        let failure = (0..if runs_long() { 5000 } else { 50 }).find_map(|round| {
            tree::make(&next, &paths);
            let made = fs::rename(&next, &tree);
            let output = run(&mut rms[round % 2]);
            let kept = fs::rename(&tree, at.path().join(round.to_string()));
            let is_right = made.is_ok() && output.status.success() == kept.is_err();
            (!is_right).then_some((round, made, output, kept))
        });
        done.store(true, Relaxed);
        failure
    });
    if let Some((round, made, output, kept)) = failure {
        let mut remaining = all_below(at.path());
        remaining.retain(|path| path.starts_with(round.to_string()));
        panic!("round {round}: {made:?}, {output:?}, then {kept:?}: {remaining:?}");
    }
    assert!(swaps > 100, "{swaps} swaps");
    assert_eq!(all_below(&outside), all);
}

/// Two ancestors of the root, the root, and a child.
const DIRS: [&str; 4] = ["up", "up/parent", "up/parent/root", "up/parent/root/sub"];
const ROOT: &str = DIRS[2];

/// Swaps a directory for a link after the `step`th `call` of the program. Returns whether the
/// directory still existed, or `None` if the program made fewer calls.
fn swap_while_removing(threads: &str, dir: &str, call: &str, step: usize) -> Option<bool> {
    let at = Tree::new(|at| {
        tree::make(&at.join("tree"), &DIRS.map(|dir| format!("{dir}/file")));
        // The root has more directories, for the second thread.
        tree::make(&at.join("tree"), &["first/entry", "up/parent/root/a/", "up/parent/root/b/"]);
        // The victim's root is empty, because the kernel refuses to remove a full directory.
        tree::make(
            &at.join("victim"),
            &["up/file", "up/parent/file", "up/parent/root/", "sub/file"],
        );
    });
    let mut rm = example("rm");
    rm.args(["-r", "-j", threads, "first", ROOT]).current_dir(at.path().join("tree"));
    let mut stepped = Stepped::start(&rm, call, step);
    if !stepped.wait() {
        return None;
    }
    let (swapped, victim) = (at.path().join("tree").join(dir), at.path().join("victim"));
    let victim = victim.join(if dir.len() > ROOT.len() { "sub" } else { dir });
    let before = all_below(&at.path().join("victim"));
    let is_first_whole = at.path().join("tree/first/entry").exists();
    let is_swapped = fs::rename(&swapped, at.path().join("aside")).is_ok();
    if is_swapped {
        symlink(&victim, &swapped).unwrap();
    }
    stepped.resume();
    let all = all_below(at.path());
    let own = all.iter().filter(|path| path.ends_with("file")).count() - 3;
    let is_allowed = all_below(&at.path().join("victim")) == before
        || dir.len() < ROOT.len() && own == 4 && is_first_whole;
    assert!(is_allowed, "{dir}, {call} {step}: {all:#?}");
    Some(is_swapped)
}

/// Each call of the program is followed by a swap: of an ancestor of the second root, of that root,
/// or of a child. If an ancestor is swapped before the root is looked up, the path leads to the
/// victim. Then `rm` may remove the victim instead of its own tree, but never both. Once `rm` has
/// removed the entry in the first root, the victim must stay.
#[test]
fn rm_removes_one_tree_whatever_is_swapped() {
    let sweep = |swap| {
        swap_after_each_call(
            "rm_removes_one_tree_whatever_is_swapped",
            &DIRS,
            &["openat", "openat2", "getdents64", "unlinkat", "?newfstatat"],
            swap,
        );
    };
    sweep(|dir, call, step| swap_while_removing("1", dir, call, step));
    sweep(|dir, call, step| swap_while_removing("2", dir, call, step));
}

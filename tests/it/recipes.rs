//! Runs the programs of `src/recipes.md`, which read `src` in the current directory. A file in
//! `tests/recipes` belongs to the recipe of its name: its `test` calls the recipe's functions.

use crate::examples::STATX_REFUSED;
use crate::fixture::{has_gnu, run, run_into};
use crate::support::prelude::*;
use crate::support::recipe::{self, PAGE, programs};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::Output;
use std::str;

/// Runs the recipe of this title, or its `test`, in a directory that contains `src`.
fn recipe(title: &str, at: &Path) -> Command {
    let mut command = recipe::recipe(title);
    command.current_dir(at);
    command
}

/// Runs the recipe under a command that takes its program and its arguments.
fn under(prefix: &[&str], title: &str, at: &Path) -> Command {
    let recipe = recipe(title, at);
    let mut command = Command::new(prefix[0]);
    command.args(&prefix[1..]).arg(recipe.get_program()).args(recipe.get_args()).current_dir(at);
    command
}

/// Returns the sorted lines of the output and of the errors.
fn lines(output: &Output) -> [Vec<&str>; 2] {
    [&output.stdout, &output.stderr].map(|text| {
        let mut lines: Vec<_> = str::from_utf8(text).unwrap().lines().collect();
        lines.sort_unstable();
        lines
    })
}

/// Runs the `test` of each of these recipes.
fn run_test(title: &str, at: &Path) {
    let output = run_unprivileged(&mut recipe(&format!("test {title}"), at));
    assert!(output.status.success() && output.stderr.is_empty(), "{title}: {output:?}");
}

#[test]
fn every_recipe_is_a_whole_program() {
    let programs: Vec<_> = programs().collect();
    assert!(!PAGE.contains(" println!"), "it panics if the output is closed");
    assert_eq!(PAGE.matches("\n```").count(), 2 * programs.len());
    for (title, code) in programs {
        assert!(title.len() <= 22 && code.contains("\nfn main()"), "{title}");
        let hides = |line: &str| line == "#" || line.starts_with("# ");
        assert!(!code.lines().any(hides), "{title} hides lines");
    }
}

#[test]
fn full_output_is_an_error_and_no_panic() {
    let tree = Tree::of(&["src/a/b"]);
    for (title, _) in programs().filter(|(_, code)| code.contains("io::stdout()")) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = run_into(&mut recipe(title, tree.path()), full);
        let errors = String::from_utf8(output.stderr).unwrap();
        let is_error = matches!(output.status.code(), Some(1 | 2));
        assert!(is_error && errors.contains("No space left on device"), "{title}: {errors}");
    }
}

#[test]
fn errors_are_reported_and_change_the_status() {
    let tree = Tree::of(&["src/locked/", "src/file"]);
    chmod(tree.path().join("src/locked"), 0);
    let output = run_unprivileged(&mut recipe("Report errors", tree.path()));
    let reports = [
        "cannot read the tree: /no/such/directory: No such file or directory (os error 2)",
        "src/locked: Permission denied (os error 13)",
    ];
    assert_eq!((lines(&output)[1].as_slice(), output.status.code()), (&reports[..], Some(2)));
    assert!(output.stdout.ends_with(b" bytes\n"), "{output:?}");
}

#[test]
fn own_error_at_a_root_is_not_a_missing_root() {
    let tree = Tree::of(&["src/"]);
    let output = run(&mut recipe("test Report errors", tree.path()));
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn recipe_functions_hold_what_they_promise() {
    for (title, paths) in [
        ("Pages of a directory", &["src/"][..]),
        ("Pages of a tree", &["src/a/locked/", "src/a.txt", "src/a/b", "src/b/c/d", "src/b0"]),
        ("Open a file later", &["src/a/file", "outside/file"]),
        ("Owner and mode", &["src/a/b/", "src/a/file", "outside"]),
        ("Leave out mounts", &[]),
        ("Stream to async code", &["src/"]),
    ] {
        run_test(title, Tree::on_disk(|at| make(at, paths)).path());
    }
}

#[test]
fn sums_count_each_file_once_as_du_does() {
    const TEST: &str = "sums_count_each_file_once_as_du_does";
    if !has_gnu("du", TEST) {
        return;
    }
    let tree = Tree::on_disk(|at| {
        make(at, &["src/a/b/c/", "src/d/e", "src/empty/"]);
        fs::write(at.join("src/a/b/file"), vec![1; 100_000]).unwrap();
        (0..20).for_each(|number| {
            fs::hard_link(at.join("src/a/b/file"), at.join(format!("src/a/b/link {number}")))
                .unwrap();
        });
        File::create(at.join("src/d/sparse")).unwrap().set_len(1 << 40).unwrap();
    });
    let mut du = Command::new("du");
    let du = run(du.args(["--block-size=1", "src"]).current_dir(tree.path()));
    let expected: Vec<_> = lines(&du)[0].iter().map(|line| line.replace('\t', " ")).collect();
    for title in ["Add up sizes", "Sizes on all cores"] {
        let mut commands = vec![recipe(title, tree.path())];
        if can_trace(TEST) {
            commands.extend(STATX_REFUSED.map(|inject| {
                let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject];
                under(&strace, title, tree.path())
            }));
        }
        for mut command in commands {
            let output = run(&mut command);
            let sums: Vec<_> = lines(&output)[0].iter().map(|line| line.replace('"', "")).collect();
            assert_eq!(sums, expected, "{command:?}");
        }
    }
}

#[test]
fn progress_rises_to_its_end() {
    let tree = Tree::on_disk(|at| {
        make(&at.join("src"), &["locked/a/", "b/c/d/file"]);
        tree::comb(&at.join("src"), 40);
    });
    chmod(tree.path().join("src/locked"), 0);
    for title in ["Show progress", "test Show progress"] {
        let output = run_unprivileged(&mut recipe(title, tree.path()));
        let shown = String::from_utf8(output.stderr).unwrap();
        let numbers = shown.split(['\r', '\n']).filter_map(|text| text.strip_suffix(" %"));
        let numbers: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
        let is_last = numbers.last() == Some(&100);
        assert!(numbers.len() > 3 && numbers.is_sorted() && is_last, "{title}: {shown:?}");
        assert!(output.status.success() && output.stdout.ends_with(b" entries\n"), "{title}");
    }
}

#[test]
fn ignore_rules_hold_below_and_can_be_broken() {
    let tree = Tree::on_disk(|at| {
        let at = at.join("src");
        make(&at, &["dir/.ignore/rule", "a/x", "a/b/x", "a/b/y/", "link/", "locked/", "fifo/"]);
        make(&at, &["x", "huge/x", "deep/"]);
        fs::write(at.join("a/.ignore"), "x\n").unwrap();
        fs::write(at.join("a/b/.ignore"), "y").unwrap();
        symlink("/etc/passwd", at.join("link/.ignore")).unwrap();
        fs::write(at.join("locked/.ignore"), "x").unwrap();
        chmod(at.join("locked/.ignore"), 0);
        mkfifoat(CWD, at.join("fifo/.ignore"), Mode::RWXU).unwrap();
        File::create(at.join("huge/.ignore")).unwrap().set_len(1 << 40).unwrap();
        let mut deep = at.join("deep");
        for _ in 0..66 {
            deep.push("d");
            fs::create_dir(&deep).unwrap();
            fs::write(deep.join(".ignore"), "x").unwrap();
        }
    });
    let _watchdog = watchdog();
    let output = run_unprivileged(&mut recipe("Apply ignore rules", tree.path()));
    let [listed, errors] = lines(&output);
    let listed: Vec<_> = listed.into_iter().filter(|line| !line.contains("/deep/")).collect();
    let expected = [
        "/.ignore",
        "/.ignore/rule", // a directory
    ];
    let below = |dir: &str| listed.iter().filter(|line| line.contains(dir)).count();
    let found = ["src/a/", "src/dir", "src/huge/", "src/fifo/"].map(below);
    assert_eq!(found, [3, 3, 2, 1], "{listed:?}");
    assert!(expected.iter().all(|path| listed.contains(&&*format!("\"src/dir{path}\""))));
    let failed =
        ["dir", "fifo", "huge", "link", "locked"].map(|dir| format!("src/{dir}/.ignore: "));
    assert_eq!(errors.len(), failed.len() + 2, "{errors:?}"); // two sets of `deep` are too many
    assert!(failed.iter().all(|path| errors.iter().any(|error| error.starts_with(path))));
    assert!(output.status.success());
}

#[test]
fn tagged_directories_are_skipped() {
    let tree = Tree::of(&["src/cache/CACHEDIR.TAG", "src/cache/below/x", "src/other/x"]);
    let output = run(&mut recipe("Skip tagged caches", tree.path()));
    assert_eq!(lines(&output)[0], ["\"src/cache\"", "\"src/other\"", "\"src/other/x\""]);
}

#[test]
fn threads_list_in_the_order_of_one_walk() {
    let tree = Tree::on_disk(|at| {
        make(&at.join("src"), &["a.b", "b/\n/c", "b/é/", "b!", "locked/x"]);
        tree::comb(&at.join("src"), 30);
        symlink("..", at.join("src/link")).unwrap();
    });
    chmod(tree.path().join("src/locked"), 0);
    let output = run_unprivileged(&mut recipe("Order on all cores", tree.path()));
    let mut walk =
        lendir::Walk::options().order(lendir::Order::Bytes).open(tree.path().join("src"));
    let walk = walk.as_mut().unwrap();
    let mut expected = String::new();
    while let Some(entry) = walk.next().unwrap() {
        if !entry.relative_path().starts_with("locked/x") {
            writeln!(expected, "{:?}", Path::new("src").join(entry.relative_path())).unwrap();
        }
    }
    assert_eq!(str::from_utf8(&output.stdout), Ok(&*expected));
    assert_eq!(lines(&output)[1].len(), 1);
}

/// Directories appear while the tree is walked and afterwards. Each entry must be printed.
#[test]
fn watch_misses_no_entry() {
    let tree = Tree::of(&["src/a/b/c/", "outside/secret/"]);
    symlink("../outside", tree.path().join("src/link")).unwrap();
    let mut watch = recipe("Watch with inotify", tree.path());
    let mut process = Process::start(watch.stdout(Stdio::piped()).stderr(Stdio::null()));
    let lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
    let _watchdog = watchdog();
    let mut missing: Vec<_> = (0..300).map(|number| format!("\"d{number}/e/f\"")).collect();
    missing.extend(["\"a/b/moved/x\"", "\"a/b/late\""].map(String::from));
    for number in 0..300 {
        make(&tree.path().join("src"), &[format!("d{number}/e/f")]);
    }
    make(tree.path(), &["outside/moved/x"]);
    fs::rename(tree.path().join("outside/moved"), tree.path().join("src/a/b/moved")).unwrap();
    fs::write(tree.path().join("src/a/b/late"), "").unwrap();
    for line in lines {
        let line = line.unwrap();
        assert!(!line.contains("secret"), "{line}");
        missing.retain(|path| !line.ends_with(path.as_str()));
        if missing.is_empty() {
            return;
        }
    }
    panic!("the program has ended");
}

/// Two ancestors of the root, the root, and a directory in it.
const DIRS: [&str; 4] = ["up", "up/old", "up/old/sub", "up/old/sub/deep"];

fn remove(at: &Path) -> Command {
    recipe("Remove a tree", &at.join("tree/up"))
}

/// Swaps a directory for a link after the `step`th `call` of the recipe. Returns whether the
/// directory still existed, or `None` if the recipe made fewer calls.
fn swap_while_removing(dir: &str, call: &str, step: usize) -> Option<bool> {
    let at = Tree::new(|at| {
        make(&at.join("tree"), &DIRS.map(|dir| format!("{dir}/file")));
        make(&at.join("victim"), &["file", "old/", "sub/", "deep/"]);
    });
    let (swapped, victim) = (at.path().join("tree").join(dir), at.path().join("victim"));
    let mut stepped = Stepped::start(&remove(at.path()), call, step);
    if !stepped.wait() {
        return None;
    }
    let is_swapped = fs::rename(&swapped, at.path().join("aside")).is_ok();
    if is_swapped {
        symlink(&victim, &swapped).unwrap();
    }
    stepped.resume();
    assert_eq!(lendir::walk(victim).unwrap().into_iter().count(), 4, "{dir}, {call} {step}");
    Some(is_swapped)
}

#[test]
fn removal_stays_in_its_tree_whatever_is_swapped() {
    swap_after_each_call(
        "removal_stays_in_its_tree_whatever_is_swapped",
        &DIRS,
        &["openat", "openat2", "getdents64", "unlinkat", "?newfstatat"],
        swap_while_removing,
    );
}

/// Makes an entry in a directory after each call of the recipe, as another process may.
#[test]
fn removal_empties_a_directory_again() {
    const TEST: &str = "removal_empties_a_directory_again";
    if !can_trace(TEST) {
        return;
    }
    let _watchdog = watchdog();
    let make_late = |step| {
        let at = Tree::of(&["tree/up/old/sub/file"]);
        let late = at.path().join("tree/up/old/sub/late");
        let mut stepped = Stepped::start(&remove(at.path()), "unlinkat", step);
        let is_stopped = stepped.wait();
        let is_made = is_stopped
            && fs::create_dir(&late).and_then(|()| fs::write(late.join("late"), "")).is_ok();
        if is_stopped {
            stepped.resume();
            assert!(!at.path().join("tree/up/old").exists(), "step {step}");
        }
        is_stopped.then_some(is_made)
    };
    assert!((1..).map_while(make_late).filter(|is_made| *is_made).count() > 0);
}

/// A server leaves out all but the first entries of a directory, twice, or all of them.
#[test]
fn removal_goes_on_while_entries_get_fewer() {
    const TEST: &str = "removal_goes_on_while_entries_get_fewer";
    if !can_trace(TEST) {
        return;
    }
    for (left_out, is_removed) in [("2+2", true), ("1+", false)] {
        let at = Tree::of(&["tree/up/old/"]);
        let old = at.path().join("tree/up/old");
        // The first batch of a walk has 43 such names, so three readings find 43, 43 and 24.
        for number in 0..110 {
            File::create(old.join(format!("{number:0255}"))).unwrap();
        }
        let inject = format!("inject=getdents64:retval=0:when={left_out}");
        let strace = ["strace", "-qq", "-e", "trace=getdents64", "-e", &inject, "-o", "/dev/null"];
        let output = run(&mut under(&strace, "Remove a tree", &at.path().join("tree/up")));
        assert_eq!(output.status.success(), is_removed, "{output:?}");
        assert_eq!(old.exists(), !is_removed, "{output:?}");
    }
}

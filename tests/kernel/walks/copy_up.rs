//! Levels that change while they are closed, but stay in their place. The walk recognises them,
//! even on overlayfs, which copies a changed directory to another layer with another birth time.

use crate::file_systems::{Contents, FILE_SYSTEMS, FileSystem, LAYERED};
use crate::mounted::{Mounted, Part};
use crate::report::{Report, SORTED, comb, level};
use crate::support::prelude::*;
use rustix::fs::{AtFlags, CWD, Gid, Timespec, Timestamps, Uid, chown, utimensat};

const DEPTH: usize = 8;

type Change = fn(&Path) -> io::Result<()>;

/// The changes that are made when the walk is at the deepest level. None changes a name that the
/// walk has yet to read.
const CHANGES: [(&str, Change); 5] = [
    ("a file is written at the bottom", |tree| {
        fs::write(tree.join(level(DEPTH)).join("z/file"), "contents")
    }),
    ("a file is renamed and back in each level", |tree| {
        in_each_level(tree, |dir| {
            fs::rename(dir.join("file"), dir.join("renamed"))?;
            fs::rename(dir.join("renamed"), dir.join("file"))
        })
    }),
    ("a directory comes and goes in each level", |tree| {
        in_each_level(tree, |dir| {
            fs::create_dir(dir.join("new"))?;
            fs::remove_dir(dir.join("new"))
        })
    }),
    ("each level has another mode, owner and time", |tree| {
        in_each_level(tree, |dir| {
            fs::set_permissions(dir, Permissions::from_mode(0o711))?;
            chown(dir, Some(Uid::from_raw(1)), Some(Gid::from_raw(1)))?;
            let time = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
            let times = Timestamps { last_access: time, last_modification: time };
            Ok(utimensat(CWD, dir, &times, AtFlags::empty())?)
        })
    }),
    ("each level has another name", |tree| {
        (1..=DEPTH).rev().try_for_each(|depth| {
            fs::rename(tree.join(level(depth)), tree.join(level(depth - 1)).join("e"))
        })
    }),
];

fn in_each_level(tree: &Path, change: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    (0..=DEPTH).try_for_each(|depth| change(&tree.join(level(depth))))
}

const OPTIONS: [TestOptions; 2] = [SORTED, TestOptions { second_visits: true, ..SORTED }];

#[test]
fn walk_recognises_changed_levels() {
    let _watchdog = machine::watchdog();
    let can_change =
        |system: &&FileSystem| matches!(system.contents, Contents::Written | Contents::Merged);
    let systems = FILE_SYSTEMS.iter().filter(can_change).chain(&LAYERED);
    let fill = |at: &Path, part: Part| {
        for case in (0..CHANGES.len() * OPTIONS.len() * 2).filter(|_| part.has(0)) {
            let tree = at.join(case.to_string());
            comb(&tree, DEPTH);
            in_each_level(&tree, |dir| fs::write(dir.join("file"), "")).unwrap();
        }
    };
    thread::scope(|scope| {
        for system in systems {
            scope.spawn(move || {
                machine::skip_unless(
                    &format!("walk: closed levels change, on {}", system.name),
                    system.mounted(fill, check),
                );
            });
        }
    });
}

fn check(mounted: &Mounted) {
    let mut trees = 0..;
    for (what, change) in CHANGES {
        for options in OPTIONS {
            for threads in [1, 2] {
                let tree =
                    mounted.at.join(trees.next().expect("BUG: trees without end").to_string());
                // These servers read by path: a directory whose path changes while another thread
                // reads it seems empty.
                if threads == 2
                    && what == "each level has another name"
                    && mounted.system.name.starts_with("FUSE")
                {
                    continue;
                }
                let all = Report::expected(&tree).unwrap();
                let report = walk(&tree, options, threads, &|| match change(&tree) {
                    // overlays: a directory of a lower layer
                    Err(error) if error.raw_os_error() == Some(EXDEV) => {}
                    changed => changed.unwrap(),
                });
                let what =
                    format!("{}: {what}, {options:?}, {threads} threads", mounted.system.name);
                assert_eq!(report.clone().sorted(), all, "{what}");
                let mut left = report.second_visits;
                left.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
                assert_eq!(
                    left,
                    if options.second_visits { all.first_visits } else { vec![] },
                    "{what}"
                );
            }
        }
    }
}

/// Walks, and calls `change` when the walk is at the deepest level.
fn walk(tree: &Path, options: TestOptions, threads: usize, change: &(impl Fn() + Sync)) -> Report {
    let mut run = options.begin(tree);
    if threads == 1 {
        run.until(level(DEPTH));
        change();
        return run.finish();
    }
    let is_changed = AtomicBool::new(false);
    Report::of(run.run_parallel(threads, |visitor| {
        if visitor.is_at(&level(DEPTH)) && !is_changed.swap(true, SeqCst) {
            change();
        }
    }))
}

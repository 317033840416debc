//! Names that the caller passes to `Dir`, with a model of what a walk enters.

use crate::support::options::OPTIONS;
use crate::support::prelude::*;
use crate::support::scan::path;

/// After `skip_subdirs`, the walk enters exactly what the caller names, in that order, even twice,
/// whatever the caller has read or requested before. The last letter of a name says what it is.
#[test]
fn walk_enters_exactly_the_named_directories() {
    let _watchdog = watchdog();
    let outside = Tree::of(&["below/"]);
    let tree = Tree::new(|at| {
        for number in 0..60 {
            tree::make(at, &[format!("{number}d/"), format!("{number}f")]);
            symlink(outside.path().join("below"), at.join(format!("{number}l"))).unwrap();
        }
    });
    let at = tree.path();
    // Some are missing, and prefixes or extensions of others.
    let missing = ["0", "1dd", "2d ", "zzz", &"x".repeat(300)].map(String::from);
    let there = |kind| (0..60).map(move |number| format!("{number}{kind}"));
    let names: Vec<_> = ["d", "f", "l"].into_iter().flat_map(there).chain(missing).collect();
    for seed in 0..if runs_long() { 4000 } else { 60 } {
        let (mut random, follows) = (Random(seed), seed % 2 == 0);
        let most = [1, 4, names.len()][random.below(3)];
        let any = (0..random.below(most)).map(|_| &*names[random.below(names.len())]);
        let wanted: Vec<_> = any.collect();
        let outcome = |name: &&str| match name.as_bytes() {
            name if name.len() > 255 => Some(libc::ENAMETOOLONG),
            _ if !at.join(name).exists() => (!follows).then_some(libc::ENOENT),
            [.., b'd'] => Some(0),
            [.., b'l'] => Some(if follows { 0 } else { libc::ENOTDIR }),
            _ => (!follows).then_some(libc::ENOTDIR),
        };
        let expected = wanted.iter().filter_map(|name| Some((at.join(name), outcome(name)?)));
        let mut expected: Vec<_> = expected.collect();
        for (threads, second_visits) in [(1, true), (1, false), (2, true), (8, true)] {
            let options = WalkDirs::options().max_open(4).second_visits(second_visits);
            let walk = options.follow_links(follows).open(at).unwrap();
            let parts = walk.run_parallel(threads, |worker| {
                let (mut found, mut listing) = (Vec::new(), Listing::new());
                let mut errors = Vec::new();
                while let Some(mut dir) =
                    worker.next_or_report(|error| errors.push((path(&error).into(), errno(&error))))
                {
                    found.append(&mut errors);
                    match dir.depth() {
                        _ if dir.is_second_visit() => {}
                        0 => name_some(&mut dir, &wanted, &mut listing, seed),
                        _ => found.push((dir.path().to_owned(), 0)),
                    }
                }
                [found, errors].concat()
            });
            let mut found = parts.concat();
            if threads > 1 {
                found.sort();
                expected.sort();
            }
            assert_eq!(found, expected, "seed {seed}, {threads} threads, {second_visits}");
        }
    }
}

/// Makes random calls that do not matter, and then names these.
fn name_some(dir: &mut Dir<'_>, names: &[&str], listing: &mut Listing, seed: u64) {
    let mut random = Random(seed);
    for _ in 0..random.below(40) {
        match random.below(40) {
            0 => dir.read_into(listing).unwrap(),
            1 => assert!(dir.count().is_ok()),
            2 => dir.skip_subdirs(),
            call => match dir.next().unwrap() {
                Some(entry) if call < 8 => entry.follow(),
                Some(entry) if call < 13 => entry.skip_subtree(),
                Some(entry) if call < 16 => drop(entry.metadata().unwrap()),
                _ => {}
            },
        }
    }
    dir.skip_subdirs();
    for name in names {
        assert!(dir.enter_name(name).unwrap());
    }
    while random.below(2) == 0 && dir.next().unwrap().is_some() {}
    if random.below(4) == 0 {
        dir.read_into(listing).unwrap();
    }
}

/// A call that cannot have the effect that its caller wants is an error at once.
#[test]
fn names_need_skip_subdirs_and_one_component() {
    let tree = Tree::of(&["d/"]);
    let root = tree.path().to_str().unwrap();
    // As text, because a `Path` overlooks slashes.
    let path = |error: &Error| error.path().unwrap().to_str().unwrap().to_owned();
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    let mut dir = walk.next().unwrap().unwrap();
    let error = dir.enter_name("d").unwrap_err();
    assert_eq!((path(&error), error.depth()), (format!("{root}/d"), 1));
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::InvalidInput, None));
    dir.skip_subdirs();
    for name in ["", ".", "..", "/", "/d", "d/", "d/e", "../d", "d\0"] {
        let error = dir.enter_name(name).unwrap_err();
        let slash = if name.is_empty() { "" } else { "/" };
        assert_eq!(path(&error), format!("{root}{slash}{name}"));
        assert_eq!(errno(&error), libc::EINVAL);
    }
    assert!(walk.next().unwrap().is_none(), "a refused name is entered");
}

/// The caller skips the contents of each directory and enters its children by name. So the walk
/// reads no directory, and needs no permission to read one.
#[test]
fn threads_enter_named_directories() {
    let _watchdog = watchdog();
    as_nobody(|| {
        let tree = Tree::new(|at| tree::random(at, 11));
        let all = expected_visits(tree.path(), false, |_| Requests::ALL);
        let all = directories(&all);
        let mut below = BTreeMap::<_, Vec<_>>::new();
        for path in &all {
            below.entry(path.parent().unwrap()).or_default().push(path.file_name().unwrap());
        }
        for path in all.iter().rev() {
            chmod(path, 0o300);
        }
        for options in OPTIONS {
            for threads in THREADS {
                let parts =
                    options.build().open(tree.path()).unwrap().run_parallel(threads, |worker| {
                        let mut paths = Vec::new();
                        while let Some(mut dir) = worker.next().unwrap() {
                            if !dir.is_second_visit() {
                                dir.skip_subdirs();
                                for name in below.get(dir.path()).into_iter().flatten() {
                                    dir.enter_name(name.as_bytes()).unwrap();
                                }
                                paths.push(dir.path().to_owned());
                            }
                        }
                        paths
                    });
                let mut paths: Vec<_> = parts.into_iter().flatten().collect();
                paths.sort_unstable_by(|a: &PathBuf, b| a.as_os_str().cmp(b.as_os_str()));
                assert_eq!(paths, all, "{threads} threads, {options:?}");
            }
        }
    });
}

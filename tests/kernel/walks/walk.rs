//! `Walk` while calls fail or types are missing.

use crate::fuse::{
    Answer, Batch, Directory, Node, Server, child, dir, directory, directory_that_ends, leaf,
    record, served,
};
use crate::report::SORTED_WALK;
use crate::support::prelude::*;
use crate::support::requests;
use crate::trap::{self, GETDENTS64, NEWFSTATAT, OPENAT2, STATX, trapped};
use libc::{DT_DIR, DT_REG, DT_UNKNOWN, c_int, c_long};
use rustix::fs::{AtFlags, statat};

/// The read error of a directory comes after the entries that were read until then, or before them
/// if they are sorted. The subtrees of these entries are complete.
#[test]
fn read_error_comes_where_reading_ended() {
    trapped("walks::walk::read_error_comes_where_reading_ended", &[GETDENTS64], |tree| {
        let name = |number| format!("big/{number:04} {}", "n".repeat(100));
        for order in [Order::Bytes, Order::Unsorted] {
            let tree = &tree.join(format!("{order:?}"));
            let big = tree.join("big");
            make(tree, &["a/f", "z/f"]);
            // Without an order, directories would be read between two batches of `big`.
            let end = if order == Order::Bytes { "/" } else { "" };
            make(tree, &(0..1000).map(|number| name(number) + end).collect::<Vec<_>>());
            let below = (0..1000).step_by(50).filter(|_| order == Order::Bytes);
            make(tree, &below.map(|number| name(number) + "/g/h/f").collect::<Vec<_>>());
            let options = EntryWalk { order, ..ENTRY_WALK };
            let all = options.expected(tree);
            for number in 1..=3 {
                let (mut read, mut items) = (options.begin(tree), Vec::<Visit>::new());
                while let Some(item) = next(&mut read, |_| ()) {
                    if item.path == big && item.errno().is_none() {
                        trap::fail(GETDENTS64, EIO, move |made| made == number);
                    }
                    if item.errno().is_some() {
                        let is_first = items.last().is_some_and(|before| before.path == big);
                        assert_eq!(is_first, order == Order::Bytes || number == 1);
                    }
                    items.push(item);
                }
                trap::count(GETDENTS64);
                let what = format!("{order:?}, call {number}");
                assert_eq!(errors_between(&items, &all, false, &what), [(&*big, EIO)]);
                let is_in_big =
                    |item: &&Visit| item.path.parent() == Some(&big) && item.errno().is_none();
                let come: Vec<_> = items.iter().filter(is_in_big).collect();
                let is_right = come.len() < 1000 && come.is_empty() == (number == 1);
                assert!(is_right, "{what}: {} entries", come.len());
                assert!(
                    come.last().is_none_or(|last| last.what == What::Entry { is_last: true }),
                    "{what}"
                );
                // The subtrees of all entries that come.
                let is_below =
                    |item: &&Visit| come.iter().any(|above| item.path.starts_with(&above.path));
                let [below, whole] = [&items, &all].map(|all| all.iter().filter(is_below).count());
                assert_eq!(below, whole, "{what}");
            }
        }
    });
}

/// The model of both walks holds where directories list no types, whatever the caller asks, and
/// whether or not the kernel has `statx`. What is not a directory is not opened.
#[test]
fn walk_follows_entries_of_unknown_type() {
    const TEST: &str = "walks::walk::walk_follows_entries_of_unknown_type";
    trapped(TEST, &[GETDENTS64, OPENAT2, STATX], |tree| {
        fs::create_dir(tree.join("root")).unwrap(); // links of a random tree lead above it
        tree::random(&tree.join("root"), 6);
        let lstat = |path: &Path| fs::symlink_metadata(path).unwrap();
        lstat(tree); // if the first `statx` fails, `std` makes no other
        let hide = |is_refused| {
            trap::count(OPENAT2);
            trap::hide_types();
            if is_refused {
                trap::refuse(STATX, ENOSYS);
            }
        };
        let abouts = [About::Nothing, About::Follow].into_iter();
        for about in abouts.chain((0..if runs_long() { 200 } else { 8 }).map(About::Random)) {
            for is_refused in [false, true] {
                let options = EntryWalk { about, max_depth: 6, ..SORTED_WALK };
                let expected = options.expected(tree);
                let is_dir = |visit: &&Visit| visit.depth < 6 && lstat(&visit.path).is_dir();
                let dirs = expected.iter().filter(is_dir).count();
                hide(is_refused);
                let items = options.read(tree);
                let opened = trap::made() as usize;
                trap::count(GETDENTS64);
                assert_eq!(items, expected, "{options:?}");
                let is_exact = matches!(about, About::Nothing) && !is_refused;
                assert!(!is_exact || opened == dirs, "{opened} opened of {dirs}");

                let requests = |path: &Path| match about {
                    About::Random(seed) => Requests::random(seed, path),
                    _ => Requests { about, ..Requests::ALL },
                };
                let expected = expected_visits(tree, false, requests);
                hide(is_refused);
                let visits = collect_visits(&mut requests::walk(tree, 5, false), requests);
                let opened = trap::made() as usize;
                trap::count(GETDENTS64);
                let dirs = directories(&expected).len() - 1;
                assert!(!is_exact || opened == dirs, "{opened} opened of {dirs}");
                assert_eq!(visits, expected, "{about:?}");
            }
        }
        let follows = EntryWalk { about: About::Follow, max_depth: 6, ..SORTED_WALK };
        let expected = follows.expected(tree);
        trap::hide_types();
        let by_option = follows.build().follow_links(true).open(tree).unwrap();
        let items = EntryWalk { about: About::Nothing, ..follows }.rest(&mut { by_option });
        trap::count(GETDENTS64);
        assert_eq!(items, expected);
    });
}

/// The file at the name of a directory during the calls about it, and after them: `d` for the
/// directory, `f` for a file, `-` for nothing.
type There = [char; 2];

/// The entry `d` is entered, or its error, for each change, query, and call that fails. `None` stands
/// for an entry that is passed over.
#[rustfmt::skip]
#[allow(clippy::type_complexity, reason = "a row of the table")]
const CHANGES: [(bool, &str, There, &[(c_long, c_int)], Option<c_int>); 20] = [
    (true,  "",          ['d', 'd'], &[],                   Some(0)),
    (true,  "",          ['d', 'f'], &[],                   Some(ENOTDIR)),
    (true,  "",          ['d', '-'], &[],                   Some(ENOENT)),
    (true,  "file_type", ['f', 'd'], &[],                   Some(0)), // it has the type
    (true,  "metadata",  ['f', 'd'], &[],                   None),
    (true,  "metadata",  ['-', 'd'], &[],                   Some(0)),
    (true,  "metadata",  ['f', 'd'], &[(STATX, ENOSYS)],    None),
    (true,  "metadata",  ['f', 'd'], &UNKNOWN,              Some(0)),
    (true,  "",          ['d', 'd'], &[(OPENAT2, ENOENT)],  Some(ENOENT)),
    (true,  "",          ['d', 'd'], &[(OPENAT2, EACCES)],  Some(EACCES)),
    (false, "",          ['d', 'd'], &UNKNOWN,              Some(0)),
    (false, "",          ['d', 'f'], &UNKNOWN,              None),
    (false, "",          ['d', '-'], &[],                   None),
    (false, "file_type", ['f', 'd'], &[],                   None),
    (false, "file_type", ['f', 'd'], &UNKNOWN,              Some(0)),
    (false, "file_type", ['d', 'f'], &[],                   Some(ENOTDIR)),
    (false, "file_type", ['d', '-'], &[],                   Some(ENOENT)),
    (false, "file_type", ['d', 'f'], &UNKNOWN,              None),
    (false, "",          ['d', 'd'], &[(OPENAT2, ENOENT)],  Some(ENOENT)),
    (false, "",          ['d', 'd'], &[UNKNOWN[0], UNKNOWN[1], (OPENAT2, ENOENT)], None),
];

/// Both calls that tell a type fail.
const UNKNOWN: [(c_long, c_int); 2] = [(STATX, ENOSYS), (NEWFSTATAT, EIO)];

/// A walk relies on the last answer about an entry, and the walk asks if there is none.
#[test]
fn walk_relies_on_the_last_answer() {
    const TEST: &str = "walks::walk::walk_relies_on_the_last_answer";
    trapped(TEST, &[GETDENTS64, OPENAT2, STATX, NEWFSTATAT], |tree| {
        make(tree, &["root/d/x"]);
        let [root, kept] = ["root", "kept"].map(|name| tree.join(name));
        let at = root.join("d");
        let put = |there| {
            let _ = fs::remove_file(&at).or_else(|_| fs::rename(&at, &kept));
            match there {
                'd' => fs::rename(&kept, &at).unwrap(),
                'f' => fs::write(&at, "").unwrap(),
                _ => {}
            }
        };
        for (has_types, query, [during, after], refused, expected) in CHANGES {
            let visit = |entry: &Entry<'_>| {
                put(during);
                match query {
                    "file_type" => drop(entry.file_type()),
                    "metadata" => drop(entry.metadata()),
                    _ => {}
                }
                put(after);
            };
            let set = || {
                let errno =
                    refused.iter().find(|(call, _)| *call == OPENAT2).map(|(_, errno)| *errno);
                // The second call opens `.`, to see whether a filter refuses it.
                trap::fail(OPENAT2, errno.unwrap_or(0), move |number| {
                    errno.is_some() && number != 2
                });
                if !has_types {
                    trap::hide_types();
                }
                for (call, errno) in refused.iter().filter(|(call, _)| *call != OPENAT2) {
                    trap::refuse(*call, *errno);
                }
            };
            let (mut of_walk, mut of_dirs) = (None, None);
            let mut walk = lendir::walk(&root).unwrap();
            set();
            while let Some(entry) = walk.next_or_report(|error| of_walk = Some(errno(&error))) {
                match entry.depth() {
                    1 => visit(&entry),
                    _ => of_walk = Some(0),
                }
            }
            trap::count(GETDENTS64);
            put('d');
            let mut walk = lendir::walk_dirs(&root).unwrap();
            set();
            while let Some(mut dir) = walk.next_or_report(|error| of_dirs = Some(errno(&error))) {
                let depth = dir.depth();
                match dir.next() {
                    Ok(Some(entry)) if depth == 0 => visit(&entry),
                    entry => of_dirs = Some(entry.map_or_else(|error| errno(&error), |_| 0)),
                }
            }
            trap::count(GETDENTS64);
            put('d');
            let what = format!("{has_types}, {query}, {during}{after}, {refused:?}");
            assert_eq!([of_walk, of_dirs], [expected; 2], "{what}");
        }
    });
}

const LEVELS: usize = 7;

/// Levels of a server that tells no end, each with the next one among its first entries, and with
/// so many files of these types. Each level ends with `end`.
fn levels(batch: Batch, count: usize, is_strange: bool, end: &Answer) -> Directory {
    let [dir_type, file_type] = if is_strange { [DT_UNKNOWN; 2] } else { [DT_DIR, DT_REG] };
    (0..LEVELS).fold(leaf(), |below, _| {
        let mut children = vec![child("d", dir_type, Ok(Node::Directory(below)))];
        let names = (0..count).map(|number| format!("{number:0400}"));
        children.extend(names.map(|name| child(name, file_type, Ok(Node::File))));
        children.push(child("y", dir_type, Ok(Node::Directory(leaf()))));
        let cookie = is_strange.then_some(COOKIE);
        Directory { cookie, batch, ..directory_that_ends(children, end.clone()) }
    })
}

/// The cookie of each place, of a server that ignores offsets.
const COOKIE: fn(u64) -> u64 = |_| 7;

/// A walk that closes levels while entries are unread, or has to for lack of descriptors, yields the
/// same: each entry once, with the metadata that it asked for, and each error after the entries.
#[test]
fn closed_levels_keep_what_is_unread() {
    served("walks::walk::closed_levels_keep_what_is_unread", || {
        // More than one batch of 32 KiB, less, and batches of one.
        let batches = [(Batch::Full, 90), (Batch::Full, 2), (Batch::One, 5)];
        for ((batch, count), is_strange) in
            batches.into_iter().flat_map(|batch| [(batch, false), (batch, true)])
        {
            let trees =
                [Answer::End, Answer::Error(EIO)].map(|end| levels(batch, count, is_strange, &end));
            let server = Server::mount(trees.into()).unwrap();
            for (order, metadata, read_ahead) in
                [(Order::Unsorted, false, 0), (Order::Unsorted, true, 0), (Order::Bytes, true, 2)]
            {
                let options = EntryWalk { order, read_ahead, metadata, ..ENTRY_WALK };
                let all = options.expected(server.path(0));
                for (max_open, room) in [(4, 40), (1000, 40), (1000, 2), (1000, 4)] {
                    let options = EntryWalk { max_open, ..options };
                    let what = format!(
                        "{batch:?}, {count}, {is_strange}, {options:?}, {room} descriptors"
                    );
                    let read = |directory| {
                        let mut walk = options.begin(server.path(directory));
                        let others = leave_room(room);
                        let visits = options.rest_checked(&mut walk, |entry| {
                            let flags = AtFlags::SYMLINK_NOFOLLOW;
                            let asked = statat(entry.dir_fd(), entry.name_cstr(), flags).unwrap();
                            assert_eq!(entry.metadata().unwrap().ino(), asked.st_ino, "{what}");
                        });
                        drop(others);
                        visits
                    };
                    assert_eq!(read(0), all, "{what}");
                    if order == Order::Unsorted {
                        let mut visits = read(1);
                        for visit in &mut visits {
                            let below = visit.path.strip_prefix(server.path(1)).unwrap();
                            visit.path = server.path(0).join(below);
                        }
                        let errors = errors_between(&visits, &all, false, &what);
                        let found = (errors.len(), visits.len());
                        assert_eq!(found, (LEVELS, all.len() + LEVELS), "{what}");
                    }
                }
            }
        }
    });
}

#[test]
fn endless_directory_yields() {
    served("walks::walk::endless_directory_yields", || {
        let endless = Directory::of_files(|place| record(format!("{place:050}"), DT_UNKNOWN));
        let server = Server::mount(vec![endless]).unwrap();
        let mut walk = lendir::walk(server.path(0)).unwrap();
        for number in 0..20_000 {
            let entry = walk.next().unwrap().unwrap();
            assert_eq!(entry.name(), format!("{number:050}").as_bytes());
            entry.skip_subtree(); // its type is not asked for
            assert!(!entry.is_last() && server.requests()[2] <= 1);
        }
    });
}

/// The walk does not open what `metadata` has told the caller to be a file, whether the call asked
/// or had the answer.
#[test]
fn fetched_answer_tells_the_type_as_a_query_does() {
    served("walks::walk::fetched_answer_tells_the_type_as_a_query_does", || {
        let server =
            Server::mount(vec![directory(vec![child("a", DT_DIR, Ok(Node::File))])]).unwrap();
        for (metadata, queries) in [(false, true), (true, true), (false, false), (true, false)] {
            let mut walk = Walk::options().metadata(metadata).open(server.path(0)).unwrap();
            let entry = walk.next().unwrap().unwrap();
            if queries {
                entry.metadata().unwrap();
            }
            assert_eq!(walk.next().is_err(), !queries, "metadata {metadata}");
        }
    });
}

/// Types that the directory does not list are asked for once, and not at the greatest depth, where
/// nothing is entered.
#[test]
fn types_are_asked_for_only_where_they_matter() {
    const TEST: &str = "walks::walk::types_are_asked_for_only_where_they_matter";
    trapped(TEST, &[GETDENTS64, STATX, NEWFSTATAT], |tree| {
        make(tree, &["d/a", "d/b", "d/c"]);
        let walk = |order, depth| {
            let options = EntryWalk { order, max_depth: depth, ..ENTRY_WALK };
            assert_eq!(options.read(tree).len(), if depth == 1 { 1 } else { 4 });
        };
        let readers: [(&str, &dyn Fn(usize)); 4] = [
            ("walk", &|depth| walk(Order::Unsorted, depth)),
            ("walk, sorted", &|depth| walk(Order::Bytes, depth)),
            ("walk_dirs", &|depth| {
                let mut walk = WalkDirs::options().max_depth(depth).open(tree).unwrap();
                while let Some(mut dir) = walk.next().unwrap() {
                    dir.count().unwrap();
                }
            }),
            ("walk_dirs, read_into", &|depth| {
                let mut walk = WalkDirs::options().max_depth(depth).open(tree).unwrap();
                while let Some(mut dir) = walk.next().unwrap() {
                    dir.read_into(&mut Listing::new()).unwrap();
                }
            }),
        ];
        for (reader, read) in readers {
            for (depth, expected) in [(1, 0), (2, 1), (3, 4)] {
                for (call, expected) in [(STATX, expected), (NEWFSTATAT, 0)] {
                    trap::count(call);
                    trap::hide_types();
                    read(depth);
                    assert_eq!(trap::made(), expected, "{reader} to depth {depth}, call {call}");
                    trap::count(GETDENTS64);
                }
            }
        }
    });
}

/// Between batches, and between queries for types that the server does not tell.
#[test]
fn dropped_walk_waits_for_one_call_of_each_thread() {
    served("walks::walk::dropped_walk_waits_for_one_call_of_each_thread", || {
        for (order, batch) in [(Order::Bytes, Batch::One), (Order::Path, Batch::Full)] {
            for names in [200, 800] {
                let lookups = Arc::new(AtomicU64::new(0));
                let server = Server::mount(vec![slow(names, batch, &lookups)]).unwrap();
                let mut walk = Walk::options()
                    .order(order)
                    .read_ahead(1)
                    .eager()
                    .open(server.path(0))
                    .unwrap();
                for name in ["a", "file"] {
                    assert_eq!(walk.next().unwrap().unwrap().file_name(), name);
                }
                let calls = || server.reads() + lookups.load(Relaxed);
                while calls() < 10 {
                    thread::sleep(Duration::from_millis(1));
                }
                let before = calls();
                drop(walk);
                let calls = calls() - before;
                assert!(calls <= 2, "{calls} calls, {order:?}, {names} names");
                assert!(before < names, "{before} calls before the drop, {order:?}");
            }
        }
    });
}

/// A directory `a` with a file, and a directory `b` with so many names of unknown type, each of which
/// takes a millisecond.
fn slow(names: u64, batch: Batch, lookups: &Arc<AtomicU64>) -> Directory {
    let pause = || thread::sleep(Duration::from_millis(1));
    let lookups = Arc::clone(lookups);
    let large = Directory {
        batch,
        lookup: Arc::new(move |_| {
            pause();
            lookups.fetch_add(1, Relaxed);
            Ok(Node::File)
        }),
        ..Directory::of_files(move |place| {
            if matches!(batch, Batch::One) {
                pause();
            }
            if place < names { record(place.to_string(), DT_UNKNOWN) } else { Answer::End }
        })
    };
    directory(vec![dir("a", leaf()), dir("b", large)])
}

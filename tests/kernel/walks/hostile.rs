//! Trees of a server that sends any answer.

use crate::errnos::{ERRNOS, name_of};
use crate::fuse::{
    Answer, Child, Directory, GETATTR, LONG_NAMES, Node, OPENDIR, Server, child, dir, directory,
    directory_that_ends, file, leaf, long_names_pass, served,
};
use crate::report::{OPTIONS, Report, SORTED, check_ways, level};
use crate::support::prelude::*;
use libc::{DT_DIR, DT_REG, DT_UNKNOWN, ENAMETOOLONG, c_int};

/// Makes a [`report::comb`](crate::report::comb), with `change` made to each level.
fn comb(
    levels: usize,
    leaf: &Directory,
    change: impl Fn(usize, Directory) -> Directory,
) -> Directory {
    let bottom = change(levels, directory(vec![dir("z", leaf.clone())]));
    let above =
        |below, level| change(level, directory(vec![dir("d", below), dir("z", leaf.clone())]));
    (0..levels).rev().fold(bottom, above)
}

/// A tree and the report that its walk must have.
struct Scenario {
    what: String,
    tree: Directory,
    report: Report,
}

/// Returns a scenario whose walk yields these entries and visits these directories, both divided by
/// spaces, and the root.
fn scenario(
    what: impl Into<String>,
    tree: Directory,
    entries: &str,
    visited: &str,
    errors: &[(&str, c_int)],
) -> Scenario {
    let paths = |paths: &str| paths.split_whitespace().map(PathBuf::from).collect::<Vec<_>>();
    let first_visits = [vec![PathBuf::new()], paths(visited)].concat();
    let report = Report { entries: paths(entries), first_visits, ..Report::default() };
    let errors = errors.iter().map(|(path, errno)| (PathBuf::from(path), *errno));
    Scenario { what: what.into(), tree, report: report.with_errors(errors).sorted() }
}

fn scenarios() -> Vec<Scenario> {
    let dirs = |names: &[&str]| names.iter().map(|name| dir(name, leaf())).collect();
    let as_file = child("a", DT_DIR, Ok(Node::File));
    let as_type = |d_type: u8| child(d_type.to_string(), d_type, Ok(Node::Directory(leaf())));
    let types = [DT_REG, libc::DT_LNK, libc::DT_FIFO, libc::DT_SOCK, libc::DT_CHR, libc::DT_BLK];
    let untyped = vec![
        child("a", DT_UNKNOWN, Ok(Node::Directory(leaf()))),
        child("b", DT_UNKNOWN, Ok(Node::File)),
        child("c", DT_UNKNOWN, Err(ENOENT)),
        child("d", 15, Ok(Node::Directory(leaf()))), // means nothing
    ];
    let twice = vec![dir("a", leaf()), file("b"), dir("a", leaf()), file("b")];
    let ends = |children| directory_that_ends(children, Answer::Interruption);
    let mut table = vec![
        scenario("nothing wrong", directory(twice[..2].to_vec()), "a a/file b", "a", &[]),
        scenario("a name twice", directory(twice), "a a a/file a/file b b", "a a", &[]),
        scenario(
            "a file listed as a directory",
            directory(vec![as_file, dir("z", leaf())]),
            "a z z/file",
            "z",
            &[("a", ENOTDIR)],
        ),
        scenario("other types", directory(types.map(as_type).to_vec()), "1 2 6 8 10 12", "", &[]),
        scenario("no types", directory(untyped), "a a/file b c d d/file", "a d", &[]),
        scenario("not even dots", Directory::of_files(|_| Answer::End), "", "", &[]),
        scenario("dots", directory(dirs(&[".", "..", "a", ".."])), "a a/file", "a", &[]),
        scenario("interruptions", ends(vec![dir("a", ends(vec![file("b")]))]), "a a/b", "a", &[]),
    ];
    table.extend(ERRNOS.into_iter().flat_map(|(name, errno)| failures(name, errno)));
    table
}

/// Returns the scenarios in which a request fails with this error.
fn failures(name: &str, errno: c_int) -> Vec<Scenario> {
    let mut table = Vec::new();
    if errno == EINTR {
        return table; // the walk would retry it forever
    }
    let below = |here: Child| directory(vec![dir("a", leaf()), here, dir("z", leaf())]);
    let (rest, one) = ("a a/file b z z/file", [("b", errno)]);
    let mut add = |what: &str, here, entries: &str, visited, errors: &[_]| {
        table.push(scenario(format!("`{name}` {what}"), below(here), entries, visited, errors));
    };
    add("for a name", child("b", DT_DIR, Err(errno)), rest, "a z", &one);
    if errno != ENOSYS {
        // The kernel then opens directories without a request.
        let refuses = Directory { refuses: Some((OPENDIR, errno)), ..leaf() };
        // If the error says that the directory exists, it is yielded but cannot be read.
        let is_gone = matches!(errno, ENOENT | ENOTDIR | ELOOP);
        add("for opening", dir("b", refuses), rest, if is_gone { "a z" } else { "a b z" }, &one);
    }
    let (end, errors) = (Answer::Error(errno), if errno == ENOENT { &one[..0] } else { &one[..] });
    let fails = directory_that_ends(vec![file("file"), dir("directory", leaf())], end);
    let entries = format!("{rest} b/file b/directory b/directory/file");
    add("while reading", dir("b", fails), &entries, "a b b/directory z", errors);
    table
}

/// All walks yield the stated directories, entries and errors for each lie or error of a server.
#[test]
fn lies_and_errors_lose_nothing_else() {
    served("walks::hostile::lies_and_errors_lose_nothing_else", || {
        let table = scenarios();
        let server =
            Server::mount(table.iter().map(|scenario| scenario.tree.clone()).collect()).unwrap();
        for (number, one) in table.iter().enumerate() {
            check_ways(&server.path(number), |_| &one.report, &one.what);
        }
    });
}

const DEPTH: usize = 8;

/// A level that has another inode number at each request, or an error instead, causes one error.
#[test]
fn unrecognisable_level_causes_one_error() {
    served("walks::hostile::unrecognisable_level_causes_one_error", || {
        const CLOSED: usize = 3;
        type Change = Box<dyn Fn(Directory) -> Directory>;
        let refuses = |errno| {
            Box::new(move |level| Directory { refuses: Some((GETATTR, errno)), ..level }) as Change
        };
        let mut changes =
            vec![(ENOENT, Box::new(|level| Directory { is_shifty: true, ..level }) as Change)];
        changes.extend(
            ERRNOS
                .into_iter()
                .filter(|(_, errno)| *errno != EINTR)
                .map(|(_, errno)| (errno, refuses(errno))),
        );
        let combs = changes.iter().map(|(_, change)| {
            comb(DEPTH, &leaf(), |level, here| if level == CLOSED { change(here) } else { here })
        });
        let server = Server::mount(combs.collect()).unwrap();
        for (number, (errno, _)) in changes.iter().enumerate() {
            let tree = server.path(number);
            let all = PLAIN.walk_dirs(&tree).sorted();
            assert_eq!(all.first_visits.len(), 2 * DEPTH + 2);
            for second_visits in [false, true] {
                let lost = level(CLOSED);
                let expected = all.clone().without(&[lost.join("z")]).with_errors([(lost, *errno)]);
                let options = TestOptions { second_visits, ..SORTED };
                let found = options.walk_dirs(&tree).sorted();
                assert_eq!(found, expected, "{}, {options:?}", name_of(*errno));
            }
        }
    });
}

/// A walk descends into names that are as long as the longest path.
#[test]
fn walk_descends_into_names_of_4095_bytes() {
    served("walks::hostile::walk_descends_into_names_of_4095_bytes", || {
        let row = "walk, hostile server: names of 4095 bytes";
        if !long_names_pass() {
            return machine::skip(row, LONG_NAMES);
        }
        let name = |byte: u8| vec![byte; 4095];
        let tree = (0..10).fold(leaf(), |below, _| {
            directory(vec![dir(name(b'd'), below), dir(name(b'z'), leaf())])
        });
        let server = Server::mount(vec![tree]).unwrap();
        for options in OPTIONS {
            let report = options.walk_dirs(server.path(0));
            if let Some((path, errno)) = report.errors.first() {
                assert_eq!((path.as_os_str().len(), *errno), (4095, ENAMETOOLONG), "{options:?}");
                return machine::skip(row, "a kernel whose FUSE looks up names of 4095 bytes");
            }
            assert_eq!((report.first_visits.len(), report.entries.len()), (21, 31), "{options:?}");
            let longest = report.entries.iter().map(|path| path.as_os_str().len()).max();
            assert_eq!(longest, Some(10 * 4096 + "file".len()), "{options:?}");
        }
    });
}

/// A walk closes levels if a server ignores offsets and no descriptor is free. A reader that has none reports an error.
#[test]
fn reading_again_without_lseek_needs_a_descriptor() {
    served("walks::hostile::reading_again_without_lseek_needs_a_descriptor", || {
        let level = |children| Directory { cookie: Some(|place| place + 1), ..directory(children) };
        let depth = 30;
        let tree = (0..depth).fold(leaf(), |below, _| {
            level(vec![dir("a", leaf()), dir("b", below), dir("c", leaf())])
        });
        let server = Server::mount(vec![tree]).unwrap();
        let at = lendir::open(server.path(0)).unwrap();
        let (mut begun, mut listing) = (lendir::read_dir(server.path(0)).unwrap(), Listing::new());
        assert!(begun.next().unwrap().is_some());
        listing.read(&at).unwrap();
        let held = leave_room(8);
        let mut walk = lendir::walk_dirs(server.path(0)).unwrap();
        let mut count = 0;
        while let Some(mut dir) = walk.next().unwrap() {
            let _ = dir.next().unwrap();
            count += 1;
        }
        assert_eq!(count, 3 * depth + 1);
        drop((held, walk));

        let _held = leave_room(0);
        let refused = [begun.read_into(&mut listing), listing.read(&at)];
        assert!(refused.iter().all(|read| errno(read.as_ref().unwrap_err()) == libc::EMFILE));
    });
}

/// A server can answer `EXDEV` itself, on the walk's own mount.
#[test]
fn exdev_of_a_server_is_reported() {
    served("walks::hostile::exdev_of_a_server_is_reported", || {
        let refused = Directory { refuses: Some((OPENDIR, EXDEV)), ..leaf() };
        let unseen = child("a", DT_DIR, Err(EXDEV)); // already its name is refused
        let trees = [dir("a", refused), unseen].map(|child| directory(vec![child]));
        let server = Server::mount(trees.to_vec()).unwrap();
        for same_mount in [false, true] {
            let mut walk = WalkDirs::options().same_mount(same_mount).open(server.path(1)).unwrap();
            assert_eq!(walk.next().unwrap().unwrap().count().unwrap(), 1);
            assert_eq!(walk.next().unwrap_err().raw_os_error(), Some(EXDEV));
            assert!(walk.next().unwrap().is_none());
            let mut walk = WalkDirs::options().same_mount(same_mount).open(server.path(0)).unwrap();
            assert_eq!(walk.next().unwrap().unwrap().count().unwrap(), 1);
            let error = walk.next().unwrap().unwrap().next().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(EXDEV));
            assert!(walk.next().unwrap().is_none());
        }
    });
}

/// In `Order::Path`, a type that cannot be queried is an error of its entry, and not of the
/// directory. A walk reports it once, when it opens the entry.
#[test]
fn failed_type_is_an_error_of_its_entry() {
    served("walks::hostile::failed_type_is_an_error_of_its_entry", || {
        let children = vec![child("a", DT_UNKNOWN, Err(EIO)), file("b")];
        let server = Server::mount(vec![directory(children)]).unwrap();
        let (path, mut listing) = (server.path(0), Listing::with_order(Order::Path));
        let error = lendir::read_dir(&path).unwrap().read_into(&mut listing).unwrap_err();
        assert_eq!((error.path(), listing.len()), (Some(&*path.join("a")), 2));
        let mut walk = Walk::options().order(Order::Path).open(&path).unwrap();
        let (mut items, mut errors) = (Vec::new(), Vec::new());
        while let Some(entry) =
            walk.next_or_report(|error| errors.push(error.path().unwrap().to_owned()))
        {
            items.push(entry.name().to_vec());
        }
        assert_eq!((items, errors), (vec![b"a".to_vec(), b"b".to_vec()], vec![path.join("a")]));
    });
}

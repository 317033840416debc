//! Counts the requests of each reader to a server that answers `READDIRPLUS`: names with metadata.
//! The kernel goes on with it only as long as entries are queried while their directory is read.

use crate::fuse::{Answer, Directory, Server, file_record, served};
use crate::support::prelude::*;

/// Reads a directory of files, and queries each entry if that is wanted. Returns the number of
/// entries.
type Reader = fn(&Path, bool) -> usize;

/// Counts the entries of an iterator, and queries each.
macro_rules! count {
    ($entries:expr, $queries:expr) => {{
        let (mut entries, mut count) = ($entries, 0);
        while let Some(entry) = entries.next().unwrap() {
            count += 1;
            if $queries {
                entry.metadata().unwrap();
            }
        }
        count
    }};
}

fn walk(options: WalkOptions, dir: &Path, queries: bool) -> usize {
    count!(options.open(dir).unwrap(), queries)
}

fn walk_dirs(mut listing: Option<Listing>, dir: &Path, queries: bool) -> usize {
    let mut walk = WalkDirs::options().open(dir).unwrap();
    let mut dir = walk.next().unwrap().unwrap();
    let Some(listing) = &mut listing else { return count!(dir, queries) };
    dir.read_into(listing).unwrap();
    count(listing, &dir.fd(), queries)
}

fn listing(mut listing: Listing, dir: &Path, queries: bool) -> usize {
    let dir = lendir::open(dir).unwrap();
    listing.read(&dir).unwrap();
    count(&listing, &dir, queries)
}

fn count(listing: &Listing, dir: &impl AsFd, queries: bool) -> usize {
    for entry in listing.iter().filter(|_| queries) {
        let fetched = entry.metadata().cloned();
        let metadata = fetched.or_else(|_| entry.in_dir(dir.as_fd()).metadata()).unwrap();
        assert!(metadata.is_file());
    }
    listing.len()
}

fn sorted() -> WalkOptions {
    Walk::options().order(Order::Bytes)
}

/// The metadata that the kernel fetches with the names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// The caller queries each entry between two batches.
    Caller,
    /// The reader queries each entry after its batch.
    Reader,
}

#[rustfmt::skip]
const READERS: [(&str, Asks, Reader); 11] = [
    ("read_dir", Asks::Caller, |dir, queries| count!(lendir::read_dir(dir).unwrap(), queries)),
    ("Entries", Asks::Caller, |dir, queries| {
        let (dir, mut buffer) = (lendir::open(dir).unwrap(), Buffer::new());
        count!(Entries::new(dir.as_fd(), &mut buffer), queries)
    }),
    ("walk", Asks::Caller, |dir, queries| walk(Walk::options(), dir, queries)),
    ("walk_dirs", Asks::Caller, |dir, queries| walk_dirs(None, dir, queries)),
    ("walk, metadata", Asks::Reader, |dir, queries| walk(Walk::options().metadata(true), dir, queries)),
    ("walk, sorted, metadata", Asks::Reader, |dir, queries| walk(sorted().metadata(true), dir, queries)),
    ("walk, read_ahead, metadata", Asks::Reader, |dir, queries| walk(sorted().metadata(true).read_ahead(2).eager(), dir, queries)),
    ("walk_dirs, metadata", Asks::Reader, |dir, queries| {
        let mut walk = WalkDirs::options().metadata(true).open(dir).unwrap();
        count!(walk.next().unwrap().unwrap(), queries)
    }),
    ("run_parallel, metadata", Asks::Reader, |dir, queries| {
        let walk = WalkDirs::options().metadata(true).open(dir).unwrap();
        let parts = walk.run_parallel(2, |worker| {
            let mut entries = 0;
            while let Some(dir) = worker.next().unwrap() {
                entries += count!(dir, queries);
            }
            entries
        });
        parts.into_iter().sum()
    }),
    ("Listing, metadata", Asks::Reader, |dir, queries| listing(Listing::new().with_metadata(), dir, queries)),
    ("walk_dirs, read_into, metadata", Asks::Reader, |dir, queries| walk_dirs(Some(Listing::new().with_metadata()), dir, queries)),
];

/// No entry takes a request of its own if entries are queried while their directory is read.
/// Where names alone are read, the kernel fetches metadata only with the first batch, which is its
/// own choice. No reader takes more requests than a buffer of 32 KiB.
#[test]
fn no_reader_loses_readdirplus() {
    served("walks::requests::no_reader_loses_readdirplus", || {
        let directory = |count| {
            Directory::of_files(move |place| {
                if place < count { file_record(format!("{place:07}")) } else { Answer::End }
            })
        };
        let requests = |read: Reader, queries, count| {
            let server = Server::with_plus(vec![directory(count)], 60).unwrap();
            assert_eq!(read(&server.path(0), queries) as u64, count);
            server.requests()
        };
        // A listing reads with large batches, and so does a walk whose buffer is large.
        let large = |dir: &Path, _| {
            let mut walk = WalkDirs::options().buffer_capacity(1 << 20).open(dir).unwrap();
            usize::try_from(walk.next().unwrap().unwrap().count().unwrap()).unwrap()
        };
        let by_std = |dir: &Path, _| std::fs::read_dir(dir).unwrap().count();
        let listed = |dir: &Path, _| listing(Listing::new(), dir, false);
        let reads = |read: Reader| requests(read, false, 20_000).into_iter().take(2).sum::<u64>();
        assert!(reads(listed) <= 7 && reads(large) <= 3);
        assert!(reads(READERS[2].2) <= reads(by_std) && reads(READERS[3].2) <= reads(by_std));
        for count in [2000, 8000, 20_000] {
            let [walk, dirs, parallel] =
                ["walk, metadata", "walk_dirs, metadata", "run_parallel, metadata"].map(|name| {
                    let reader = READERS.iter().find(|reader| reader.0 == name).unwrap();
                    requests(reader.2, true, count).into_iter().sum::<u64>()
                });
            assert!(dirs <= walk && parallel <= walk, "{walk}, {dirs}, {parallel} of {count}");
        }
        for count in [2000, 8000] {
            // A batch of an old kernel is a page. One `LOOKUP` finds the directory.
            let [plus, ..] = requests(READERS[0].2, true, count);
            assert!(plus <= count / 16, "{plus} READDIRPLUS for {count} entries");
            for ((name, asks, read), queries) in
                READERS.into_iter().flat_map(|reader| [(reader, false), (reader, true)])
            {
                let most = match asks {
                    Asks::Reader => [plus + 1, 2, 10],
                    Asks::Caller if queries => [plus + 1, 2, 10],
                    Asks::Caller => [1, count / 60 + 2, 1],
                };
                let requests = requests(read, queries, count);
                let is_kept = requests.iter().zip(most).all(|(count, most)| *count <= most);
                let what = format!("{name}, queries {queries}, {count} entries");
                assert!(is_kept, "{what}: {requests:?} of PLUS, READDIR, LOOKUP, {most:?} allowed");
            }
        }
    });
}

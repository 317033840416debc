//! The number of requests that a reader sends to a server. Each request may wait for a network.

use crate::fuse::{Answer, Directory, Server, file_record, served};
use lendir::{Listing, WalkDirs, WalkDirsOptions};
use std::fs;
use std::path::Path;

const COUNT: u64 = 20_000;

fn by_walk_dirs(path: &Path, options: WalkDirsOptions) -> u64 {
    let counts = options
        .open(path)
        .unwrap()
        .run_parallel(1, |worker| worker.next().unwrap().map_or(0, |mut dir| dir.count().unwrap()));
    counts.into_iter().sum()
}

/// A listing reads 640 KiB of records in batches of 32, 64, 128, 256 and 512 KiB. One more request
/// is for the end.
#[test]
fn large_batches_take_few_requests() {
    served("hostile::requests::large_batches_take_few_requests", || {
        let answers =
            |place| if place < COUNT { file_record(format!("{place:06}")) } else { Answer::End };
        let server = Server::mount(vec![Directory::of_files(answers)]).unwrap();
        // Returns the number of requests of a function that returns the number of entries.
        let requests = |read: fn(&Path) -> u64| {
            let before = server.reads();
            assert_eq!(read(&server.path(0)), COUNT);
            server.reads() - before
        };
        let by_listing = |path: &Path| {
            let mut listing = Listing::new();
            listing.read(lendir::open(path).unwrap()).unwrap();
            listing.len() as u64
        };
        let by_std = requests(|path| fs::read_dir(path).unwrap().count() as u64);
        assert!(requests(by_listing) <= 6);
        assert!(requests(|path| lendir::walk(path).unwrap().paths().count() as u64) <= by_std);
        assert!(requests(|path| by_walk_dirs(path, WalkDirs::options())) <= by_std);
        let large = |path: &Path| by_walk_dirs(path, WalkDirs::options().buffer_capacity(1 << 20));
        assert!(requests(large) <= 2);
    });
}

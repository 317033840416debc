//! The traits of all public types. Every type is `Send`, `Sync`, `Unpin`, `Debug` and covariant,
//! and unwind safe unless it holds a `&mut`. `Worker` belongs to one thread, so it is neither
//! `Send` nor `Sync`: its docs have what does not compile.

use crate::support::tree::Tree;
use lendir::rustix::fs::fstat;
use lendir::{
    Buffer, Dir, Entries, Entry, Error, ListedEntries, ListedEntry, Listing, Name, Order, ReadDir,
    Walk, WalkDirs, WalkDirsOptions, WalkEntry, WalkOptions, Worker,
};
use std::cell::Cell;
use std::fmt::Debug;
use std::iter::FusedIterator;
use std::panic::{RefUnwindSafe, UnwindSafe};

macro_rules! check {
    ($holds:ident: $($type:ty),*) => { $($holds::<$type>();)* };
}

#[test]
fn all_are_send_sync_unpin_and_debug() {
    fn holds<T: Send + Sync + Unpin + Debug>() {}
    check!(holds: Buffer, Entries<'_>, Entry<'_>, Error, Listing, Order, ReadDir, ListedEntries<'_>);
    check!(holds: ListedEntry<'_>, WalkDirs, WalkOptions, WalkDirsOptions, Dir<'_>, Walk, WalkEntry<'_>);
}

#[test]
fn worker_is_unpin_and_debug() {
    fn holds<T: Unpin + Debug>() {}
    check!(holds: Worker<'_>);
}

#[test]
fn iterators_are_send_and_fused() {
    fn is_fused(_: impl Send + FusedIterator) {}
    let walk = || lendir::walk("src").unwrap();
    is_fused(walk().paths());
    is_fused(walk().filter_map(|entry| entry.numeric_name()));
    is_fused(lendir::read_dir("src").unwrap().filter_map(|entry| entry.numeric_name()));
    let mut walk = walk();
    assert!(format!("{walk:?}").contains("\"src\""), "{walk:?}");
    let entry = walk.next().unwrap().unwrap();
    assert!(format!("{entry:?}").contains("src/"), "{entry:?}");
}

/// Options can be cloned for many walks. A state need only be `Send`.
#[test]
fn options_are_clone_and_states_need_not_be_sync() {
    fn is_clone<T: Clone>() {}
    fn is_send<T: Send>() {}
    check!(is_clone: WalkOptions, WalkDirsOptions<String>);
    check!(is_send: WalkDirs<Cell<u8>>, Dir<'_, Cell<u8>>);
}

/// `Entries` and `Dir` hold a `&mut`, so they are not unwind safe.
#[test]
fn types_without_mutable_borrow_are_unwind_safe() {
    fn holds<T: UnwindSafe + RefUnwindSafe>() {}
    check!(holds: Buffer, Entry<'_>, Listing, Order, ReadDir, ListedEntries<'_>, ListedEntry<'_>);
    check!(holds: WalkDirs, WalkOptions, WalkDirsOptions);
}

#[test]
fn names_are_accepted_in_all_forms() {
    fn check(listing: &Listing, dir: &mut Dir<'_>, name: impl Name + Clone) {
        assert_eq!(listing.by_name(name.clone()).unwrap().name(), b"a");
        dir.skip_subdirs();
        assert!(dir.follow_name(name.clone()) && dir.enter(name));
    }
    macro_rules! check {
        ($listing:ident, $dir:ident: $($name:expr),*) => { $(check(&$listing, &mut $dir, $name);)* };
    }
    let (tree, mut listing) = (Tree::of(&["a/"]), Listing::new());
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    let mut dir = walk.next().unwrap().unwrap();
    dir.read_into(&mut listing).unwrap();
    let entry = listing.get(0).unwrap();
    let (bytes, c, os) = (entry.name(), entry.name_cstr(), entry.name_os());
    check!(listing, dir: bytes, c, os, "a", b"a", [b'a'], &"a");
    check!(listing, dir: bytes.to_vec(), c.to_owned(), os.to_owned(), String::from("a"));
    check!(listing, dir: &bytes.to_vec(), &c.to_owned(), &os.to_owned(), &String::from("a"));
    assert_eq!(walk.next().unwrap().unwrap().name(), b"a");
}

/// This compiles only if what an entry borrows from its directory outlives the entry.
#[test]
fn directory_outlives_its_entry() {
    let mut dir = lendir::read_dir("src").unwrap();
    let fd = dir.next().unwrap().map(|entry| entry.dir_fd());
    assert!(fd.is_some_and(|fd| fstat(fd).is_ok()));
}

/// This compiles only if a value with a long lifetime can stand for one with a shorter lifetime.
#[test]
fn all_are_covariant() {
    macro_rules! covariant {
        ($($type:ident),*) => { $({
            fn shorten<'short>(long: $type<'static>) -> $type<'short> {
                long
            }
            let _ = shorten;
        })* };
    }
    covariant!(Entries, Entry, ListedEntries, ListedEntry, Dir, WalkEntry);
}

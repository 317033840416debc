//! The traits of all public types. Every type is `Unpin`, `Debug` and covariant. What a program may
//! keep is `Send`, and `Sync` unless it is a walk. An entry and a `Dir` belong to the thread that
//! walks, and so does a `Worker`: its docs have what does not compile.

use crate::support::tree::Tree;
use lendir::{
    Buffer, Dir, DirEntry, Entries, Entry, Error, ListedEntries, ListedEntry, Listing, Order,
    OwnedEntry, ReadDir, Walk, WalkDirs, WalkDirsOptions, WalkEntry, WalkOptions, Worker,
};
use std::cell::Cell;
use std::fmt::Debug;
use std::iter::FusedIterator;
use std::panic::{RefUnwindSafe, UnwindSafe};

macro_rules! check {
    ($holds:ident: $($type:ty),*) => { $($holds::<$type>();)* };
}

#[test]
fn all_are_unpin_and_debug() {
    fn is_unpin<T: Unpin + Debug>() {}
    fn is_send<T: Send + Unpin + Debug>() {}
    fn is_sync<T: Send + Sync + Unpin + Debug>() {}
    check!(is_unpin: Entry<'_>, DirEntry<'_>, WalkEntry<'_>, Worker<'_>);
    check!(is_send: Dir<'_>, Walk, WalkDirs);
    check!(is_sync: Buffer, Entries<'_>, Error, Listing, Order, OwnedEntry, ReadDir, WalkOptions);
    check!(is_sync: ListedEntry<'_>, ListedEntries<'_>, WalkDirsOptions);
}

#[test]
fn iterators_are_send_and_fused() {
    fn is_fused(_: impl Send + FusedIterator) {}
    fn is_bridged(_: impl Send + FusedIterator<Item: Send + Sync>) {} // by rayon
    let walk = || lendir::walk("src").unwrap();
    is_bridged(walk().into_iter());
    is_bridged(lendir::read_dir("src").unwrap().into_iter());
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

/// `Entries` and `Dir` hold a `&mut`, and an entry of a walk is told to it, so they are not.
#[test]
fn types_without_mutable_borrow_are_unwind_safe() {
    fn holds<T: UnwindSafe>() {}
    fn holds_shared<T: UnwindSafe + RefUnwindSafe>() {}
    check!(holds: WalkDirs);
    check!(holds_shared: Buffer, Listing, Order, ReadDir, ListedEntries<'_>, ListedEntry<'_>);
    check!(holds_shared: WalkOptions, WalkDirsOptions);
}

#[test]
fn names_are_accepted_in_all_forms() {
    fn check(listing: &Listing, dir: &mut Dir<'_>, name: impl AsRef<[u8]> + Clone) {
        assert_eq!(listing.by_name(name.clone()).unwrap().name(), b"a");
        assert!(lendir::openat(dir.fd(), name.clone()).is_ok());
        assert!(dir.enter_name(name).unwrap());
    }
    macro_rules! check {
        ($listing:ident, $dir:ident: $($name:expr),*) => { $(check(&$listing, &mut $dir, $name);)* };
    }
    let (tree, mut listing) = (Tree::of(&["a/"]), Listing::new());
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    let mut dir = walk.next().unwrap().unwrap();
    dir.read_into(&mut listing).unwrap();
    dir.skip_subdirs();
    let bytes = listing.get(0).unwrap().name();
    check!(listing, dir: bytes, "a", b"a", [b'a'], &"a", bytes.to_vec(), &String::from("a"));
    for _ in 0..7 {
        assert_eq!(walk.next().unwrap().unwrap().name(), b"a");
    }
    assert!(walk.next().unwrap().is_none());
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

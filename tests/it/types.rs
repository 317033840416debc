//! The traits of all public types. A private field can take one away, and a program that uses it no
//! longer compiles then. Every type is `Debug` and covariant.

use crate::support::prelude::*;
use lendir::{DirEntry, ListedEntries, ListedEntry, OwnedEntry, WalkEntry, Worker};
use std::cell::Cell;
use std::fmt::Debug;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// Stands for the type whose traits are asked for.
struct Of<T: ?Sized>(PhantomData<T>);

/// The answer for a type without the trait. A type with the trait has a method of the same name.
trait Lacks {
    fn has(&self) -> bool {
        false
    }
}

impl<T: ?Sized> Lacks for &Of<T> {}

/// Returns whether the type has each of `Send`, `Sync`, `Unpin`, `UnwindSafe` and `RefUnwindSafe`.
macro_rules! traits {
    ($type:ty) => {
        [
            traits!($type, Send),
            traits!($type, Sync),
            traits!($type, Unpin),
            traits!($type, UnwindSafe),
            traits!($type, RefUnwindSafe),
        ]
    };
    ($type:ty, $trait:ident) => {{
        #[allow(dead_code, reason = "a type without the trait does not use it")]
        trait Has {
            fn has(&self) -> bool;
        }
        impl<T: $trait + Debug> Has for Of<T> {
            fn has(&self) -> bool {
                true
            }
        }
        (&Of::<$type>(PhantomData)).has()
    }};
}

#[test]
fn public_types_keep_their_auto_traits() {
    let all = [
        ("Buffer", traits!(Buffer)),
        ("Listing", traits!(Listing)),
        ("ListedEntry", traits!(ListedEntry<'_>)),
        ("ListedEntries", traits!(ListedEntries<'_>)),
        ("Order", traits!(Order)),
        ("FileType", traits!(FileType)),
        ("Metadata", traits!(Metadata)),
        ("OwnedEntry", traits!(OwnedEntry)),
        ("ReadDir", traits!(ReadDir)),
        ("WalkOptions", traits!(WalkOptions)),
        ("WalkDirsOptions", traits!(WalkDirsOptions)),
    ];
    for (name, traits) in all {
        assert_eq!(traits, [true; 5], "{name}");
    }
    // `Error` has a `std::io::Error`, and `Entries` a `&mut`. The others note in a `Cell` what the
    // caller requests.
    for (name, traits, expected) in [
        ("Error", traits!(Error), [true, true, true, false, false]),
        ("Entries", traits!(Entries<'_>), [true, true, true, false, true]),
        ("Walk", traits!(Walk), [true, false, true, true, false]),
        ("WalkDirs", traits!(WalkDirs), [true, false, true, true, false]),
        ("Worker", traits!(Worker<'_>), [false, false, true, true, false]),
        ("Dir", traits!(Dir<'_>), [true, false, true, false, false]),
        ("Entry", traits!(Entry<'_>), [false, false, true, false, false]),
        ("WalkEntry", traits!(WalkEntry<'_>), [false, false, true, false, false]),
        ("DirEntry", traits!(DirEntry<'_>), [false, false, true, false, false]),
    ] {
        assert_eq!(traits, expected, "{name}");
    }
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
    is_clone::<WalkOptions>();
    is_clone::<WalkDirsOptions<String>>();
    is_send::<WalkDirs<Cell<u8>>>();
    is_send::<Dir<'_, Cell<u8>>>();
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

//! The auto traits of all public types. A private field can take one away, and a program that uses
//! it no longer compiles then.

use lendir::{
    Buffer, Dir, DirEntry, Entries, Entry, Error, FileType, ListedEntries, ListedEntry, Listing,
    Metadata, Order, ReadDir, Walk, WalkDirs, WalkDirsOptions, WalkEntry, WalkOptions, Worker,
};
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
        impl<T: $trait> Has for Of<T> {
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

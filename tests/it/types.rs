//! What every public type is: `Send`, `Sync`, `Unpin`, `Debug`, unwind safe unless it holds a `&mut`, and covariant.

use lendir::{
    Buffer, Dir, EndMarker, Entries, Entry, Error, Listing, Order, ReadDir, SortedEntries, SortedEntry, Walk,
};
use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};

#[test]
fn all_are_send_sync_unpin_and_debug() {
    fn holds<T: Send + Sync + Unpin + Debug>() {}
    holds::<Buffer>();
    holds::<EndMarker>();
    holds::<Entries<'_>>();
    holds::<Entry<'_>>();
    holds::<Error>();
    holds::<Listing>();
    holds::<Order>();
    holds::<ReadDir>();
    holds::<SortedEntries<'_>>();
    holds::<SortedEntry<'_>>();
    holds::<Walk>();
    holds::<Dir<'_>>();
}

/// `Entries` and `Dir` are not: they hold a `&mut`.
#[test]
fn what_holds_no_mutable_borrow_is_unwind_safe() {
    fn holds<T: UnwindSafe + RefUnwindSafe>() {}
    holds::<Buffer>();
    holds::<EndMarker>();
    holds::<Entry<'_>>();
    holds::<Listing>();
    holds::<Order>();
    holds::<ReadDir>();
    holds::<SortedEntries<'_>>();
    holds::<SortedEntry<'_>>();
    holds::<Walk>();
}

/// This compiles only if a value with a long lifetime can stand for one with a shorter lifetime.
#[test]
fn all_are_covariant() {
    fn entries<'short>(long: Entries<'static>, _: &'short ()) -> Entries<'short> {
        long
    }
    fn entry<'short>(long: Entry<'static>, _: &'short ()) -> Entry<'short> {
        long
    }
    fn sorted_entries<'short>(long: SortedEntries<'static>, _: &'short ()) -> SortedEntries<'short> {
        long
    }
    fn sorted_entry<'short>(long: SortedEntry<'static>, _: &'short ()) -> SortedEntry<'short> {
        long
    }
    fn dir<'short>(long: Dir<'static>, _: &'short ()) -> Dir<'short> {
        long
    }
    let _ = (entries, entry, sorted_entries, sorted_entry, dir);
}

//! What every public type is: `Send`, `Sync`, `Unpin`, `Debug`, unwind safe where it borrows nothing to change, and covariant.

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
fn what_borrows_nothing_to_change_is_unwind_safe() {
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

/// It compiles, so whatever lives long can be taken for what lives shorter.
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

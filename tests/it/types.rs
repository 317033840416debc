//! What every public type is: `Send`, `Sync`, `Unpin`, `Debug`, unwind safe unless it holds a `&mut`, and covariant.

use lendir::{
    Buffer, Dir, EndMarker, Entries, Entry, Error, Jobs, Listing, Order, ReadDir, SortedEntries, SortedEntry, Walk,
    WalkOptions, Worker,
};
use std::cell::Cell;
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
    holds::<WalkOptions>();
    holds::<Worker<'_, '_>>();
    holds::<Jobs<'_, '_>>();
    holds::<Dir<'_>>();
}

/// Options are kept, and used for many walks; a state that can be handed over to threads is enough for all of it.
#[test]
fn options_are_cloned_and_states_need_not_be_shared() {
    fn is_clone<T: Clone>() {}
    fn is_copy<T: Copy>() {}
    fn is_send<T: Send>() {}
    is_clone::<WalkOptions<String>>();
    is_copy::<Jobs<'_, '_>>();
    is_send::<Walk<Cell<u8>>>();
    is_send::<Worker<'_, '_, Cell<u8>>>();
    is_send::<Dir<'_, Cell<u8>>>();
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
    holds::<WalkOptions>();
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

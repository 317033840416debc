//! `ReadAhead`: threads that open and read the directories that a `Walk` comes to next, before it does.
//!
//! ```text
//! list    the directories that the tree comes to next, in its order, as far as they are known
//!         share/doc   share/doc/apt   share/doc/bash   share/icons   share/man   src
//!         begun       read            to do            read          to do       to do
//! ```
//!
//! The tree takes from the front. A thread reads the first one that is to do, and puts the directories in it right behind it. Only
//! what went well is handed over. After any failure, the tree does it itself as if nobody had tried, so errors, mounts, links and
//! unreadable directories have one way through the code.
//!
//! Nobody tells the list what the caller skips: when the tree goes below an entry, its depth and its rank tell which items are passed.

use crate::cursor::opener::{OpenDir, Opener};
use crate::cursor::options::Options;
use crate::cursor::raw_open;
use crate::listing::{Content, Extent, Listing, Order};
use crate::read_dir::end_marker::EndMarker;
use crate::read_dir::entry_state::EntryState;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, thread};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::fcntl_dupfd_cloexec;
use std::collections::VecDeque;
use std::ffi::CString;
use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many items from the front the threads read, for each of them: enough that none waits for the tree while that takes what
/// the others have read. When half of that is left, one is woken: it then finds several to do.
const NEAR: usize = 4;
/// How many descriptors are open ahead, for each thread. Half of them is for what is not near any more, as others came before it.
const OPEN: usize = 2 * NEAR;
/// A directory whose records take more bytes is left to the tree. With [`OPEN`], this bounds the memory.
const MAX_BYTES: usize = 256 * 1024;
/// The longest list, for each thread. It then gives up what is last, of which the tree tells it again: a longer one would take
/// memory, and in a wide directory time, for nothing.
const ITEMS: usize = 16 * NEAR;

/// Dropped, it waits until its threads have ended.
pub(crate) struct ReadAhead {
    shared: Arc<Shared>,
}

struct Shared {
    order: Order,
    max_depth: usize,
    near: usize,
    max_items: usize,
    /// Each descriptor that is open ahead has a clone, and this is one.
    open: Arc<()>,
    state: Mutex<State>,
    /// Idle threads wait for it.
    called: Condvar,
    /// The tree waits for it.
    done: Condvar,
}

struct State {
    list: VecDeque<Item>,
    /// How many descriptors may be open ahead. Less once the system has refused one.
    max_open: usize,
    /// Numbers the items that are begun.
    begun: u64,
    threads: Vec<thread::JoinHandle<()>>,
    max_threads: usize,
    /// How many threads are idle, and not called yet.
    idle: usize,
    /// How many calls no thread has heard yet.
    calls: usize,
    tree_waits: bool,
    is_over: bool,
}

/// A directory that the tree comes to.
struct Item {
    place: Place,
    progress: Progress,
}

/// Where an entry is on the way of the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) depth: usize,
    /// How many entries of its directory come after it.
    pub(crate) rank: usize,
}

impl Place {
    /// Whether the tree has passed over it when it comes to `other`, which has no item before it.
    fn is_before(self, other: Self) -> bool {
        self.depth > other.depth || self.depth == other.depth && self.rank > other.rank
    }
}

enum Progress {
    ToDo(Arc<Parent>, CString),
    Begun(u64),
    /// `None` if it did not go well.
    Done(Option<Read>),
}

/// A directory that is open ahead.
struct Parent {
    dir: OwnedFd,
    end_marker: EndMarker,
    opener: Opener,
    _counted: Arc<()>,
}

struct Read {
    parent: Arc<Parent>,
    content: Content,
}

/// The entries of the current directory that are left.
pub(crate) struct Rest<'a> {
    pub(crate) listing: &'a Listing,
    pub(crate) range: Range<usize>,
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) end_marker: EndMarker,
    pub(crate) opener: Opener,
}

/// A directory to read.
struct Job {
    number: u64,
    depth: usize,
    parent: Arc<Parent>,
    name: CString,
    counted: Arc<()>,
}

impl ReadAhead {
    pub(crate) fn new(threads: usize, order: Order, options: &Options) -> Self {
        let state = State {
            list: VecDeque::new(),
            max_open: threads.saturating_mul(OPEN),
            begun: 0,
            threads: Vec::new(),
            max_threads: threads,
            idle: 0,
            calls: 0,
            tree_waits: false,
            is_over: false,
        };
        let shared = Shared {
            order,
            max_depth: options.max_depth,
            near: threads.saturating_mul(NEAR),
            max_items: threads.saturating_mul(ITEMS),
            open: Arc::new(()),
            state: Mutex::new(state),
            called: Condvar::new(),
            done: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The tree goes below the entry at `place`. Returns what was read of it, which may be under way. `rest` is what comes after it, if
    /// it can have been read.
    pub(crate) fn take(
        &mut self,
        place: Place,
        rest: Option<Rest<'_>>,
    ) -> Option<(OpenDir, Content)> {
        let shared = &self.shared;
        let mut state = shared.lock();
        state.pass(place);
        let rest = rest?;
        if state.list.front().is_none_or(|item| item.place.depth != place.depth) {
            let below = shared.rest(&mut state, rest, place.depth);
            shared.insert(&mut state, 0, below);
            Shared::call(shared, state);
            return None;
        }
        let is_at = |item: &&mut Item| item.place == place;
        while let Some(Item { progress: Progress::Begun(_), .. }) =
            state.list.front_mut().filter(is_at)
        {
            state.tree_waits = true;
            state = shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.list.front_mut().filter(is_at)?;
        let item = state.list.pop_front()?;
        let read = if let Progress::Done(read) = item.progress {
            read.and_then(Read::hand_over)
        } else {
            None
        };
        if read.is_none() {
            // The tree reads it itself, and perhaps other entries: the ranks of those that were read ahead are none of its.
            state.pass(place);
        }
        Shared::call(shared, state);
        read
    }

    /// Another tree begins.
    pub(crate) fn clear(&mut self) {
        self.shared.lock().list.clear();
    }

    /// The system has refused the tree a descriptor: gives some back. Returns whether any can still be open.
    pub(crate) fn lower_limit(&mut self) -> bool {
        self.shared.lower_limit()
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.list.clear();
        let threads = mem::take(&mut state.threads);
        drop(state);
        self.shared.called.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Read {
    /// What the tree takes over. If others still need the descriptor, the tree gets another one.
    fn hand_over(self) -> Option<(OpenDir, Content)> {
        let end_marker = self.parent.end_marker;
        let dir = match Arc::try_unwrap(self.parent) {
            Ok(parent) => parent.dir,
            Err(shared) => fcntl_dupfd_cloexec(&shared.dir, 0).ok()?,
        };
        Some((OpenDir { dir, end_marker, unreadable: None }, self.content))
    }
}

impl State {
    /// Gives up what the tree has passed over when it comes to `place`: what is below that is before it, too.
    fn pass(&mut self, place: Place) {
        while self.list.front().is_some_and(|item| item.place.is_before(place)) {
            self.list.pop_front();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, State { list, .. }: &mut State, at: usize, items: Vec<Item>) {
        list.rotate_left(at);
        items.into_iter().rev().for_each(|item| list.push_front(item));
        list.rotate_right(at);
        list.truncate(self.max_items);
    }

    /// How many descriptors are open ahead.
    fn open(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }

    /// One more descriptor is open ahead. For it, items behind the first `kept` are given up, the last first. `None` if that is not
    /// enough.
    fn count(&self, state: &mut State, kept: usize) -> Option<Arc<()>> {
        while self.open() >= state.max_open && state.list.len() > kept {
            state.list.pop_back();
        }
        (self.open() < state.max_open).then(|| Arc::clone(&self.open))
    }

    fn lower_limit(&self) -> bool {
        let mut state = self.lock();
        state.max_open = self.open() / 2;
        while self.open() > state.max_open && state.list.pop_back().is_some() {}
        state.max_open > 0
    }

    /// Where the first item to do is, if it is near.
    fn first_to_do(&self, state: &State) -> Option<usize> {
        state
            .list
            .iter()
            .take(self.near)
            .position(|item| matches!(item.progress, Progress::ToDo(..)))
    }

    /// Calls a thread, or starts one, if there is enough to do. Gives up the lock before it calls: that thread takes it next.
    fn call(shared: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if shared.first_to_do(&state).is_none_or(|at| at > shared.near / 2) {
            return;
        }
        if state.idle > 0 {
            (state.idle, state.calls) = (state.idle - 1, state.calls + 1);
            drop(state);
            shared.called.notify_one();
        } else if state.threads.len() < state.max_threads {
            let shared = Arc::clone(shared);
            match thread::Builder::new().spawn(move || Self::work(&shared)) {
                Ok(thread) => state.threads.push(thread),
                Err(_) => state.max_threads = state.threads.len(),
            }
        }
    }

    /// What a thread does.
    fn work(shared: &Arc<Self>) {
        let mut listing = Listing::with_order(shared.order).with_limit(MAX_BYTES);
        let mut state = shared.lock();
        while !state.is_over {
            let Some(job) = shared.begin(&mut state) else {
                state.idle += 1;
                while state.calls == 0 && !state.is_over {
                    state = shared.called.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                state.calls = state.calls.saturating_sub(1);
                continue;
            };
            Self::call(shared, state);
            let number = job.number;
            let done = catch_unwind(AssertUnwindSafe(|| shared.read(&mut listing, job)));
            let (read, below) = done.ok().flatten().unzip();
            state = shared.lock();
            let is_it =
                |item: &Item| matches!(item.progress, Progress::Begun(begun) if begun == number);
            // Or the tree has passed over it.
            if let Some(at) = state.list.iter().position(is_it) {
                state.list[at].progress = Progress::Done(read);
                shared.insert(&mut state, at + 1, below.unwrap_or_default());
            }
            if mem::take(&mut state.tree_waits) {
                drop(state);
                shared.done.notify_one();
                state = shared.lock();
            }
        }
    }

    /// Begins the first directory that is to do.
    fn begin(&self, state: &mut State) -> Option<Job> {
        let at = self.first_to_do(state)?;
        let counted = self.count(state, at + 1)?;
        let number = state.begun;
        state.begun += 1;
        let Item { place, progress } = &mut state.list[at];
        let Progress::ToDo(parent, name) = mem::replace(progress, Progress::Begun(number)) else {
            return None;
        };
        Some(Job { number, depth: place.depth, parent, name, counted })
    }

    /// Opens and reads a directory. Returns items for those in it, too.
    fn read(&self, listing: &mut Listing, job: Job) -> Option<(Read, Vec<Item>)> {
        let Job { depth, parent, name, counted, .. } = job;
        let mut opener = parent.opener;
        let found = opener.open(parent.dir.as_fd(), parent.end_marker, &name);
        drop(parent);
        if found.as_ref().is_err_and(|errno| raw_open::lacks_descriptor(*errno)) {
            self.lower_limit();
        }
        let OpenDir { dir, end_marker, .. } = found.ok()?;
        listing
            .read_behind(Extent::default(), dir.as_fd(), end_marker)
            .ok()
            .filter(|()| !listing.is_removed())?;
        let parent = Arc::new(Parent { dir, end_marker, opener, _counted: counted });
        let below = self.items(listing, 0..listing.len(), depth + 1, || Some(Arc::clone(&parent)));
        Some((Read { parent, content: listing.content() }, below))
    }

    /// Items for what is left of the current directory of the tree.
    fn rest(&self, state: &mut State, rest: Rest<'_>, depth: usize) -> Vec<Item> {
        let Rest { listing, range, dir, end_marker, opener } = rest;
        let parent = || {
            let counted = self.count(state, 0)?;
            let dir = fcntl_dupfd_cloexec(dir, 0).ok()?;
            Some(Arc::new(Parent { dir, end_marker, opener, _counted: counted }))
        };
        self.items(listing, range, depth, parent)
    }

    /// Items for the directories among these entries, which have this depth and are in `parent`.
    fn items(
        &self,
        listing: &Listing,
        range: Range<usize>,
        depth: usize,
        parent: impl FnOnce() -> Option<Arc<Parent>>,
    ) -> Vec<Item> {
        let end = range.end;
        let entered = |at| {
            let entry = listing.get(at).expect("BUG: an entry is missing");
            EntryState::from_type(entry.d_type())
                .is_some_and(EntryState::can_be_directory)
                .then_some((at, entry))
        };
        let mut entered = range.filter_map(entered).take(self.max_items).peekable();
        let is_any = depth < self.max_depth && entered.peek().is_some();
        let Some(parent) = is_any.then(parent).flatten() else { return Vec::new() };
        let item = |(at, entry): (usize, crate::ListedEntry<'_>)| Item {
            place: Place { depth, rank: end - 1 - at },
            progress: Progress::ToDo(Arc::clone(&parent), entry.name_cstr().to_owned()),
        };
        entered.map(item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arc, AsFd, EndMarker, ITEMS, Item, Listing, NEAR, Opener, Options, Order, Parent, Place,
        Progress,
    };
    use super::{ReadAhead, Rest, Shared};
    use std::iter;

    fn items(numbers: impl IntoIterator<Item = u64>) -> Vec<Item> {
        let item =
            |number| Item { place: Place { depth: 1, rank: 0 }, progress: Progress::Begun(number) };
        numbers.into_iter().map(item).collect()
    }

    #[test]
    fn items_go_where_they_belong_and_the_last_of_too_many_are_given_up() {
        let ahead = ReadAhead::new(1, Order::Bytes, &Options::default());
        let mut state = ahead.shared.lock();
        let end = 2 * ITEMS as u64;
        ahead.shared.insert(&mut state, 0, items([0, 1, end]));
        ahead.shared.insert(&mut state, 2, items(2..end));
        let numbers = state.list.iter().map(|item| match item.progress {
            Progress::Begun(number) => number,
            _ => panic!("another item"),
        });
        assert!(numbers.eq(0..ITEMS as u64));
    }

    /// Its entries, which the tree reads itself, can be others by then.
    #[test]
    #[cfg_attr(miri, ignore = "opens a directory")]
    fn what_is_below_a_directory_that_is_not_handed_over_is_given_up() {
        let mut ahead = ReadAhead::new(1, Order::Bytes, &Options::default());
        let item = |depth, rank, progress| Item { place: Place { depth, rank }, progress };
        let below = [(2, 1), (3, 0), (2, 0), (1, 0)]
            .map(|(depth, rank)| item(depth, rank, Progress::Begun(0)));
        let front = item(1, 1, Progress::Done(None));
        ahead.shared.lock().list.extend([front].into_iter().chain(below));
        let (listing, dir) = (Listing::new(), crate::open("/").unwrap());
        let rest = Rest {
            listing: &listing,
            range: 0..0,
            dir: dir.as_fd(),
            end_marker: EndMarker::NONE,
            opener: Opener::new(&Options::default()),
        };
        assert!(ahead.take(Place { depth: 1, rank: 1 }, Some(rest)).is_none());
        let left: Vec<_> = ahead.shared.lock().list.iter().map(|item| item.place.depth).collect();
        assert_eq!(left, [1]);
    }

    /// Half of them, until none is open ahead.
    #[test]
    fn descriptors_are_given_back() {
        let mut ahead = ReadAhead::new(2, Order::Bytes, &Options::default());
        let mut open: Vec<_> = iter::repeat_n(&ahead.shared.open, 5).cloned().collect();
        assert!(ahead.lower_limit());
        assert_eq!(ahead.shared.lock().max_open, 2);
        let mut state = ahead.shared.lock();
        state.list.extend(items(0..3));
        assert!(ahead.shared.count(&mut state, 1).is_none());
        assert_eq!(state.list.len(), 1, "what is far away is given up for what is near");
        drop(state);
        open.truncate(1);
        assert!(!ahead.lower_limit(), "the half of one is none");
        drop(open);
        assert_eq!(Arc::strong_count(&ahead.shared.open), 1);
    }

    /// An idle thread is called when the first directory to do is among the nearer half, no later and no earlier.
    #[test]
    #[cfg_attr(miri, ignore = "opens a directory")]
    fn a_thread_is_called_when_there_is_enough_to_do() {
        for (begun, calls) in [(0, 1), (NEAR / 2, 1), (NEAR / 2 + 1, 0), (NEAR, 0)] {
            let ahead = ReadAhead::new(1, Order::Bytes, &Options::default());
            let (dir, counted) = (crate::open("/").unwrap(), Arc::clone(&ahead.shared.open));
            let (end_marker, opener) = (EndMarker::NONE, Opener::new(&Options::default()));
            let parent = Arc::new(Parent { dir, end_marker, opener, _counted: counted });
            let to_do = Item {
                place: Place { depth: 1, rank: 0 },
                progress: Progress::ToDo(parent, c"n".to_owned()),
            };
            let mut state = ahead.shared.lock();
            state.list.extend(items(0..begun as u64).into_iter().chain([to_do]));
            state.idle = 1;
            Shared::call(&ahead.shared, state);
            let state = ahead.shared.lock();
            assert_eq!((state.idle, state.calls), (1 - calls, calls), "{begun} are begun");
        }
    }
}

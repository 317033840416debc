//! `ReadAhead`: helper threads that open and read the directories that a `Walk` will descend into
//! next.
//!
//! ```text
//! list   the directories that come next, in the order of the walk
//!        share/doc   share/doc/apt   share/doc/bash   share/doc/curl   share/icons   share/man
//!        done        done            begun            pending          pending       pending
//! ```
//!
//! A helper thread takes the first pending directory, opens and reads it, and inserts its
//! subdirectories right after it, as pending. The walk removes from the front. When the walk first
//! descends into a child, it lists the remaining directories beside that child.
//!
//! Only success is handed over. After any failure the walk opens and reads the directory itself, so
//! errors, mounts, links and unreadable directories have one way through the code.
//!
//! If the system has no descriptor left, `lower_limit` closes half of those that are open ahead. If
//! none can be closed, reading ahead ends ([`ReadAhead::free_descriptor`]).
//!
//! On warm caches, handing a directory over costs about as much as reading it. So helper threads
//! work only where calls wait: each directory that took long permits the next ones to be read
//! ahead.
//!
//! `ReadAhead` does not know what the caller skips. The [`Place`] of the entry that the walk
//! descends into tells which directories the walk has passed.

use super::{Remaining, WalkOptions};
use crate::allocate::{try_box, try_collect, try_push};
use crate::cursor::entry_state::EntryState;
use crate::cursor::identity::read_clock;
use crate::cursor::opener::OpenDir;
use crate::cursor::spare::Spare;
use crate::cursor::stack::Level;
use crate::cursor::{Cursor, FreeDescriptor};
use crate::listing::{Extent, Listing, Source};
use crate::open;
use crate::read_dir::mount::Mount;
use crate::read_dir::records::Phase;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, thread};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::time::ClockId;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The number of items at the front of the list that may be begun, for each thread. It is enough
/// that no thread waits for the walk while the walk removes what the others have read.
const NEAR_COUNT: usize = 4;
/// The number of descriptors that may be open ahead, for each thread. Half of them are for
/// directories that were near the front before others were inserted there.
const OPEN_COUNT: usize = 2 * NEAR_COUNT;
/// The most bytes that the records of a directory may take. A larger one is left to the walk.
const MAX_BYTES: usize = 256 * 1024;

/// The time in which a directory without entries is read if no call waits, in microseconds. Most
/// take 5 to 20. An interrupt alone can make it 50.
const FAST_MICROS: usize = 60;
/// The time that each entry adds. Most add 0.1 to 0.5.
const ENTRY_MICROS: usize = 1;
/// The time of an entry that is also queried, as a multiple.
const QUERIED_COST: usize = 4;
/// The cost of a directory that is read ahead in vain, in microseconds. A directory that took `t`
/// microseconds permits `t / COST_MICROS` others to be read ahead.
const COST_MICROS: usize = 4;
/// The most directories that one wait permits. A thread that was preempted only seems to have
/// waited.
const MAX_BUDGET: usize = 1024;
/// The cost of starting a thread, in directories.
const START_COST: usize = 25;
/// The number of slow directories among the last eight from which on calls seem to wait. A thread
/// that is preempted makes one directory slow, and hundreds after it are not.
const SLOW_COUNT: u32 = 2;
/// The time of a directory that counts as two slow ones, in microseconds: no preemption takes so
/// long beside a few busy processes.
const LONG_MICROS: usize = 40_000;

/// The list and its helper threads. Dropping it waits for the call that each thread is in.
pub(crate) struct ReadAhead {
    shared: Arc<Shared>,
    /// The time at which the walk began to open and read the current directory.
    begin: Duration,
}

struct Shared {
    options: WalkOptions,
    /// Whether reading ahead has ended: the `ReadAhead` is being dropped, or the system has refused
    /// a descriptor and none could be closed.
    is_over: Arc<AtomicBool>,
    /// The token of a descriptor. The strong count, minus one, is the number of descriptors that
    /// are open ahead.
    open_token: Arc<()>,
    spare: Spare,
    state: Mutex<State>,
    /// Idle helper threads wait for it.
    helper_signal: Condvar,
    /// The walk waits for it.
    walk_signal: Condvar,
}

#[derive(Default)]
struct State {
    list: VecDeque<Item>,
    /// The number of directories that may be read ahead before another one waits.
    budget: usize,
    /// Which of the last eight directories were slow: a bit for each, the lowest for the last.
    recent: u8,
    /// The number of descriptors that may be open ahead. It is lower once the system has refused
    /// one.
    max_open: usize,
    threads: Vec<thread::JoinHandle<()>>,
    max_threads: usize,
    idle_count: usize,
}

/// A directory in the list.
struct Item {
    parent: Arc<AheadDir>,
    /// The name of the directory in `parent`, with its NUL. The thread that has begun the directory
    /// has the name.
    name: Vec<u8>,
    place: Place,
    progress: Progress,
}

enum Progress {
    Pending,
    Begun,
    /// `None` if opening or reading it failed.
    Done(Option<AheadRead>),
}

/// The position of an entry in the order of the walk. Places are compared by depth, and then by
/// `following_count`. The walk has passed the first place in the list if the place that it descends
/// into is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    depth: usize,
    /// The number of entries of its directory that come after it.
    following_count: usize,
}

/// A directory that is open ahead.
struct AheadDir {
    fd: OwnedFd,
    mount: Mount,
    _token: Arc<()>,
}

/// A directory that was read ahead.
struct AheadRead {
    dir: Arc<AheadDir>,
    content: Box<[Listing; 1]>,
}

impl ReadAhead {
    pub(crate) fn new(options: WalkOptions) -> Self {
        let (max_threads, max_open) = (options.read_ahead, options.options.max_open);
        let max_open = max_threads.saturating_mul(OPEN_COUNT).saturating_add(max_open);
        let state = State { max_open, max_threads, ..State::default() };
        let shared = Shared {
            options,
            is_over: Arc::new(AtomicBool::new(false)),
            open_token: Arc::new(()),
            spare: Spare::new(),
            state: Mutex::new(state),
            helper_signal: Condvar::new(),
            walk_signal: Condvar::new(),
        };
        Self { shared: Arc::new(shared), begin: Duration::ZERO }
    }

    /// Returns the directory of the entry yielded last, if that directory was read ahead. Waits for
    /// a thread that has begun it. `can_be_directory` is `false` for a symbolic link that the walk
    /// follows.
    pub(super) fn take(
        &mut self,
        cursor: &mut Cursor<Remaining>,
        listing: &Listing,
        can_be_directory: bool,
    ) -> Option<(OpenDir, Box<[Listing; 1]>)> {
        if !cursor.opener.has_openat2 {
            self.begin = now(); // or each directory would seem to take all the time since
            return None; // `openat` would mount automounts that the caller skips
        }
        let shared = &self.shared;
        let Level { bounds, remaining, .. } = cursor.stack.top();
        let place = Place { depth: bounds.depth + 1, following_count: remaining.count() };
        let mut state = shared.lock();
        state.pass(place);
        let mut read = None;
        if can_be_directory {
            let is_begun =
                |item: &Item| matches!(item.progress, Progress::Begun) && item.place == place;
            while state.list.front().is_some_and(is_begun) {
                state = shared.walk_signal.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            read = state.remove(place).and_then(AheadRead::hand_over);
            if read.is_none() {
                // The walk reads this directory itself and may find other entries, so the places
                // below it no longer hold.
                state.pass(place);
            }
            shared.list_remaining(&mut state, cursor, listing);
        }
        Shared::wake(shared, state);
        self.begin = now();
        read
    }

    /// Measures the time in which the walk itself has opened and read a directory, which was not
    /// read ahead.
    pub(super) fn measure(&self, entry_count: usize) {
        self.shared.measure(self.begin, entry_count);
    }

    /// Forgets the tree, because the walk begins the next one.
    pub(super) fn clear(&mut self) {
        self.shared.lock().list.clear();
        self.begin = now();
    }

    /// Returns a function that closes descriptors that are open ahead, after the system has refused
    /// one to the walk. If none can be closed, the function ends reading ahead, because each call
    /// under way may need a descriptor.
    pub(super) fn free_descriptor(&self) -> FreeDescriptor {
        let shared = Arc::clone(&self.shared);
        AssertUnwindSafe(Box::new(move || shared.lower_limit() || shared.end()))
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Item {
    /// Returns the directories among these entries of `parent`, which are at this depth, as
    /// pending.
    fn among(
        parent: &Arc<AheadDir>,
        listing: &Listing,
        range: Range<usize>,
        depth: usize,
    ) -> Result<Vec<Self>, Errno> {
        let (end, mut items) = (range.end, Vec::new());
        for index in range {
            #[cfg(test)]
            tests::LOOKED_AT.with(|count| count.set(count.get() + 1));
            let entry = listing.get(index).expect("BUG: an entry is missing");
            let state = EntryState::from_type(entry.d_type());
            if state.is_some_and(EntryState::can_be_directory) {
                let name = try_collect(entry.name_with_nul().iter().copied())?;
                let place = Place { depth, following_count: end - 1 - index };
                let (parent, progress) = (Arc::clone(parent), Progress::Pending);
                try_push(&mut items, Self { parent, name, place, progress })?;
            }
        }
        Ok(items)
    }
}

impl AheadRead {
    /// Returns the descriptor and the entries. The descriptor is a duplicate if directories in the
    /// list are still to be opened through this one.
    fn hand_over(self) -> Option<(OpenDir, Box<[Listing; 1]>)> {
        let mount = self.dir.mount;
        let dir = match Arc::try_unwrap(self.dir) {
            Ok(dir) => dir.fd,
            Err(shared) => fcntl_dupfd_cloexec(&shared.fd, 0).ok()?,
        };
        Some((OpenDir { dir, mount, unreadable: None }, self.content))
    }
}

impl State {
    /// Returns the index of the first pending item, if it is near the front. With few descriptors,
    /// what comes later would be given up for what is inserted before it, and opened again.
    fn first_pending(&self) -> Option<usize> {
        let near_count = self.max_threads.saturating_mul(NEAR_COUNT).min(self.max_open / 2);
        let is_pending = |item: &Item| matches!(item.progress, Progress::Pending);
        self.list.iter().take(near_count).position(is_pending)
    }

    /// Judges whether calls wait, by a directory with so many entries that was read in this time.
    fn judge(&mut self, micros: usize, entry_count: usize) {
        let is_slow = micros > FAST_MICROS + ENTRY_MICROS * entry_count;
        let slow = [u8::from(is_slow), 0b11][usize::from(micros > LONG_MICROS)];
        self.recent = self.recent << 1 | slow;
        if !is_slow {
            self.budget = self.budget.saturating_sub(1);
        } else if self.recent.count_ones() >= SLOW_COUNT {
            self.budget = self.budget.max(micros / COST_MICROS).min(MAX_BUDGET);
        }
    }

    /// Removes what the walk has passed when it descends into the entry at `place`.
    fn pass(&mut self, place: Place) {
        while self.list.front().is_some_and(|item| item.place > place) {
            self.list.pop_front();
        }
    }

    /// Removes the directory at `place` if it is the first in the list. Returns it if it was read.
    fn remove(&mut self, place: Place) -> Option<AheadRead> {
        self.list.front().filter(|item| item.place == place)?;
        let item = self.list.pop_front()?;
        if let Progress::Done(read) = item.progress { read } else { None }
    }

    /// Inserts `items` at `at`. If memory is refused, the walk reads them itself.
    fn insert_all(&mut self, at: usize, items: Vec<Item>) {
        if self.list.try_reserve(items.len()).is_ok() {
            items.into_iter().rev().for_each(|item| self.list.insert(at, item));
        }
    }

    /// Makes the last directory that was read pending again, to close its descriptor, but none of
    /// the first `kept_count` items. Returns `false` if there is none.
    fn give_up_last(&mut self, kept_count: usize) -> bool {
        let is_done = |item: &Item| matches!(item.progress, Progress::Done(Some(_)));
        let Some(index) = self.list.iter().rposition(is_done).filter(|index| *index >= kept_count)
        else {
            return false;
        };
        let depth = self.list[index].place.depth;
        let after = self.list.iter().skip(index + 1);
        let below_count = after.take_while(|item| item.place.depth > depth).count();
        self.list.drain(index + 1..index + 1 + below_count);
        self.list[index].progress = Progress::Pending;
        true
    }

    /// Notes that the directory of `begun` was read, and what comes next in it, unless the walk has
    /// passed it.
    fn finish(&mut self, begun: Item, read: Option<(AheadRead, Vec<Item>)>) {
        let is_it =
            |item: &Item| Arc::ptr_eq(&item.parent, &begun.parent) && item.place == begun.place;
        let Some(index) = self.list.iter().position(is_it) else { return };
        let read = read.map(|(read, below)| {
            self.insert_all(index + 1, below);
            read
        });
        self.list[index] = Item { progress: Progress::Done(read), ..begun };
    }
}

/// Returns the time of the monotonic clock, or 0 if the call is refused. Then no directory seems to
/// wait.
fn now() -> Duration {
    read_clock(ClockId::Monotonic).unwrap_or_default()
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures the time from `begin`, in which a directory with `entry_count` entries was read.
    fn measure(&self, begin: Duration, entry_count: usize) {
        let elapsed = now().saturating_sub(begin);
        let micros = usize::try_from(elapsed.as_micros()).unwrap_or(usize::MAX);
        let micros = if self.options.is_eager { usize::MAX } else { micros };
        let entry_count =
            entry_count * if self.options.options.metadata { QUERIED_COST } else { 1 };
        self.lock().judge(micros, entry_count);
    }

    /// Ends all threads, after the call that each is in. Returns `false` if reading ahead had ended
    /// before.
    fn end(&self) -> bool {
        let mut state = self.lock();
        let was_over = self.is_over.swap(true, Relaxed);
        state.list.clear();
        state.max_open = 0;
        let threads = mem::take(&mut state.threads);
        drop(state);
        self.helper_signal.notify_all();
        for thread in threads {
            let _ = thread.join();
        }
        !was_over
    }

    fn open_count(&self) -> usize {
        Arc::strong_count(&self.open_token) - 1
    }

    /// Returns a token for one more descriptor. If too many are open, closes the descriptors of
    /// directories after the first `kept_count` items. Returns `None` if that is not enough.
    fn reserve_descriptor(&self, state: &mut State, kept_count: usize) -> Option<Arc<()>> {
        while self.open_count() >= state.max_open && state.give_up_last(kept_count) {}
        (self.open_count() < state.max_open).then(|| Arc::clone(&self.open_token))
    }

    /// Closes half of the descriptors that are open ahead. The number of the other half is the
    /// limit from then on. Returns `false` if none was closed, because only calls under way need
    /// them.
    fn lower_limit(&self) -> bool {
        let mut state = self.lock();
        let open_count = self.open_count();
        state.max_open = state.max_open.min(open_count / 2);
        while self.open_count() > state.max_open && state.give_up_last(0) {}
        while self.open_count() > state.max_open && state.list.pop_back().is_some() {}
        self.open_count() < open_count
    }

    /// Wakes a thread, or starts one, if there is something for it.
    fn wake(shared: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.budget == 0 || state.first_pending().is_none() {
            return;
        }
        if state.idle_count > 0 {
            drop(state); // first: the thread needs the lock
            shared.helper_signal.notify_one();
        } else if state.threads.len() < state.max_threads && state.budget >= START_COST {
            state.budget -= START_COST;
            let shared = Arc::clone(shared);
            match thread::Builder::new().spawn(move || Self::work(&shared)) {
                Ok(thread) => state.threads.push(thread),
                Err(_) => state.max_threads = state.threads.len(),
            }
        }
    }

    /// Reads directories ahead until reading ahead ends.
    fn work(shared: &Arc<Self>) {
        let is_over = Arc::clone(&shared.is_over);
        let WalkOptions { options, order, .. } = &shared.options;
        let mut listing = options.listing(*order).with_limit(MAX_BYTES, is_over);
        listing.is_on_one_mount = true; // the caller may skip what it waits for
        let mut state = shared.lock();
        while !shared.is_over.load(Relaxed) {
            let Some((begun, token)) = shared.begin(&mut state) else {
                state.idle_count += 1;
                state = shared.helper_signal.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle_count -= 1;
                continue;
            };
            Self::wake(shared, state);
            let start = now();
            let read = || shared.read(&mut listing, &begun, token);
            // A panic counts as a failure, after which the walk reads the directory itself.
            let done = catch_unwind(AssertUnwindSafe(read)).ok().flatten();
            shared.measure(start, if done.is_some() { listing.len() } else { 0 });
            state = shared.lock();
            state.finish(begun, done);
            drop(state);
            shared.walk_signal.notify_one();
            state = shared.lock();
        }
    }

    /// Begins the first pending directory. Returns its item, and the token of its descriptor.
    fn begin(&self, state: &mut State) -> Option<(Item, Arc<()>)> {
        let index = state.first_pending().filter(|_| state.budget > 0)?;
        let token = self.reserve_descriptor(state, index)?;
        let item = &mut state.list[index];
        item.progress = Progress::Begun;
        let (parent, name) = (Arc::clone(&item.parent), mem::take(&mut item.name));
        Some((Item { parent, name, place: item.place, progress: Progress::Begun }, token))
    }

    /// Opens and reads the directory of `begun`. Returns also what comes next in it. `token` counts
    /// the descriptor.
    fn read(
        &self,
        listing: &mut Listing,
        begun: &Item,
        token: Arc<()>,
    ) -> Option<(AheadRead, Vec<Item>)> {
        let AheadDir { fd, mount, .. } = &*begun.parent;
        let name = CStr::from_bytes_with_nul(&begun.name).expect("BUG: a name without its NUL");
        let found = open::on_mount(fd.as_fd(), name, open::NOFOLLOW | self.options.options.flags);
        if found.as_ref().is_err_and(|errno| open::lacks_descriptor(*errno)) {
            self.lower_limit();
        }
        let fd = found.ok()?;
        if self.spare.is_taken_by(fd.as_fd()) {
            self.lower_limit();
            return None;
        }
        let enters = self.options.options.enters_below(begun.place.depth);
        let source = Source::whole(fd.as_fd(), *mount, enters);
        listing.fill_whole(Extent::default(), source);
        if !matches!(listing.phase, Phase::Ended | Phase::Empty) {
            return None;
        }
        let range = if enters { 0..listing.len() } else { 0..0 };
        let dir = Arc::new(AheadDir { fd, mount: *mount, _token: token });
        let below = Item::among(&dir, listing, range, begun.place.depth + 1).ok()?;
        let content = listing.compact_copy().and_then(try_box).ok()?;
        Some((AheadRead { dir, content }, below))
    }

    /// Adds the remaining directories of the walk's current directory to the list, once, if calls
    /// wait and a descriptor is free.
    fn list_remaining(&self, state: &mut State, cursor: &mut Cursor<Remaining>, listing: &Listing) {
        let Level { bounds, mount, remaining, .. } = cursor.stack.top();
        let (depth, range) = (bounds.depth + 1, remaining.next..remaining.end.entries);
        if remaining.is_listed || state.budget == 0 || range.is_empty() {
            return;
        }
        let Some(token) = self.reserve_descriptor(state, 0) else { return };
        let Ok(fd) = fcntl_dupfd_cloexec(cursor.stack.top().dir(), 0) else { return };
        let parent = Arc::new(AheadDir { fd, mount: *mount, _token: token });
        let siblings = Item::among(&parent, listing, range, depth).unwrap_or_default();
        state.insert_all(0, siblings); // nothing below a sibling is in the list
        cursor.stack.top_mut().remaining.is_listed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{
        AheadDir, AheadRead, Arc, AssertUnwindSafe, COST_MICROS, FAST_MICROS, Item, LONG_MICROS,
        Listing, MAX_BUDGET, Mount, Place, Progress, ReadAhead, Relaxed, State, WalkOptions,
    };
    use crate::{Order, Walk};
    use std::cell::Cell;
    use std::fs::{File, create_dir_all};
    use tempfile::TempDir;

    thread_local! {
        /// The number of entries that this thread has looked at to list the directories among them.
        pub(super) static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    fn dir(ahead: &ReadAhead) -> AheadDir {
        let (fd, mount) = (crate::open("/").unwrap(), Mount::PLAIN);
        AheadDir { fd, mount, _token: Arc::clone(&ahead.shared.open_token) }
    }

    /// A directory in one of its own.
    fn item(ahead: &ReadAhead, depth: usize, following_count: usize, progress: Progress) -> Item {
        let (parent, name) = (Arc::new(dir(ahead)), b"n\0".to_vec());
        Item { parent, name, place: Place { depth, following_count }, progress }
    }

    fn done(ahead: &ReadAhead) -> Progress {
        let dir = Arc::new(dir(ahead));
        Progress::Done(Some(AheadRead { dir, content: Box::new([Listing::new()]) }))
    }

    fn options(threads: usize) -> WalkOptions {
        Walk::options().order(Order::Bytes).read_ahead(threads).eager()
    }

    fn new() -> ReadAhead {
        ReadAhead::new(options(1))
    }

    fn depths(ahead: &ReadAhead) -> Vec<usize> {
        ahead.shared.lock().list.iter().map(|item| item.place.depth).collect()
    }

    /// The walk reads the directory itself, and may find other entries in it.
    #[test]
    #[cfg_attr(miri, ignore = "opens a directory")]
    fn failed_directory_takes_those_below_it_along() {
        let made = TempDir::new().unwrap();
        for name in ["a", "b"] {
            create_dir_all(made.path().join(name)).unwrap();
        }
        let mut walk = Walk::options().read_ahead(1).eager().open(made.path()).unwrap();
        assert!(walk.next().unwrap().is_some_and(|entry| !entry.is_last()));
        let Walk { cursor, listing, ahead: Some(ahead), .. } = &mut walk else { unreachable!() };
        let all = [(1, 1), (2, 1), (3, 0), (2, 0), (1, 0)]
            .map(|(depth, following)| item(ahead, depth, following, Progress::Done(None)));
        ahead.shared.lock().list.extend(all);
        cursor.stack.top_mut().remaining.is_listed = true; // otherwise `take` lists `b`
        assert!(ahead.take(cursor, listing, true).is_none());
        assert_eq!(depths(ahead), [1]);
    }

    /// First half of the descriptors ahead are closed. If there is none, reading ahead ends.
    #[test]
    #[cfg_attr(miri, ignore = "opens a directory")]
    fn free_descriptor_ends_reading_ahead_at_last() {
        let ahead = new();
        let AssertUnwindSafe(free_descriptor) = ahead.free_descriptor();
        let under_way = [(); 4].map(|()| Arc::clone(&ahead.shared.open_token));
        let read = item(&ahead, 1, 0, done(&ahead));
        ahead.shared.lock().list.push_back(read);
        assert!(free_descriptor() && !ahead.shared.is_over.load(Relaxed));
        assert_eq!(ahead.shared.open_count(), under_way.len());
        assert!(
            free_descriptor() && ahead.shared.is_over.load(Relaxed),
            "only calls under way hold descriptors"
        );
        assert!(!free_descriptor());
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens a directory")]
    fn with_few_descriptors_less_is_near_the_front() {
        let ahead = ReadAhead::new(options(16));
        let progress =
            [(); 4].map(|()| Progress::Done(None)).into_iter().chain([Progress::Pending]);
        let all: Vec<_> = progress.map(|progress| item(&ahead, 1, 0, progress)).collect();
        let mut state = ahead.shared.lock();
        state.list.extend(all);
        for (max_open, index) in [(100, Some(4)), (10, Some(4)), (9, None), (0, None)] {
            state.max_open = max_open;
            assert_eq!(state.first_pending(), index, "{max_open} may be open");
        }
    }

    /// And what is below it is removed, because it needs the descriptor.
    #[test]
    #[cfg_attr(miri, ignore = "opens a directory")]
    fn last_directory_that_is_read_is_pending_again() {
        let ahead = new();
        let all = [(1, 2, true), (1, 1, true), (2, 0, false), (1, 0, false)].map(
            |(depth, following, is_done)| {
                let progress = if is_done { done(&ahead) } else { Progress::Pending };
                item(&ahead, depth, following, progress)
            },
        );
        let mut state = ahead.shared.lock();
        state.list.extend(all);
        assert!(!state.give_up_last(2), "the first two are kept");
        assert!(state.give_up_last(1));
        let is_pending = |item: &Item| matches!(item.progress, Progress::Pending);
        let pending: Vec<_> = state.list.iter().map(is_pending).collect();
        assert_eq!(pending, [false, true, true]);
        drop(state);
        assert_eq!(depths(&ahead), [1, 1, 1]);
    }

    /// Whatever is given up because of few descriptors.
    #[test]
    #[cfg_attr(miri, ignore = "reads directories")]
    fn walk_looks_at_each_entry_once() {
        for (dirs, files) in [(5, 50), (20, 50), (5, 200)] {
            let made = TempDir::new().unwrap();
            for number in 0..dirs {
                create_dir_all(made.path().join(format!("d{number}/e/f"))).unwrap();
                create_dir_all(made.path().join(format!("d{number}/g"))).unwrap();
            }
            for number in 0..files {
                File::create_new(made.path().join(format!("f{number}"))).unwrap();
            }
            for max_open in [0, 1, 3, 100] {
                let options = Walk::options().order(Order::Bytes).read_ahead(2).eager();
                let mut walk = options.open(made.path()).unwrap();
                walk.ahead.as_ref().unwrap().shared.lock().max_open = max_open;
                LOOKED_AT.set(0);
                let mut count = 0;
                while walk.next().unwrap().is_some() {
                    count += 1;
                }
                let (looked_at, max_open) = (LOOKED_AT.get(), format!("{max_open} may be open"));
                assert!(looked_at <= count, "{looked_at} of {count} entries, {max_open}");
                assert!(
                    max_open == "0 may be open" || looked_at >= files,
                    "{looked_at}, {max_open}"
                );
            }
        }
    }

    /// The walk descends into no directory at the maximum depth.
    #[test]
    #[cfg_attr(miri, ignore = "reads a directory")]
    fn directories_are_listed_above_the_maximum_depth() {
        let made = TempDir::new().unwrap();
        create_dir_all(made.path().join("n/below")).unwrap();
        for (max_depth, below_depth) in [(2, None), (3, Some(2))] {
            let ahead = ReadAhead::new(options(1).max_depth(max_depth));
            let fd = crate::open(made.path()).unwrap();
            let parent = Arc::new(AheadDir { fd, ..dir(&ahead) });
            let token = Arc::clone(&ahead.shared.open_token);
            let begun = Item { parent, ..item(&ahead, 1, 0, Progress::Begun) };
            let (_, below) = ahead.shared.read(&mut Listing::new(), &begun, token).unwrap();
            let below = below.first().map(|below| below.place.depth);
            assert_eq!(below, below_depth, "to depth {max_depth}");
        }
    }

    /// `WalkOptions::read_ahead` states this number.
    #[test]
    fn eight_descriptors_may_be_open_for_each_thread() {
        let ahead = ReadAhead::new(options(3).max_open(5));
        assert_eq!(ahead.shared.lock().max_open, 5 + 8 * 3);
    }

    #[test]
    fn only_waits_permit_to_read_ahead() {
        let budget = |budget, micros, entries| {
            let mut state = State { budget, recent: 1, ..State::default() };
            state.judge(micros, entries);
            state.budget
        };
        assert_eq!(budget(0, FAST_MICROS, 0), 0);
        assert_eq!(budget(0, FAST_MICROS + 1000, 1000), 0, "a large directory");
        assert_eq!(budget(8, FAST_MICROS, 0), 7);
        assert_eq!(budget(0, FAST_MICROS + 4, 0), (FAST_MICROS + 4) / COST_MICROS);
        assert_eq!(budget(800, FAST_MICROS + 4, 0), 800);
        assert_eq!(budget(0, usize::MAX, 0), MAX_BUDGET);
    }

    /// A preempted thread makes one directory slow.
    #[test]
    fn one_slow_directory_is_no_wait() {
        let mut state = State::default();
        for number in 0..100 {
            state.judge(if number % 8 == 0 { LONG_MICROS } else { 1 }, 0);
            assert_eq!(state.budget, 0, "directory {number}");
        }
        state.judge(LONG_MICROS, 0);
        assert_eq!(state.budget, MAX_BUDGET, "the second of eight");
        let mut state = State::default();
        state.judge(LONG_MICROS + 1, 0);
        assert_eq!(state.budget, MAX_BUDGET, "a long wait");
    }
}

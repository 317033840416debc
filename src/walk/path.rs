//! `TreePath`: the path of the current directory, and how threads share the beginning of theirs.
//!
//! A thread that gives work away gives the path of a level with it. It does not copy the path: it cuts what it has not given
//! before into a [`Segment`], and the thread that takes the work copies the segments that it lacks.
//!
//! ```text
//! segments     /usr/share  /doc/a  /b      each knows the one before it, and threads share them
//! bytes        /usr/share/doc/a/b/c/d NUL
//! intact                         ^         `bytes` is as in the segments up to here
//! ```

use crate::sync::Arc;
use std::ffi::CStr;

#[derive(Debug)]
pub(super) struct TreePath {
    /// With a NUL.
    bytes: Vec<u8>,
    /// Those that end after `intact` are out of date.
    segments: Vec<Arc<Segment>>,
    intact: usize,
}

#[derive(Debug)]
struct Segment {
    before: Option<Arc<Segment>>,
    /// How many segments are before it.
    index: usize,
    /// Where it begins in the path.
    begin: usize,
    bytes: Box<[u8]>,
}

/// The path that goes with work given away.
#[derive(Debug)]
pub(super) struct GivenPath {
    segment: Option<Arc<Segment>>,
    end: usize,
}

impl Segment {
    fn end(&self) -> usize {
        self.begin + self.bytes.len()
    }
}

/// Without recursion: there may be any number before it.
impl Drop for Segment {
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(segment) = before {
            before = Arc::into_inner(segment).and_then(|mut segment| segment.before.take());
        }
    }
}

impl Default for TreePath {
    fn default() -> Self {
        Self { bytes: vec![0], segments: Vec::new(), intact: 0 }
    }
}

impl TreePath {
    /// The path of a root. Returns where it ends.
    pub(super) fn begin(&mut self, root: &[u8]) -> usize {
        self.bytes.clear();
        self.bytes.extend_from_slice(root);
        self.bytes.push(0);
        self.segments.clear();
        self.intact = 0;
        root.len()
    }

    /// With its NUL.
    #[inline]
    pub(super) fn as_bytes_with_nul(&self) -> &[u8] {
        &self.bytes
    }

    /// The first `end` bytes: the path of the level that ends there.
    pub(super) fn until(&self, end: usize) -> &[u8] {
        &self.bytes[..end]
    }

    /// The rest of it from `at` on: the last name, if that begins there.
    #[inline]
    pub(super) fn from(&self, at: usize) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes[at..]).expect("BUG: a path without its NUL")
    }

    /// Where it ends.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - 1
    }

    /// Goes down to `name`, from the level whose path ends at `end`. Returns where the name begins.
    #[inline]
    pub(super) fn enter(&mut self, end: usize, name: &CStr) -> usize {
        self.intact = self.intact.min(end);
        self.bytes.truncate(end);
        if self.bytes.last().is_some_and(|last| *last != b'/') {
            self.bytes.push(b'/');
        }
        let at = self.bytes.len();
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
        at
    }

    /// Goes up to the level whose path ends at `end`.
    pub(super) fn come_up(&mut self, end: usize) {
        self.intact = self.intact.min(end);
        self.bytes.truncate(end);
        self.bytes.push(0);
    }

    /// The path that ends at `end`, for another thread.
    pub(super) fn give(&mut self, end: usize) -> GivenPath {
        while self.segments.last().is_some_and(|last| last.end() > self.intact) {
            self.segments.pop();
        }
        let given = self.segments.last().map_or(0, |last| last.end());
        if given < end {
            let (before, index) = (self.segments.last().cloned(), self.segments.len());
            let bytes = self.bytes[given..end].into();
            self.segments.push(Arc::new(Segment { before, index, begin: given, bytes }));
            self.intact = end;
        }
        let holder = self.segments.partition_point(|segment| segment.end() < end);
        GivenPath { segment: self.segments.get(holder).cloned(), end }
    }

    /// Takes the path from another thread.
    pub(super) fn take(&mut self, given: GivenPath) {
        let GivenPath { segment, end } = given;
        let mut missing = Vec::new();
        let mut last = segment;
        while let Some(segment) = last.take() {
            let has = |own: &Arc<Segment>| Arc::ptr_eq(own, &segment) && segment.end() <= self.intact;
            if self.segments.get(segment.index).is_some_and(has) {
                self.segments.truncate(segment.index + 1);
                break;
            }
            last.clone_from(&segment.before);
            missing.push(segment);
        }
        let kept = missing.last().map_or(end, |first| first.begin);
        if let Some(first) = missing.last() {
            self.segments.truncate(first.index);
        }
        self.bytes.truncate(kept);
        while let Some(segment) = missing.pop() {
            self.bytes.extend_from_slice(&segment.bytes);
            self.segments.push(segment);
        }
        self.intact = end;
        self.bytes.truncate(end);
        self.bytes.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::{GivenPath, TreePath};
    use crate::sync::Arc;
    use std::ffi::CString;

    /// What a thread's path must be, and where the levels on it end.
    #[derive(Clone, Default)]
    struct Model {
        bytes: Vec<u8>,
        ends: Vec<usize>,
    }

    impl Model {
        fn of_root(root: &[u8]) -> Self {
            Self { bytes: root.to_vec(), ends: vec![root.len()] }
        }

        fn come_up(&mut self, level: usize) {
            self.ends.truncate(level + 1);
            self.bytes.truncate(self.ends[level]);
        }

        fn enter(&mut self, level: usize, name: &[u8]) {
            self.come_up(level);
            if self.bytes.last().is_some_and(|last| *last != b'/') {
                self.bytes.push(b'/');
            }
            self.bytes.extend_from_slice(name);
            self.ends.push(self.bytes.len());
        }
    }

    /// Numbers that a seed fixes.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            usize::try_from((self.0 >> 33) % end as u64).unwrap()
        }
    }

    /// Threads go down and up, and take what others gave, then or later: each has the path that plain bytes have.
    #[test]
    fn any_mix_of_threads_has_the_paths_of_plain_bytes() {
        let steps = if cfg!(miri) { 300 } else { 20_000 };
        for root in [&b""[..], b"/", b"root", b"root/"] {
            let mut random = Random(root.len() as u64);
            let mut threads: Vec<_> = (0..3).map(|_| (TreePath::default(), Model::of_root(root))).collect();
            for (path, _) in &mut threads {
                assert_eq!(path.begin(root), root.len());
            }
            let mut given: Vec<(GivenPath, Model)> = Vec::new();
            for _ in 0..steps {
                let (path, model) = &mut threads[random.below(3)];
                // Mostly near the bottom.
                let level = model.ends.len() - 1 - random.below(model.ends.len().min(3));
                match random.below(8) {
                    0..4 => {
                        let name =
                            CString::new(vec![b'a' + u8::try_from(random.below(3)).unwrap(); 1 + random.below(3)])
                                .unwrap();
                        let at = path.enter(model.ends[level], &name);
                        model.enter(level, name.as_bytes());
                        assert_eq!(path.from(at), &*name);
                    }
                    4 => {
                        let level = random.below(model.ends.len());
                        path.come_up(model.ends[level]);
                        model.come_up(level);
                    }
                    5 | 6 => {
                        let level = random.below(model.ends.len());
                        let mut copy = model.clone();
                        copy.come_up(level);
                        given.push((path.give(model.ends[level]), copy));
                    }
                    _ if !given.is_empty() => {
                        let (path_of_other, model_of_other) = given.swap_remove(random.below(given.len()));
                        path.take(path_of_other);
                        *model = model_of_other;
                    }
                    _ => {}
                }
                assert_eq!(path.until(path.len()), model.bytes);
                assert_eq!(path.as_bytes_with_nul().last(), Some(&0));
                let segments = path.segments.iter().filter(|segment| segment.end() <= path.intact);
                let bytes: Vec<_> = segments.flat_map(|segment| segment.bytes.iter().copied()).collect();
                assert!(model.bytes.starts_with(&bytes), "what is intact is the beginning of the path");
            }
        }
    }

    /// Giving the same path again, or one above it, copies nothing.
    #[test]
    fn what_was_given_is_shared() {
        let mut path = TreePath::default();
        let root = path.begin(b"root");
        let a = path.enter(root, c"a") + 1;
        path.enter(a, c"b");
        let segment = |given: GivenPath| given.segment.unwrap();
        let of_a = segment(path.give(a));
        assert!(Arc::ptr_eq(&of_a, &segment(path.give(a))));
        assert!(Arc::ptr_eq(&of_a, &segment(path.give(root))));
        let mut other = TreePath::default();
        other.take(path.give(root));
        assert_eq!(other.until(other.len()), b"root");
        // The segment that it took reaches beyond its own path. That part is out of date at once.
        other.enter(root, c"c");
        other.take(path.give(a));
        assert_eq!(other.until(other.len()), b"root/a");
        assert!(Arc::ptr_eq(&of_a, &other.segments[0]));
    }

    #[test]
    fn any_number_of_segments_is_dropped_on_a_small_stack() {
        let mut path = TreePath::default();
        let mut end = path.begin(b"");
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            end = path.enter(end, c"m") + 1;
            drop(path.give(end));
        }
        let last = path.give(end);
        path.begin(b"");
        std::thread::Builder::new().stack_size(64 * 1024).spawn(|| drop(last)).unwrap().join().unwrap();
    }
}

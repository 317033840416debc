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

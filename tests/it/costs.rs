//! Allocations, counted: none per entry, none per directory, one per `Buffer`.

#[allow(dead_code, reason = "its `main` is the shell's to call")]
#[path = "../../examples/pids.rs"]
mod pids;

use crate::fixture::numbered;
use lendir::{Buffer, EndMarker, Entries};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

struct Counting;

thread_local! {
    /// Allocations of this thread, and their bytes.
    static ALLOCATED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn add(bytes: usize) {
    ALLOCATED.set({
        let (times, total) = ALLOCATED.get();
        (times + 1, total + bytes)
    });
}

// SAFETY: every call is passed on to `System` as it came; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// How often `work` allocates, and how many bytes.
fn allocated<T>(work: impl FnOnce() -> T) -> (usize, usize) {
    let before = ALLOCATED.get();
    black_box(work());
    let after = ALLOCATED.get();
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_buffer_is_one_allocation_of_its_capacity() {
    assert_eq!(allocated(Buffer::new), (1, Buffer::DEFAULT_CAPACITY));
    assert_eq!(allocated(|| Buffer::with_capacity(0)), (1, Buffer::MIN_CAPACITY));
}

#[test]
fn nothing_is_allocated_per_directory_or_entry() {
    let dirs = [numbered(0), numbered(16), numbered(5000)];
    let paths = dirs.each_ref().map(|dir| CString::new(dir.path().as_os_str().as_bytes()).unwrap());
    let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
    let mut read = 0;
    let costs = allocated(|| {
        for path in &paths {
            let dir = lendir::open(path).unwrap();
            let marker = EndMarker::of(&dir).unwrap();
            let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker);
            for _ in 0..2 {
                entries.rewind().unwrap();
                while let Some(entry) = entries.next().unwrap() {
                    black_box((
                        entry.name(),
                        entry.name_os(),
                        entry.numeric_name(),
                        entry.resolve_file_type().unwrap(),
                    ));
                    read += 1;
                }
            }
            entries.rewind().unwrap();
            read += entries.count().unwrap();
        }
    });
    assert_eq!(read, 3 * 5016);
    assert_eq!(costs, (0, 0));
}

#[test]
fn errors_allocate_nothing() {
    let file = tempfile::tempfile().unwrap();
    let mut buffer = Buffer::new();
    let costs = allocated(|| {
        assert!(lendir::open("/nowhere").is_err());
        assert!(lendir::openat(&file, "below").is_err());
        assert!(Entries::new(&file, &mut buffer).next().is_err());
        assert!(Entries::new(&file, &mut buffer).seek(u64::MAX).is_err());
    });
    assert_eq!(costs, (0, 0));
}

#[test]
fn the_process_lister_allocates_nothing_per_process() {
    let fake_proc = |count: u32| {
        let dir = tempfile::tempdir().unwrap();
        for pid in 1..=count {
            let process = dir.path().join(pid.to_string());
            std::fs::create_dir(&process).unwrap();
            std::fs::write(process.join("comm"), format!("process {pid}\n")).unwrap();
        }
        dir
    };
    let list = |proc: &Path, out: &mut Vec<u8>| {
        let args = ["--proc".into(), proc.into()];
        out.clear();
        allocated(|| assert!(pids::pids(args.into_iter(), out).unwrap()))
    };
    let (few, many) = (fake_proc(1), fake_proc(1000));
    let mut out = Vec::with_capacity(1 << 16);
    let (once, _) = list(few.path(), &mut out);
    assert_eq!(out, b"1 process 1\n");
    let (again, _) = list(many.path(), &mut out);
    assert_eq!(out.split(|byte| *byte == b'\n').count(), 1001);
    assert_eq!(once, again, "allocations for 1 and for 1000 processes");
}

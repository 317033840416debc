//! rustix, whose `RawDir` gets its records from a test in place of the kernel. A batch is laid out
//! as the kernel lays it out, and ends where the next record would not fit.

pub use real::*;

pub mod fs {
    pub use super::raw_dir::{Answer, RawDir, RawDirEntry, Record, answer};
    pub use real::fs::*;
}

mod raw_dir {
    use real::fd::AsFd;
    use real::fs::FileType;
    use real::io::{Errno, Result};
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    /// The bytes before the name.
    const HEADER: usize = 19;

    #[derive(Clone, Debug)]
    pub struct Record {
        pub ino: u64,
        pub cookie: u64,
        pub d_type: u8,
        /// Any bytes except NUL.
        pub name: Vec<u8>,
    }

    /// The answer of `getdents64`: records, of which some may be left for the next call, or an
    /// error.
    pub type Answer = Result<VecDeque<Record>>;

    thread_local! {
        static ANSWERS: RefCell<VecDeque<Answer>> = const { RefCell::new(VecDeque::new()) };
    }

    /// Sets what this thread's calls of `getdents64` return from now on. After the last answer, the
    /// directory ends.
    pub fn answer(answers: impl IntoIterator<Item = Answer>) {
        ANSWERS.set(answers.into_iter().collect());
    }

    pub struct RawDir<'buf, Fd: AsFd> {
        _fd: Fd,
        buf: &'buf mut [MaybeUninit<u8>],
        initialized: usize,
        offset: usize,
    }

    impl<'buf, Fd: AsFd> RawDir<'buf, Fd> {
        pub fn new(fd: Fd, buf: &'buf mut [MaybeUninit<u8>]) -> Self {
            let offset = buf.as_ptr().align_offset(8).min(buf.len());
            Self { _fd: fd, buf: &mut buf[offset..], initialized: 0, offset: 0 }
        }

        pub fn is_buffer_empty(&self) -> bool {
            self.offset >= self.initialized
        }

        #[allow(clippy::should_implement_trait, reason = "the real one lends, too")]
        pub fn next(&mut self) -> Option<Result<RawDirEntry<'_>>> {
            if self.is_buffer_empty() {
                self.offset = 0;
                self.initialized = 0;
                match ANSWERS.with_borrow_mut(|answers| self.read(answers)) {
                    Ok(0) => return None,
                    Ok(initialized) => self.initialized = initialized,
                    Err(errno) => return Some(Err(errno)),
                }
            }
            let start = self.offset;
            let field = |start: usize| {
                // SAFETY: `write` has written the header.
                let byte = |index: usize| unsafe { self.buf[start + index].assume_init() };
                u64::from_ne_bytes(std::array::from_fn(byte))
            };
            let (ino, cookie, rest) = (field(start), field(start + 8), field(start + 16));
            let [low, high, d_type, ..] = rest.to_ne_bytes();
            self.offset += usize::from(u16::from_ne_bytes([low, high]));
            // SAFETY: `write` has written the name and a NUL.
            let name = unsafe { CStr::from_ptr(self.buf[start + HEADER..].as_ptr().cast()) };
            Some(Ok(RawDirEntry { ino, cookie, d_type, name }))
        }

        /// Is `getdents64`. Returns the length of the records that were written.
        fn read(&mut self, answers: &mut VecDeque<Answer>) -> Result<usize> {
            let mut records = answers.pop_front().unwrap_or(Ok(VecDeque::new()))?;
            let mut end = 0;
            while let Some(record) = records.front() {
                let len = (HEADER + record.name.len() + 1).next_multiple_of(8);
                if end + len > self.buf.len() {
                    if end == 0 {
                        return Err(Errno::INVAL);
                    }
                    answers.push_front(Ok(records));
                    break;
                }
                let reclen = u16::try_from(len).expect("a name is too long").to_ne_bytes();
                let header = [&record.ino.to_ne_bytes()[..], &record.cookie.to_ne_bytes(), &reclen];
                let bytes = header.concat().into_iter().chain([record.d_type]);
                let bytes = bytes.chain(record.name.iter().copied()).chain([0]);
                for (to, byte) in self.buf[end..end + len].iter_mut().zip(bytes) {
                    to.write(byte);
                }
                end += len;
                records.pop_front();
            }
            Ok(end)
        }
    }

    pub struct RawDirEntry<'a> {
        ino: u64,
        cookie: u64,
        d_type: u8,
        name: &'a CStr,
    }

    impl RawDirEntry<'_> {
        pub fn file_name(&self) -> &CStr {
            self.name
        }

        pub fn file_type(&self) -> FileType {
            match self.d_type {
                0..16 => FileType::from_raw_mode(u32::from(self.d_type) << 12),
                _ => FileType::Unknown,
            }
        }

        pub fn ino(&self) -> u64 {
            self.ino
        }

        pub fn next_entry_cookie(&self) -> u64 {
            self.cookie
        }
    }
}

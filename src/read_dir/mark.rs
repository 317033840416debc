//! `Mark`, `Feedback`: by what a walk goes below an entry or not: what the entry can be, and what its caller was answered about it
//! and chose. It does not know how an entry is opened, nor when a walk looks at this.

use rustix::fs::FileType;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What is known of an entry, or of a name: a set of these. That of an entry is never empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u8);

impl Mark {
    /// It can be a directory.
    pub(crate) const DIRECTORY: Self = Self(1);
    /// It can be a symbolic link.
    const LINK: Self = Self(1 << 1);
    pub(crate) const UNKNOWN: Self = Self(Self::DIRECTORY.0 | Self::LINK.0);
    /// The caller was answered what it is. Otherwise the record says so.
    const ANSWERED: Self = Self(1 << 2);
    /// The caller was answered with an error: that of opening it would be the second.
    const FAILED: Self = Self(1 << 3);

    // What the caller chose: one of these, or none.
    pub(crate) const SKIPPED: Self = Self(1 << 4);
    pub(crate) const FOLLOWED: Self = Self(2 << 4);
    /// To be entered whatever it seems to be.
    pub(crate) const ENTERED: Self = Self(3 << 4);
    /// The same, though no entry can have this name.
    pub(crate) const NO_NAME: Self = Self(4 << 4);
    /// Skipped, with all that comes after it in its directory: only of an entry of a `Walk`.
    pub(crate) const LAST: Self = Self(5 << 4);
    const CHOICE: u8 = 7 << 4;

    /// By the type in the record. `None` for an entry that a walk never enters.
    #[inline]
    pub(crate) fn of(d_type: FileType) -> Option<Self> {
        match d_type {
            FileType::Directory => Some(Self::DIRECTORY),
            FileType::Unknown => Some(Self::UNKNOWN),
            FileType::Symlink => Some(Self::LINK),
            _ => None,
        }
    }

    #[inline]
    fn has(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    #[inline]
    pub(crate) fn choice(self) -> Self {
        Self(self.0 & Self::CHOICE)
    }

    /// What comes from the caller. Empty if nothing does.
    pub(crate) fn of_caller(self) -> Self {
        let by_record = if self.has(Self::ANSWERED) { 0 } else { Self::UNKNOWN.0 };
        Self(self.0 & !by_record)
    }

    /// What it becomes by what comes `later` from the caller: the last choice and the last answer count, each for itself.
    #[inline]
    pub(crate) fn then(self, later: Self) -> Self {
        let answer = if later.has(Self::ANSWERED) { Self::UNKNOWN.0 | Self::FAILED.0 } else { 0 };
        let choice = if later.choice() == Self::default() { 0 } else { Self::CHOICE };
        Self(self.0 & !(answer | choice) | later.0)
    }

    /// What a walk that goes on acts by. `None` if it does not try to go below.
    #[inline]
    pub(crate) fn settled(self) -> Option<Self> {
        match self.choice() {
            Self::SKIPPED | Self::LAST => None,
            Self::ENTERED => Some(Self::DIRECTORY),
            _ => (self.can_be_directory() || self.is_followed() || self == Self::NO_NAME)
                .then_some(self),
        }
    }

    #[inline]
    pub(crate) fn can_be_directory(self) -> bool {
        self.has(Self::DIRECTORY)
    }

    /// Whether it is entered even if it is a link, and can be one.
    #[inline]
    pub(crate) fn is_followed(self) -> bool {
        self.has(Self::LINK) && self.choice() == Self::FOLLOWED
    }

    pub(crate) fn can_be_link(self) -> bool {
        self.has(Self::LINK)
    }

    pub(crate) fn has_failed(self) -> bool {
        self.has(Self::FAILED)
    }

    /// For memory. Not 0 if it is that of an entry.
    #[inline]
    pub(crate) fn to_byte(self) -> u8 {
        self.0
    }

    #[inline]
    pub(crate) fn from_byte(byte: u8) -> Self {
        Self(byte)
    }
}

/// What comes from the caller about the entry lent last, until the walk takes it. What was chosen and what was answered are kept
/// apart, so the order of calls does not matter.
///
/// Atomic only because an [`Entry`](crate::Entry) is `Sync`.
#[derive(Debug, Default)]
pub(crate) struct Feedback {
    choice: AtomicU8,
    answer: AtomicU8,
}

impl Feedback {
    #[inline]
    pub(crate) fn choose(&self, choice: Mark) {
        self.choice.store(choice.0, Relaxed);
    }

    /// The type that the caller was answered, or `None` for an error, which takes back no type that was answered before.
    pub(crate) fn answer(&self, file_type: Option<FileType>) {
        let answer = match file_type {
            Some(file_type) => Mark::ANSWERED.0 | Mark::of(file_type).unwrap_or_default().0,
            None => Mark::FAILED.0 | self.answer.load(Relaxed),
        };
        self.answer.store(answer, Relaxed);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.choice.load(Relaxed) | self.answer.load(Relaxed) == 0
    }

    /// Empty if nothing came.
    #[inline]
    pub(crate) fn take(&self) -> Mark {
        let taken = Mark(self.choice.load(Relaxed) | self.answer.load(Relaxed));
        if taken != Mark::default() {
            self.choice.store(0, Relaxed);
            self.answer.store(0, Relaxed);
        }
        taken
    }
}

//! A state of a walk that panics.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

/// Counters of clones and of drops. A panic without a message comes when a counter reaches 0, once.
pub struct Fuses(pub Arc<[AtomicUsize; 2]>);

const BLOWN: &str = "on purpose";

impl Fuses {
    /// A counter that begins at 0 never panics.
    pub fn new(counters: [usize; 2]) -> Self {
        Self(Arc::new(counters.map(AtomicUsize::new)))
    }

    fn burn(&self, index: usize) {
        if self.0[index].fetch_sub(1, SeqCst) == 1 && !thread::panicking() {
            resume_unwind(Box::new(BLOWN));
        }
    }
}

impl Clone for Fuses {
    fn clone(&self) -> Self {
        self.burn(0);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Fuses {
    fn drop(&mut self) {
        self.burn(1);
    }
}

pub fn is_blown(panic: &dyn Any) -> bool {
    panic.downcast_ref() == Some(&BLOWN)
}

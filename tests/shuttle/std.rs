//! What `lendir` uses of `std` to work in several threads, run by shuttle's scheduler: it decides at each lock, atomic and
//! start of a thread which thread goes on.

pub(crate) use shuttle::sync;

pub(crate) mod thread {
    use shuttle::rand::{Rng, thread_rng};
    use shuttle::thread::Scope;
    pub(crate) use shuttle::thread::{ScopedJoinHandle, scope};
    use std::io;

    pub(crate) struct Builder;

    impl Builder {
        pub(crate) fn new() -> Self {
            Self
        }

        /// Now and then the system refuses to start a thread.
        pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
            self,
            scope: &'scope Scope<'scope, '_>,
            work: impl FnOnce() -> T + Send + 'scope,
        ) -> io::Result<ScopedJoinHandle<'scope, T>> {
            if thread_rng().gen_range(0..16) == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(scope.spawn(work))
        }
    }
}

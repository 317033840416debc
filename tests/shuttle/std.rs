//! The parts of `std` that `lendir` uses for several threads, under shuttle's scheduler. The
//! scheduler decides at each lock, atomic and start of a thread which thread continues.

pub(crate) mod sync {
    use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
    use std::ops::Deref;

    /// An `Arc` at which the scheduler may switch threads. Shuttle's own is the `Arc` of `std`.
    #[derive(Debug)]
    pub(crate) struct Arc<T>(std::sync::Arc<Counted<T>>);

    #[derive(Debug)]
    struct Counted<T> {
        value: T,
        /// A counter that changes wherever `std` counts.
        count: AtomicUsize,
    }

    impl<T> Arc<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::sync::Arc::new(Counted { value, count: AtomicUsize::new(0) }))
        }

        pub(crate) fn into_inner(this: Self) -> Option<T> {
            this.0.count.fetch_add(1, SeqCst);
            std::sync::Arc::into_inner(this.0).map(|counted| counted.value)
        }

        pub(crate) fn try_unwrap(this: Self) -> Result<T, Self> {
            this.0.count.fetch_add(1, SeqCst);
            std::sync::Arc::try_unwrap(this.0).map(|counted| counted.value).map_err(Self)
        }

        pub(crate) fn ptr_eq(this: &Self, other: &Self) -> bool {
            std::sync::Arc::ptr_eq(&this.0, &other.0)
        }

        pub(crate) fn strong_count(this: &Self) -> usize {
            this.0.count.fetch_add(1, SeqCst);
            std::sync::Arc::strong_count(&this.0)
        }
    }

    impl<T> Clone for Arc<T> {
        fn clone(&self) -> Self {
            self.0.count.fetch_add(1, SeqCst);
            Self(std::sync::Arc::clone(&self.0))
        }
    }

    impl<T> Deref for Arc<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0.value
        }
    }
}

pub(crate) mod thread {
    use shuttle::rand::{Rng, thread_rng};
    use shuttle::sync::mpsc;
    pub(crate) use shuttle::thread::{JoinHandle, Scope, ScopedJoinHandle, spawn};
    use std::io;
    use std::num::NonZero;
    pub(crate) use std::thread::Result;

    pub(crate) fn available_parallelism() -> io::Result<NonZero<usize>> {
        Ok(const { NonZero::new(10).unwrap() })
    }

    /// Same as shuttle's, which wakes the scope's own thread when the last thread in it ends, even
    /// if the scope's thread waits for something else by then. So one thread stays until `work`
    /// returns.
    pub(crate) fn scope<'env, T>(
        work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    ) -> T {
        shuttle::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<()>();
            scope.spawn(move || receiver.recv());
            let result = work(scope);
            drop(sender);
            result
        })
    }

    pub(crate) struct Builder;

    impl Builder {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
            self,
            scope: &'scope Scope<'scope, '_>,
            work: impl FnOnce() -> T + Send + 'scope,
        ) -> io::Result<ScopedJoinHandle<'scope, T>> {
            refuse_now_and_then().map(|()| scope.spawn(work))
        }

        pub(crate) fn spawn<T: Send + 'static>(
            self,
            work: impl FnOnce() -> T + Send + 'static,
        ) -> io::Result<JoinHandle<T>> {
            refuse_now_and_then().map(|()| spawn(work))
        }
    }

    /// Refuses to start a thread now and then, as the system may.
    fn refuse_now_and_then() -> io::Result<()> {
        if thread_rng().gen_range(0..16) == 0 {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            Ok(())
        }
    }
}

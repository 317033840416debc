/// The thread waits while paths are not taken, sends them all, and ends when `Paths` is dropped.
pub fn test() {
    use std::time::Duration;
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    (0..2000).for_each(|number| std::fs::create_dir(format!("src/{number}")).unwrap());
    let mut context = Context::from_waker(Waker::noop());

    let mut paths = Paths::new("src".into()).unwrap();
    let mut next = || loop {
        match paths.poll_next(&mut context) {
            Poll::Ready(path) => return path,
            Poll::Pending => thread::yield_now(),
        }
    };
    let mut all: Vec<_> = std::iter::from_fn(&mut next).map(Result::unwrap).collect();
    all.sort();
    all.dedup();
    assert_eq!((all.len(), next().is_none()), (2000, true));

    let missing = Paths::new("missing".into()).unwrap();
    assert!(missing.receiver.recv().unwrap().unwrap_err().is_root());
    drop(missing);

    let mut paths = Paths::new("src".into()).unwrap();
    while !matches!(paths.poll_next(&mut context), Poll::Ready(Some(Ok(_)))) {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(20));
    assert_eq!(threads(), 2, "the thread does not wait for the program");
    drop(paths);
    while threads() > 1 {
        thread::sleep(Duration::from_millis(1));
    }
}

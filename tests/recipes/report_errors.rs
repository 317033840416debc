/// Tells errors of the caller's own calls, even at the root, from a root that cannot be read.
pub fn test() {
    use rustix::io::Errno;
    let status_of = |error: Error| {
        let mut status = 0;
        report(error, &mut status);
        status
    };
    let mut walk = lendir::walk_dirs("src").unwrap();
    let root = walk.next().unwrap().unwrap();
    for (errno, status) in [(Errno::NOENT, 0), (Errno::ACCESS, 1)] {
        assert_eq!(status_of(root.wrap_error(errno)), status);
        assert_eq!(status_of(Error::new("src", errno)), status);
    }
    assert_eq!(status_of(lendir::walk("missing").unwrap_err()), 2);

    let mut status = 2; // does not fall
    report(Error::new("src", Errno::ACCESS), &mut status);
    assert_eq!(status, 2);
}

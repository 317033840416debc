/// Tries paths that leave the root, or lead to something else by now.
pub fn test() {
    use rustix::fs::{CWD, mkfifoat};
    use std::os::unix::fs::symlink;
    let root = lendir::open("src").unwrap();
    let open = |path: &str| open_later(&root, path.as_ref());
    assert!(open("a/file").is_ok());
    mkfifoat(CWD, "src/fifo", Mode::RWXU).unwrap();
    symlink("a/file", "src/link").unwrap();
    std::fs::rename("src/a", "aside").unwrap();
    symlink("../outside", "src/a").unwrap();
    for path in ["a/file", "link", "fifo", ".", "../outside/file", "/etc/passwd"] {
        assert!(open(path).is_err(), "{path}");
    }
}

/// Changes a tree whose directories are locked, as `chmod` does. A link to a file outside changes
/// nothing there, and a file with two names is changed once.
pub fn test() {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::process::Command;
    let set = |path: &str, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = |path: &str| fs::metadata(path).unwrap().mode() & 0o7777;
    let owner = Uid::from_raw(fs::metadata("src").unwrap().uid());
    symlink("../../outside", "src/a/link").unwrap();
    fs::hard_link("src/a/file", "src/a/second name").unwrap();
    fs::create_dir("by chmod").unwrap();
    for mode in 0..0o1000 {
        for path in [format!("src/a/{mode}"), format!("by chmod/{mode}")] {
            fs::write(&path, "").unwrap();
            set(&path, mode);
        }
    }
    for (path, mode) in
        [("outside", 0o757), ("src/a/file", 0o457), ("src/a/b", 0), ("src/a", 0o057), ("src", 0)]
    {
        set(path, mode);
    }
    change_tree("src".as_ref(), owner).unwrap();
    let modes = ["src", "src/a", "src/a/b", "src/a/file", "outside"].map(mode);
    assert_eq!(modes, [0o700, 0o750, 0o700, 0o750, 0o757]);
    assert!(Command::new("chmod").args(["-R", "u+rwX,o=", "by chmod"]).status().unwrap().success());
    for number in 0..0o1000 {
        let [own, chmod] = ["src/a", "by chmod"].map(|dir| mode(&format!("{dir}/{number}")));
        assert_eq!(own, chmod, "{number:o}");
    }

    let fds = lendir::open("/proc/self/fd").unwrap();
    let mut change = Change { owner, fds, changed: HashSet::new() };
    let file = fs::File::open("src/a/file").unwrap();
    for expected in [0o750, 0o407] {
        change.apply(&file).unwrap();
        assert_eq!(mode("src/a/second name"), expected);
        set("src/a/file", 0o407);
    }
}

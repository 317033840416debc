/// Changes a tree whose directories are locked. A link to a file outside changes nothing there, and
/// a file with two names is changed once.
pub fn test() {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let owner = Uid::from_raw(fs::metadata("src").unwrap().uid());
    symlink("../../outside", "src/a/link").unwrap();
    fs::hard_link("src/a/file", "src/a/second name").unwrap();
    for (path, mode) in
        [("outside", 0o757), ("src/a/file", 0o457), ("src/a/b", 0), ("src/a", 0o057), ("src", 0)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    change_tree("src".as_ref(), owner).unwrap();
    let mode = |path| fs::metadata(path).unwrap().mode() & 0o777;
    let modes = ["src", "src/a", "src/a/b", "src/a/file", "outside"].map(mode);
    assert_eq!(modes, [0o700, 0o750, 0o700, 0o650, 0o757]);

    let (file, mut changed) = (fs::File::open("src/a/file").unwrap(), Changed::new());
    for mode in [0o650, 0o407] {
        change(&file, owner, &mut changed).unwrap();
        assert_eq!(fs::metadata("src/a/second name").unwrap().mode() & 0o777, mode);
        file.set_permissions(fs::Permissions::from_mode(0o407)).unwrap();
    }
}

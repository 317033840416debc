/// Checks which of these mounts are walked, and which are printed.
fn check(mountinfo: &str, walked: &[&str], left_out: &[&str]) {
    let mut others = Vec::new();
    let roots = mount_points(mountinfo.as_bytes(), |mount| others.push(mount.point.clone()));
    let path = |path: &&str| PathBuf::from(path);
    let expected: [Vec<PathBuf>; 2] = [walked, left_out].map(|paths| paths.iter().map(path).collect());
    assert_eq!([roots, others], expected, "{mountinfo}");
}

pub fn test() {
    assert_eq!(unescape(br"/a\040b\134\x"), PathBuf::from(r"/a b\\x"));
    // An overlay in a container, a wanted file system below a tmpfs, and a bind mount of a file.
    check(
        "1 9 0:1 / / rw - overlay o rw\n2 1 0:2 / /proc rw - proc p rw\n\
         3 1 0:3 / /run rw - tmpfs t rw\n4 3 8:1 / /run/media/a\\040b rw shared:1 - ext4 d rw\n\
         5 1 8:1 /etc/hosts /etc/hosts rw - ext4 d rw\n",
        &["/", "/run/media/a b", "/etc/hosts"],
        &["/proc", "/run"],
    );
    // What is mounted below a server cannot be reached without it.
    check(
        "1 0 8:1 / / rw - ext4 d rw\n2 1 0:2 / /net rw - nfs4 s rw\n\
         3 2 8:2 / /net/disk rw - xfs d rw\n4 1 0:4 / /sshfs rw - fuse.sshfs s rw\n",
        &["/"],
        &["/net", "/net/disk", "/sshfs"],
    );
    // A mount hides those below its place, and the one at its place, whatever the order.
    check(
        "1 0 8:1 / / rw - ext4 d rw\n2 1 8:2 / /a/b rw - ext4 d rw\n4 3 0:4 / /a rw - tmpfs t rw\n\
         3 1 8:3 / /a rw - xfs d rw\n5 4 8:5 / /a/b rw - btrfs d rw\n",
        &["/", "/a/b"],
        &["/a"],
    );
    // A file system over the first root, as in an initial RAM disk.
    check("1 1 0:1 / / rw - rootfs r rw\n2 1 8:1 / / rw - ext4 d rw\n", &["/"], &[]);
}

//! The example `du`, as a program: against `du -k` of the system.

use crate::examples::assert_same;
use crate::fixture::{example, has_gnu, in_mount_namespace, run};
use crate::machine::skip;
use crate::support::tree::{self, Tree};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Makes a file and waits until it has its final size on disk: file systems may allocate space only on writeback.
fn write(path: &Path, bytes: usize) {
    fs::write(path, vec![1; bytes]).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

/// Hidden, sparse and empty files, links of both kinds, and directories that may not be read or searched.
fn make(at: &Path) {
    tree::make(at, &["a/b/c/", "a/.hidden/.file", "a/empty", "b/"]);
    let files = [("a/file", 1), ("a/b/large", 1_000_000), ("a/b/c/.file", 4097), ("b/file", 513), ("b/one", 9999)];
    for (path, bytes) in files {
        write(&at.join(path), bytes);
    }
    File::create_new(at.join("a/sparse")).unwrap().set_len(1 << 30).unwrap();
    for link in ["b/two", "b/three", "a/b/another"] {
        fs::hard_link(at.join("b/one"), at.join(link)).unwrap();
    }
    symlink("b", at.join("link")).unwrap();
    symlink("x".repeat(1000), at.join("a/dangling")).unwrap();
    for mode in [0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600] {
        let dir = at.join(format!("modes/{mode:o}"));
        tree::make(&dir, &["below/empty/", "file"]);
        write(&dir.join("below/large"), 10_000);
        fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn agrees_with_the_system() {
    if !has_gnu("du", "agrees_with_the_system") {
        return;
    }
    let assert_same = |dir: &Path, threads: &[&str], args: &[&str]| assert_same("du", dir, threads, "-k", args);
    let tree = Tree::on_disk(make);
    for (threads, paths) in [
        (&["-j0", "-j1", "-j8"][..], &["a"][..]),
        (&["-j1", "-j8"], &["a/b", "modes", "missing", "b/file/", "./a/.hidden/."]),
        (&["-j1"], &["a/file", "link", "link/", "a/dangling", tree.path().join("a/b").to_str().unwrap()]),
        (&["-j1"], &["."]), // with several threads, chance decides which link of `b/one` is found first
        (&["-j1"], &["modes/0", "modes/0/file", "modes/100", "modes/100/below", "modes/400"]),
        (&["-j1"], &["a/b", "a", ".", "b"]),
        (&["-j1"], &["b/one", "b/two", "b", "a/b/another", "a/b/../b"]),
    ] {
        for options in [&[][..], &["-s"], &["-x"], &["-sx"], &["-d", "1"], &["-d2", "-k"]] {
            assert_same(tree.path(), threads, &[options, &["--"], paths].concat());
        }
    }
    assert_same(Path::new("/"), &["-j1", "-j2"], &["sys/class", "etc"]);
    assert_same(Tree::new(|at| tree::chain(at, 2500)).path(), &["-j1", "-j2"], &[]);
    assert_same(Tree::new(|at| tree::wide(at, 2000, 20)).path(), &["-j2"], &[]);
}

#[test]
fn sizes_for_humans_are_rounded_up() {
    let tree = Tree::on_disk(|_| {});
    for bytes in [0, 4096, 99_000, 1_020_000, 1_050_000, 1_500_000] {
        let path = tree.path().join(bytes.to_string());
        write(&path, bytes);
        let kib = fs::metadata(&path).unwrap().blocks().div_ceil(2);
        let size = if kib < 1024 { format!("{kib}.0K") } else { format!("1.{}M", (kib - 1024).div_ceil(103)) };
        let output = run(example("du").arg("-h").arg(&path));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{size}\t{}\n", path.display()));
    }
}

/// Mounts are left out with `-x`. Without it, a directory that is mounted twice counts once.
#[test]
fn what_is_mounted() {
    let tree = Tree::on_disk(|at| {
        tree::make(at, &["a/b/c/", "a/d/"]);
        write(&at.join("a/b/large"), 100_000);
    });
    let script = r#"mount --bind a a/b/c && mount -t tmpfs none a/d && head -c 8192 /dev/zero >a/d/file || exit
        for options in "-j1" "-j8" "-x -j1" "-x -j8"; do "$0" -s $options a; done; for options in -sk -sk -skx -skx; do du $options a; done"#;
    let Some(output) = in_mount_namespace(tree.path(), "du", script) else {
        return skip("what_is_mounted", "user namespaces");
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..4], lines[4..], "`du` differs from GNU's");
    assert_ne!(lines[0], lines[2]);
}

//! The example `find`, as a program: against the system's `find`.

use crate::examples::assert_same;
use crate::fixture::{has_gnu, make_file, mixed};
use crate::support::tree::{self, Tree};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[test]
fn agrees_with_the_system() {
    if !has_gnu("find", "agrees_with_the_system") {
        return;
    }
    let assert_same = |dir: &Path, roots: &[&str], options: &[&str]| {
        assert_same("find", dir, &["-j0", "-j1", "-j3"], "-P", &[&["--"], roots, options, &["-print0"]].concat());
    };
    let root = mixed();
    let odd: [&[u8]; 4] = [b"directory/\xff\xfe", b"directory/new\nline", b"directory/.hidden", b"-f/-x"];
    for path in odd.map(|path| root.path().join(OsStr::from_bytes(path))) {
        fs::create_dir_all(path.join("below/empty")).unwrap();
        make_file(&path.join("file"));
        symlink("..", path.join("loop")).unwrap();
    }
    let absolute = root.path().join("directory").into_os_string().into_string().unwrap();
    for roots in [
        &[][..],
        &[".", "directory/..", "directory/.hidden/.", "./", "directory//"],
        &["link", "link to a directory", "link to a directory/", "link to a directory/.hidden", "link to a file"],
        &["plain", "plain/", "fifo", "socket", "missing", "two\nlines", "plain", &absolute],
    ] {
        let types = ["-type f", "-maxdepth 2 -type d", "-type l -name *o*", "-type d -type f"];
        for options in ["", "-xdev", "-maxdepth 0"].into_iter().chain(types) {
            assert_same(root.path(), roots, &options.split_whitespace().collect::<Vec<_>>());
        }
    }
    let globs = "*e* .h* ? [a-z]? [!a-z] *\n* \\* *[^a-zA-Z] [[:upper:]]* *\\\\* [ link directory . .. /";
    for glob in globs.split(' ') {
        assert_same(root.path(), &[".", "directory//", "directory/..", "plain"], &["-name", glob]);
    }
    assert_same(Path::new("/"), &["/", "//", "/."], &["-maxdepth", "1"]);
    assert_same(Path::new("/"), &["/", "//", "/."], &["-maxdepth", "0", "-name", "/"]);
    assert_same(Path::new("/"), &["/sys/class", "/etc"], &[]);
    assert_same(Path::new("/"), &["/sys/fs", "/sys/kernel"], &["-xdev"]);

    let modes = [("none", 0o000), ("search only", 0o100), ("list only", 0o400), ("read only", 0o500)];
    let tree = Tree::on_disk(|at| {
        for (name, mode) in modes {
            tree::make(&at.join(name), &["below/empty/", "file"]);
            fs::set_permissions(at.join(name), Permissions::from_mode(mode)).unwrap();
        }
    });
    for roots in [&["."][..], &["none", "search only/below", "search only", "none/file", "list only/file", "."]] {
        assert_same(tree.path(), roots, &[]);
    }
}

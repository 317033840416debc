//! The example `grep`, as a program: against GNU `grep -rHIF`.

use crate::examples::assert_same;
use crate::fixture::has_gnu;
use crate::support::tree::{Tree, make};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn agrees_with_gnu() {
    if !has_gnu("grep", "agrees_with_gnu") {
        return;
    }
    let tree = Tree::on_disk(|at| {
        make(at, &["a/empty", "a/b/", "locked/in/file", "denied"]);
        for (path, text) in [
            ("a/text", &b"one\ntwo two\nthree and one"[..]),
            ("a/b/bytes", b"\xff one\n\xfe\xff\n\ntw\xc3\n"),
            ("a/b/binary", b"one\0two\n"),
            ("new\nline", b"one\r\n"),
        ] {
            fs::write(at.join(path), text).unwrap();
        }
        // One directory, so only jobs share it.
        (0..200).for_each(|number| fs::write(at.join("a/b").join(number.to_string()), format!("{number}\n")).unwrap());
        symlink("a/text", at.join("link")).unwrap();
        symlink("../a", at.join("a/b/link")).unwrap();
        symlink("a", at.join("link to a directory")).unwrap();
        for denied in ["locked", "denied"] {
            fs::set_permissions(at.join(denied), Permissions::from_mode(0o000)).unwrap();
        }
    });
    for text in ["one", "two two", "1", "\u{ff}", "tw", "nowhere", ""] {
        for paths in
            [&["."][..], &["a/", "missing", "new\nline"], &["link", "link to a directory", "denied"], &["a/text"]]
        {
            let args = [&["-r", "--", text], paths].concat();
            assert_same("grep", tree.path(), &["-j1", "-j2", "-j8"], "-HIF", &args);
        }
    }
}

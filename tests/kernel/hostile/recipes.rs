//! The recipes, as programs, where directories list no types and the server refuses to tell them.

use super::served;
use crate::fuse::{Answer, Directory, Record, Server};
use crate::support::recipe::recipe;
use crate::support::scratch::Scratch;
use libc::EIO;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::sync::Arc;

/// An entry whose type is unknown, and stays unknown, is an error. It is not left out.
#[test]
fn recipes_report_an_unknown_type() {
    served("hostile::recipes::recipes_report_an_unknown_type", || {
        let record = Record { name: b"odd".into(), ino: 7, d_type: 0 };
        let directory = Directory::with_answers(vec![Answer::Record(record)]);
        let directory = Directory { lookup: Arc::new(|_| Err(EIO)), ..directory };
        let (server, scratch) = (Server::mount(vec![directory]).unwrap(), Scratch::new());
        symlink(server.path(0), scratch.path().join("src")).unwrap();
        for title in [
            "Report errors and go on",
            "Draw a tree",
            "Add up sizes on one thread",
            "Add up sizes on all cores",
            "Show progress",
            "Apply ignore rules",
            "List a tree in pages",
            "Hash every file of a tree",
            "List in order on all cores",
        ] {
            let mut recipe = recipe(title);
            let output = recipe.current_dir(scratch.path()).stdin(Stdio::null()).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(errors.contains("src/odd: Input/output error"), "{title}: {output:?}");
        }
    });
}

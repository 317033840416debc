//! The recipes, as programs, on a server that tells no types, and on one that removes nothing.

use super::served;
use crate::fuse::{Answer, Directory, Record, Server, dir, directory, file_record, leaf};
use crate::support::example::example;
use crate::support::prelude::*;
use crate::support::recipe::recipe;

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
            "Report errors",
            "Draw a tree",
            "Add up sizes",
            "Sizes on all cores",
            "Show progress",
            "Apply ignore rules",
            "Pages of a tree",
            "Hash each file",
            "Order on all cores",
        ] {
            let mut recipe = recipe(title);
            let output = recipe.current_dir(scratch.path()).stdin(Stdio::null()).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(errors.contains("src/odd: Input/output error"), "{title}: {output:?}");
        }
    });
}

/// A removed file comes back under another name, as on many FUSE servers while it is open, or it
/// stays. The last program is GNU's.
#[test]
fn removal_ends_where_files_come_back() {
    served("hostile::recipes::removal_ends_where_files_come_back", || {
        let renamed = AtomicU64::new(0);
        let hidden = Directory::of_files(move |place| match place {
            0 => file_record(format!(".fuse_hidden{}", renamed.fetch_add(1, Relaxed))),
            _ => Answer::End,
        });
        let trees = [hidden, leaf()].map(|old| directory(vec![dir("old", old)]));
        let (server, programs) = (Server::mount(trees.into()).unwrap(), Scratch::new());
        // An ordinary user may lack permission to search the directory where cargo built them.
        let [recipe, rm] = [recipe("Remove a tree"), example("rm")].map(|program| {
            let program = program.get_program();
            assert!(
                Command::new("cp").arg(program).arg(programs.path()).status().unwrap().success()
            );
            programs.path().join(Path::new(program).file_name().unwrap())
        });
        for tree in 0..2 {
            for (program, args) in [
                (&*recipe, &["Remove a tree"][..]),
                (&rm, &["-r", "old"]),
                (&rm, &["-r", "-j", "4", "old"]),
                (Path::new("rm"), &["-r", "old"]),
            ] {
                let mut command = Command::new(program);
                command.args(args).env("LC_ALL", "C").current_dir(server.path(tree));
                let output = as_nobody(|| command.output().unwrap());
                let errors = String::from_utf8_lossy(&output.stderr);
                let is_one = errors.lines().count() == 1 && errors.contains("Directory not empty");
                assert!(is_one && output.status.code() == Some(1), "{program:?}: {output:?}");
            }
        }
    });
}

//! Whole programs on a file system that takes a millisecond for each call: how many calls they wait for, and how many at once.

use crate::commands::{OWN, build_examples, bytes_of_names, command, kibibytes};
use crate::fuse::{LATENCY, POINT, Server, Shape};
use crate::programs::run;
use lendir_benches::Arguments;
use std::thread;
use std::time::Instant;

const FIND: &[&str] = &[
    "find",
    "bfs",
    "fdfind -u -j1 .",
    "fdfind -u -j2 .",
    "fdfind -u -j8 .",
    "fdfind -u -j16 .",
    "examples/find -j 1",
    "examples/find -j 2",
    "examples/find -j 8",
    "examples/find -j 16",
];

const DU: &[&str] =
    &["du -sk", "examples/du -s -j 1", "examples/du -s -j 2", "examples/du -s -j 8", "examples/du -s -j 16"];

/// Prints both tables. SKIPPED where this process may not mount, or there is no FUSE.
pub fn print_tables(arguments: &Arguments) {
    let title = "Peers: programs on a slow file system";
    if !arguments.ask_for(title) {
        return;
    }
    println!("\n### {title}");
    let shape = Shape { levels: if arguments.has("--test") { 1 } else { 3 } };
    // The namespace of the mount is that of one thread, and ends with it.
    let measured = thread::spawn(move || match Server::mount(shape) {
        Err(error) => println!("\nSKIPPED: {error}"),
        Ok(server) => {
            build_examples();
            let files = shape.files();
            println!("\n{} directories, {files} files, 1 ms for each request", shape.directories());
            measure(&server, FIND, shape.bytes_of_names(), |output| bytes_of_names(output, POINT.as_ref()));
            measure(&server, DU, shape.kibibytes(), kibibytes);
        }
    });
    measured.join().expect("the thread that measures panicked");
}

/// Each command once: the server's sleep is nearly all of the time, and hardly differs from run to run.
fn measure(server: &Server, commands: &[&str], right: u64, answer: impl Fn(&[u8]) -> u64) {
    println!("\n| | time | requests waited for | at once |");
    println!("|---|---|---|---|");
    for name in commands {
        let (before, begin) = (server.waited_for(), Instant::now());
        let output = run(&mut command(name, POINT.as_ref()));
        let (seconds, requests) = (begin.elapsed().as_secs_f64(), server.waited_for() - before);
        match output {
            Ok(output) => {
                assert_eq!(answer(&output.stdout), right, "{name} answers wrongly");
                #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
                let at_once = requests as f64 * LATENCY.as_secs_f64() / seconds;
                println!("| `{name}` | {seconds:.2} s | {requests} | {at_once:.1} |");
            }
            Err(failure) if name.starts_with(OWN) => panic!("{name}: {failure}"),
            Err(failure) => println!("| `{name}` | SKIPPED: {} | – | – |", failure.lines().next().unwrap_or_default()),
        }
    }
}

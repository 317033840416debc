//! The example `watch`, as a program: a child of ours appears and vanishes before its eyes.

use crate::fixture::example;
use crate::machine::watchdog;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn reports_a_child_that_appears_and_vanishes_and_ends_on_ctrl_c() {
    let _watchdog = watchdog();
    let mut watch =
        example("watch").args(["-n", "0.02"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("watching "));

    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let appeared = format!("+ {} ", child.id());
    let appeared = lines.find(|line| line.starts_with(&appeared)).unwrap();
    // A child that is seen before its exec still has our name, so only that it has one is certain.
    assert!(appeared.len() > format!("+ {} ", child.id()).len(), "{appeared}");

    child.kill().unwrap();
    child.wait().unwrap();
    let vanished = format!("- {}", child.id());
    assert!(lines.any(|line| line == vanished));

    // SAFETY: a signal to a child that was not waited for.
    unsafe { libc::kill(watch.id().try_into().unwrap(), libc::SIGINT) };
    assert!(watch.wait().unwrap().success());
    let mut cost = String::new();
    watch.stderr.take().unwrap().read_to_string(&mut cost).unwrap();
    assert!(cost.contains(" scans took ") && cost.ends_with(" processes\n"), "{cost}");
}

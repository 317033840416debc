fn main() {
    println!("cargo::rustc-check-cfg=cfg(lendir_eager, lendir_polonius, lendir_shuttle)");
    println!("cargo::rustc-cfg=lendir_shuttle");
}

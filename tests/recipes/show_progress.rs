/// Walks several roots. One is missing, and one is in another one.
pub fn test() {
    println!("{} entries", count(&["missing", "src", "src/b"]));
}

/// Sets times around 1970, and checks the times that the kernel and the function make of them.
pub fn test() {
    let file = std::fs::File::create("file").unwrap();
    let fstat = || lendir::rustix::fs::fstat(&file).unwrap();
    for millis in [0_i64, 1, -1, 999, -999, 1000, -1000, -1001, 1_700_000_000_001] {
        let since = Duration::from_millis(millis.unsigned_abs());
        let time = if millis < 0 { UNIX_EPOCH - since } else { UNIX_EPOCH + since };
        file.set_modified(time).unwrap();
        assert_eq!(modified(&fstat()), time);
    }
}

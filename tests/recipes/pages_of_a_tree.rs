/// Pages of each length hold the same paths, in the order of the whole tree. A locked directory
/// before the page is not opened, so there is no error.
pub fn test() {
    use std::os::unix::fs::PermissionsExt;
    let all = |len, is_deep| {
        let (mut all, mut last) = (Vec::new(), Vec::new());
        loop {
            let page = page("src", &last, len, is_deep).unwrap();
            let Some(path) = page.last() else { return all };
            last.clone_from(path);
            all.extend(page.into_iter().map(|path| String::from_utf8(path).unwrap()));
        }
    };
    for len in 1..6 {
        assert_eq!(all(len, true), ["a.txt", "a/b", "b/c/d", "b0"]);
        assert_eq!(all(len, false), ["a.txt", "a/", "b/", "b0"]);
    }
    std::fs::set_permissions("src/a/locked", PermissionsExt::from_mode(0)).unwrap();
    assert_eq!(page("src", b"a/locked0", 9, true).unwrap(), [b"b/c/d".to_vec(), b"b0".to_vec()]);
    std::fs::set_permissions("src/a", PermissionsExt::from_mode(0)).unwrap();
    assert_eq!(page("src", b"a0", 9, true).unwrap(), [b"b/c/d".to_vec(), b"b0".to_vec()]);
}

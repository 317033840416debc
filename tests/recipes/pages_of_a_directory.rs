/// Reads a directory of 100 files in pages of 7, by both functions. Between two pages by name, the
/// files of the page are removed.
pub fn test() {
    let path = |name: &[u8]| format!("src/{}", std::str::from_utf8(name).unwrap());
    (100..200).for_each(|name: u32| std::fs::write(format!("src/{name}"), "").unwrap());
    let (mut by_cookie, mut next) = (Vec::new(), Some(0));
    while let Some(cookie) = next {
        let (names, after) = page_at("src", cookie, 7).unwrap();
        assert_eq!(names.len() == 7, after.is_some());
        by_cookie.extend(names);
        next = after;
    }
    by_cookie.sort();
    let (mut by_name, mut last) = (Vec::new(), Vec::new());
    loop {
        let names = page_after("src", &last, 7).unwrap();
        let Some(name) = names.last() else { break };
        last.clone_from(name);
        names.iter().for_each(|name| std::fs::remove_file(path(name)).unwrap());
        by_name.extend(names);
    }
    assert_eq!((by_cookie.len(), &by_cookie), (100, &by_name));
}

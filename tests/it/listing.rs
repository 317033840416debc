//! Checks `Listing`: the orders, the lookups, the iterators, and reading again.

use crate::support::prelude::*;

fn make(dir: &Path, names: &[Vec<u8>]) {
    for name in names {
        make_file(&dir.join(OsStr::from_bytes(name)));
    }
}

fn read(dir: &Path, listing: &mut Listing) -> Result<(), Error> {
    listing.read(lendir::open(dir)?)
}

fn names(listing: &Listing) -> Vec<Vec<u8>> {
    listing.iter().map(|entry| entry.name().to_vec()).collect()
}

/// Returns names of each length up to 255. Some are not UTF-8, and some differ only in case.
fn many_names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = (1..=255).map(|len| vec![0xff; len]).collect();
    names
        .extend((1..=255).map(|len| (1..=len).map(|i| if i == b'/' { b'_' } else { i }).collect()));
    names.extend(
        (0..500).map(|i| format!("{}_{i}", if i % 2 == 0 { "Name" } else { "nAME" }).into_bytes()),
    );
    names.sort();
    names.dedup();
    names
}

/// And `by_name` finds exactly the names in it.
#[test]
fn listing_has_the_stated_order() {
    let dir = Scratch::in_memory();
    make(dir.path(), &many_names());
    assert_eq!(names(&lendir::list(dir.path()).unwrap()), many_names());
    for name in ["Name", "name", "nAME_1-", "nAME_1."] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    let open = || lendir::open(dir.path()).unwrap();
    let scan = Scan::of(&mut Entries::new(open().as_fd(), &mut Buffer::new()));
    for order in ORDERS {
        let scan = scan.clone();
        let scan = if order == Order::Path {
            scan.resolved(|entry| entry.true_type(open()))
        } else {
            scan
        };
        let mut listing = Listing::with_order(order);
        assert!(listing.by_name(b"a").is_none());
        assert_eq!(Scan::from_listing(&mut listing, open()), scan.sorted(order), "{order:?}");
        let all: BTreeSet<_> = listing.iter().map(|entry| entry.name().to_vec()).collect();
        for name in &all {
            assert_eq!(listing.by_name(name).unwrap().name(), name, "{order:?}");
            let [longer, shorter] = [[name, &b"\x01x"[..]].concat(), name[1..].to_vec()];
            for other in [longer, shorter.to_ascii_uppercase(), [b"\x02", &name[..]].concat()] {
                let is_found = listing.by_name(&other).is_some();
                assert_eq!(is_found, all.contains(&other), "{order:?} {other:?}");
            }
        }
    }
}

#[test]
fn iterators_and_get_agree() {
    let dir = Scratch::in_memory();
    make(dir.path(), &many_names());
    let mut listing = Listing::new();
    assert!(listing.is_empty() && listing.iter().next().is_none());
    read(dir.path(), &mut listing).unwrap();

    let all = names(&listing);
    assert_eq!((listing.len(), listing.is_empty()), (all.len(), false));
    assert_eq!(listing.iter().len(), all.len());
    let mut reversed: Vec<_> = (&listing).into_iter().rev().map(|entry| entry.name()).collect();
    reversed.reverse();
    assert_eq!(reversed, all);
    let got: Vec<_> =
        (0..).map_while(|index| listing.get(index)).map(|entry| entry.name()).collect();
    assert_eq!(got, all);
    assert!(listing.get(all.len()).is_none() && listing.get(usize::MAX).is_none());

    assert_eq!(listing.iter().nth(3).unwrap().name(), all[3]);
    assert!(listing.iter().nth(all.len()).is_none());

    let mut both_ends = listing.iter();
    let mut seen = 0;
    while let (Some(front), Some(back)) = (both_ends.next(), both_ends.next_back()) {
        assert!(front.name() < back.name());
        seen += 2;
        assert_eq!(both_ends.clone().count(), both_ends.len());
    }
    assert!(all.len() - seen <= 1);
    assert!(iter::repeat_with(|| both_ends.next()).take(3).all(|entry| entry.is_none()));

    assert!(listing.iter().is_sorted() && listing.get(0) != listing.get(1));
    assert!((0..all.len()).all(|index| listing.get(index).unwrap().name() == all[index]));
    assert_eq!(listing.get(0), listing.by_name(&all[0]));
    for wrong in [Order::Path, Order::Unsorted].map(Listing::with_order) {
        for [a, b] in [[&listing, &wrong], [&wrong, &listing]] {
            assert!(catch_unwind(|| drop(a.zip_by_name(b))).is_err(), "they cannot be compared");
        }
    }

    listing.read(lendir::open(Scratch::new().path()).unwrap()).unwrap();
    assert!(listing.is_empty() && listing.get(0).is_none() && listing.by_name(&all[0]).is_none());
}

/// Fetched metadata belongs to the directory that was read. In another one, the entry asks.
#[test]
fn metadata_of_another_directory_is_asked_for() {
    let [source, target] = [(); 2].map(|()| Scratch::new());
    for (name, text) in [("changed", "long"), ("same", "text"), ("gone", "")] {
        fs::write(source.path().join(name), text).unwrap();
    }
    fs::write(target.path().join("changed"), "longer").unwrap();
    fs::write(target.path().join("same"), "text").unwrap();
    let mut listing = Listing::new().with_metadata();
    listing.read(lendir::open(source.path()).unwrap()).unwrap();
    let dir = lendir::open(target.path()).unwrap();
    let both = listing.iter().map(|entry| {
        let there = entry.in_dir(dir.as_fd()).metadata();
        (entry.metadata().unwrap().len(), there.ok().map(|there| there.len()))
    });
    assert_eq!(both.collect::<Vec<_>>(), [(4, Some(6)), (0, None), (4, Some(4))]);
    listing.read(dir).unwrap();
    assert_eq!(listing.by_name("changed").unwrap().metadata().unwrap().len(), 6);
}

//! Allocations that return `ENOMEM` if memory is refused, where `std` aborts or has no stable
//! method. They do not know what the memory is for.

use rustix::io::Errno;

/// Moves `value` to the heap. Only a `Vec` can be refused memory, hence the array.
pub(crate) fn try_box<T>(value: T) -> Result<Box<[T; 1]>, Errno> {
    try_collect([value]).and_then(|one| one.try_into().map_err(|_| Errno::NOMEM))
}

/// Collects the items of an iterator.
pub(crate) fn try_collect<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>, Errno> {
    let (items, mut collected) = (items.into_iter(), Vec::new());
    collected.try_reserve_exact(items.size_hint().0).map_err(|_| Errno::NOMEM)?;
    for item in items {
        try_push(&mut collected, item)?;
    }
    Ok(collected)
}

/// Pushes `item`.
pub(crate) fn try_push<T>(items: &mut Vec<T>, item: T) -> Result<(), Errno> {
    items.try_reserve(1).map_err(|_| Errno::NOMEM)?;
    items.push(item);
    Ok(())
}

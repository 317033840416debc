//! The first lesson of one directory: `sorted [PATH]` prints the names in it, sorted by bytes.

use lendir::{Buffer, Entries, Listing};
use std::io::{self, BufWriter, Write};

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or(".".into());
    let dir = lendir::open(path.as_os_str())?;
    let mut listing = Listing::new();
    listing.read(Entries::new(&dir, &mut Buffer::new()))?;

    let mut out = BufWriter::new(io::stdout().lock());
    for entry in &listing {
        out.write_all(entry.name())?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

//! Trees to walk. They are made relative to descriptors, because they may be deeper than the
//! longest path that the kernel accepts.

use super::scratch::Scratch;
use rustix::fs::{FileType, Mode, mkdirat, mknodat, symlinkat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::hash_map::DefaultHasher;
use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::hash::{Hash, Hasher};
use std::iter;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

/// A temporary directory that other users may read, with a tree of any depth in it.
pub struct Tree(Scratch);

impl Tree {
    pub fn new(make: impl FnOnce(&Path)) -> Self {
        Self::at(Scratch::in_memory(), make)
    }

    pub fn on_disk(make: impl FnOnce(&Path)) -> Self {
        Self::at(Scratch::for_others(), make)
    }

    /// Makes paths on disk: `d/` is an empty directory, `d/f` a file in one.
    pub fn of(paths: &[&str]) -> Self {
        Self::on_disk(|at| self::make(at, paths))
    }

    /// Raises the limit of descriptors first: a few tests keep a thousand of them, and all tests
    /// run in one process.
    fn at(dir: Scratch, make: impl FnOnce(&Path)) -> Self {
        static RAISED: Once = Once::new();
        RAISED.call_once(|| {
            let limit = getrlimit(Resource::Nofile);
            setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
        });
        chmod(dir.path(), 0o755);
        make(dir.path());
        Self(dir)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tree {
    /// Removes the tree with `rm`. `std`, which [`Scratch`] uses, keeps a descriptor for each
    /// level.
    fn drop(&mut self) {
        let run = |command: &[&str]| {
            let (program, options) = command.split_first().expect("BUG: an empty command");
            let status =
                Command::new(program).args(options).arg(self.path()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        if !run(&["rm", "-rf"]) {
            run(&["chmod", "-R", "u+rwx"]);
            run(&["rm", "-rf"]);
        }
    }
}

pub fn make(at: &Path, paths: &[impl AsRef<str>]) {
    for path in paths.iter().map(AsRef::as_ref) {
        let (dir, file) = path.rsplit_once('/').unwrap_or(("", path));
        fs::create_dir_all(at.join(dir)).unwrap();
        if !file.is_empty() {
            File::create_new(at.join(path)).unwrap();
        }
    }
}

pub fn chmod(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Makes nested directories named `m`, `depth` levels deep.
pub fn chain(at: &Path, depth: usize) {
    nest(at, iter::repeat_n(CHAIN, depth));
}

/// Makes nested directories with a directory `a` and a directory `z` beside each, so a walk has to
/// return to each level.
pub fn comb(at: &Path, depth: usize) {
    nest(at, iter::repeat_n(COMB, depth));
}

pub const CHAIN: &[&str] = &["m"];
/// The names at each level of a [`comb`]. Most file systems list them in the order of creation, by
/// name, or in reverse: `m` is never the last.
pub const COMB: &[&str] = &["a", "m", "z"];

/// Makes levels of directories with these names, each level in the `m` of its parent. Returns the
/// deepest directory.
pub fn nest(at: &Path, levels: impl IntoIterator<Item = &'static [&'static str]>) -> OwnedFd {
    let levels: Vec<_> = levels.into_iter().collect();
    nest_with(at, levels.len(), |dir, level| {
        levels[level].iter().for_each(|name| mkdirat(dir, *name, Mode::RWXU).unwrap());
    })
}

/// Makes `depth` levels, each the `m` of its parent. `make` makes `m` and the entries beside it.
/// Returns the deepest directory.
pub fn nest_with(at: &Path, depth: usize, make: impl Fn(&OwnedFd, usize)) -> OwnedFd {
    let mut dir = lendir::open(at).unwrap();
    for level in 0..depth {
        make(&dir, level);
        dir = lendir::openat(&dir, "m").unwrap();
    }
    dir
}

/// Makes directories side by side, named by numbers of `digits` digits.
pub fn wide(at: &Path, count: usize, digits: usize) {
    let dir = lendir::open(at).unwrap();
    for number in 0..count {
        mkdirat(&dir, format!("{number:0digits$}"), Mode::RWXU).unwrap();
    }
}

/// Makes a [`comb`] and a [`random`] tree beside it.
pub fn bushy(at: &Path, depth: usize) {
    comb(at, depth);
    random(&at.join("a"), 3);
}

/// Makes about 500 directories up to 12 levels deep, and half as many files and links. The names
/// have 1 to 255 bytes of any value. The names in the first directory take several batches of a
/// [`Buffer`](lendir::Buffer).
pub fn random(at: &Path, seed: u64) {
    const MAX_DEPTH: usize = 12;
    let mut random = Random(seed);
    wide(at, 200, 200);
    let mut dirs: Vec<(OwnedFd, usize)> = vec![(lendir::open(at).unwrap(), 0)];
    for _ in 0..600 {
        let (dir, depth) = &dirs[random.below(dirs.len())];
        let (name, depth) = (random.name(), depth + 1);
        // A name that exists already is left out.
        match random.below(4) {
            0 | 1 if depth <= MAX_DEPTH => {
                if mkdirat(dir, &*name, Mode::RWXU).is_ok() {
                    let made = lendir::openat(dir, name.to_bytes()).unwrap();
                    dirs.push((made, depth));
                }
            }
            2 => drop(symlinkat(c"..", dir, &*name)),
            _ => drop(mknodat(dir, &*name, FileType::RegularFile, Mode::RUSR, 0)),
        }
    }
}

/// Makes a tree with [`fill_linked`]. Returns the tree and its root.
pub fn linked(seed: u64) -> (Tree, PathBuf) {
    let tree = Tree::new(|at| fill_linked(at, seed));
    let root = tree.path().join("root");
    (tree, root)
}

/// Makes directories and links. The links lead to directories, to files, to nothing, to themselves,
/// to other links, and to directories above the root, from which a link leads back.
fn fill_linked(above: &Path, seed: u64) {
    let at = &above.join("root");
    make(above, &["beside/below/", "root/"]);
    symlink("../root/d0", above.join("beside/back")).unwrap();
    let mut random = Random(seed);
    let mut dirs = vec![at.clone()];
    for number in 0..9 {
        let dir = dirs[random.below(dirs.len())].join(format!("d{number}"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file"), "").unwrap();
        dirs.push(dir);
    }
    let mut links: Vec<PathBuf> = Vec::new();
    for number in 0..6 {
        let dir = &dirs[random.below(dirs.len())];
        let link = dir.join(format!("l{number}"));
        let to = dirs[random.below(dirs.len())].clone();
        let target = match random.below(12) {
            0..4 => to,
            4..7 => {
                let up: PathBuf = dir.strip_prefix(at).unwrap().iter().map(|_| "..").collect();
                Path::new(".").join(up).join(to.strip_prefix(at).unwrap())
            }
            7 if !links.is_empty() => links[random.below(links.len())].clone(),
            8 => dirs[1].join(["file", "nothing", "file/below"][random.below(3)]),
            9 => link.clone(),
            11 => [above.to_owned(), above.join("beside")][random.below(2)].clone(),
            _ => PathBuf::from([".", ".."][random.below(2)]),
        };
        symlink(target, &link).unwrap();
        links.push(link);
    }
}

/// Makes levels `0`, `1`, and so on, each with a directory `a`, a directory `z` and a link `m` to
/// the next level.
pub fn linked_levels(at: &Path, levels: usize) {
    for level in 0..levels {
        make(at, &[format!("{level}/a/"), format!("{level}/z/")]);
        if level > 0 {
            symlink(at.join(level.to_string()), at.join(format!("{}/m", level - 1))).unwrap();
        }
    }
}

/// Pseudo-random numbers from a seed: `SplitMix64`.
pub struct Random(pub u64);

impl Random {
    /// Seeds the numbers with the hash of a value.
    pub fn of(value: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % end as u64).expect("BUG: not below `end`")
    }

    fn name(&mut self) -> CString {
        let most = [1, 3, 16, 255][self.below(4)];
        let bytes = (0..=self.below(most)).map(|_| match self.below(260) {
            0 | 47 => b'\n',
            byte => u8::try_from(byte).unwrap_or(b'.'),
        });
        CString::new(bytes.collect::<Vec<_>>()).expect("BUG: a NUL inside the name")
    }
}

//! Compiled kernels on disk, so that only the first program on a machine waits for the compiler.
//!
//! A file holds the full text that it was made from (source, settings, kind of GPU, version of the compiler) and the
//! machine code. It is used only if that text is the same and the checksum is right; otherwise the kernel is compiled again.
//! The full text is compared, because hashes can collide. Files are written under another name and then renamed, so that no
//! reader sees half a file. Nothing depends on the folder: it may be deleted at any time, and where it cannot be written
//! every program compiles its kernels.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, process};

const MAGIC: &[u8; 8] = b"phexcub1";

/// A folder of compiled kernels, or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct KernelCache {
    folder: Option<PathBuf>,
}

impl KernelCache {
    /// The folder in `PHEX_CUDA_CACHE`, or none if that is `off`; otherwise `phex/kernels` in the user's cache folder.
    pub(crate) fn from_environment() -> KernelCache {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        KernelCache { folder: folder(set("PHEX_CUDA_CACHE"), set("XDG_CACHE_HOME"), set("HOME")) }
    }

    fn path(&self, text: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{:016x}.cubin", sum(text.as_bytes()))))
    }

    /// The machine code made from this text, if there is an undamaged file of it.
    pub(crate) fn read(&self, text: &str) -> Option<Vec<u8>> {
        let file = fs::read(self.path(text)?).ok()?;
        let (head, rest) = file.split_at_checked(24)?;
        let number =
            |from: usize| head.get(from..from + 8)?.try_into().ok().map(u64::from_le_bytes);
        let (made_from, image) = rest.split_at_checked(usize::try_from(number(8)?).ok()?)?;
        let whole = head.starts_with(MAGIC) && number(16)? == sum(image);
        (whole && made_from == text.as_bytes()).then(|| image.to_vec())
    }

    /// Stores machine code. If that fails, the kernel is compiled again later.
    pub(crate) fn write(&self, text: &str, image: &[u8]) {
        if let Some(path) = self.path(text) {
            let _ = write_aside(&path, text, image);
        }
    }
}

fn folder(
    set: Option<OsString>,
    caches: Option<OsString>,
    home: Option<OsString>,
) -> Option<PathBuf> {
    match set {
        Some(off) if off == "off" => None,
        Some(folder) => Some(PathBuf::from(folder)),
        None => {
            let caches = caches.map(PathBuf::from).filter(|path| path.is_absolute());
            let all = caches.or_else(|| Some(PathBuf::from(home?).join(".cache")))?;
            Some(all.join("phex").join("kernels"))
        }
    }
}

fn write_aside(path: &Path, text: &str, image: &[u8]) -> std::io::Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let count = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_extension(format!("{}-{count}", process::id()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut all = MAGIC.to_vec();
    all.extend((text.len() as u64).to_le_bytes());
    all.extend(sum(image).to_le_bytes());
    all.extend(text.as_bytes());
    all.extend(image);
    let done = fs::write(&aside, all).and_then(|()| fs::rename(&aside, path));
    if done.is_err() {
        let _ = fs::remove_file(&aside);
    }
    done
}

/// FNV-1a: protects against accidents, not against attacks.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> KernelCache {
        let folder = std::env::temp_dir().join(format!("phex-cache-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        KernelCache { folder: Some(folder) }
    }

    #[test]
    fn what_was_written_is_read_for_the_same_text_only() {
        let cache = cache("same");
        assert_eq!(cache.read("a kernel"), None);
        cache.write("a kernel", &[1, 2, 3]);
        cache.write("a kernel", &[1, 2, 4]);
        assert_eq!(cache.read("a kernel"), Some(vec![1, 2, 4]));
        assert_eq!(cache.read("another"), None);
        // As if two texts had the same checksum.
        fs::rename(cache.path("a kernel").unwrap(), cache.path("another").unwrap()).unwrap();
        assert_eq!(cache.read("another"), None);
        let left = fs::read_dir(cache.folder.as_ref().unwrap()).unwrap().count();
        assert_eq!(left, 1, "no temporary file is left");
        fs::remove_dir_all(cache.folder.unwrap()).unwrap();
    }

    #[test]
    fn damaged_files_are_not_read() {
        let cache = cache("damaged");
        cache.write("a kernel", &[7; 100]);
        let path = cache.path("a kernel").unwrap();
        let good = fs::read(&path).unwrap();
        for length in [0, 10, 24, 30, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            assert_eq!(cache.read("a kernel"), None, "{length} bytes");
        }
        let mut bad = good.clone();
        bad[good.len() - 5] ^= 1;
        fs::write(&path, bad).unwrap();
        assert_eq!(cache.read("a kernel"), None);
        fs::remove_dir_all(cache.folder.unwrap()).unwrap();
    }

    #[test]
    fn the_folder_is_the_user_s() {
        let text = |path: &str| Some(OsString::from(path));
        let phex = |path: &str| Some(PathBuf::from(path).join("phex").join("kernels"));
        assert_eq!(folder(text("off"), text("/c"), text("/h")), None);
        assert_eq!(folder(text("/k"), text("/c"), text("/h")), Some(PathBuf::from("/k")));
        assert_eq!(folder(None, text("/c"), text("/h")), phex("/c"));
        assert_eq!(folder(None, text("relative"), text("/h")), phex("/h/.cache"));
        assert_eq!(folder(None, None, None), None);
        KernelCache::default().write("a kernel", &[1]);
        assert_eq!(KernelCache::default().read("a kernel"), None);
    }
}

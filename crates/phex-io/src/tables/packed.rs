//! Packed tables: gzip and Zstandard streams.
//!
//! They are unpacked while they are read, one layer only, so memory does not grow with them. Two limits keep a
//! small file from filling a disk: the unpacked bytes, and the unpacked bytes for each packed byte once there
//! are many.

use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;

use crate::Limits;

/// How a file is packed, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstandard,
    /// An archive, as NumPy writes it with `savez`.
    Zip,
}

impl Packing {
    pub(super) fn of(start: &[u8]) -> Option<Packing> {
        match start {
            [0x1f, 0x8b, ..] => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstandard),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Packing::Zip),
            _ => None,
        }
    }
}

/// A stream that counts what was read.
struct CountedBytes<R> {
    reader: R,
    count: u64,
}

impl<R: Read> Read for CountedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}

enum Decoder<R: Read> {
    Gzip(Box<MultiGzDecoder<CountedBytes<R>>>),
    Deflate(Box<flate2::read::DeflateDecoder<CountedBytes<R>>>),
    #[cfg(feature = "zstd")]
    Zstandard(Box<zstd::Decoder<'static, BufReader<CountedBytes<R>>>>),
}

/// The content of a packed stream.
pub(super) struct UnpackedBytes<R: Read> {
    decoder: Decoder<R>,
    count: u64,
    limits: Limits,
}

impl<R: Read> UnpackedBytes<R> {
    /// Unpacks gzip or Zstandard.
    pub(super) fn new(
        packing: Packing,
        reader: R,
        limits: &Limits,
    ) -> io::Result<UnpackedBytes<R>> {
        let reader = CountedBytes { reader, count: 0 };
        let decoder = match packing {
            Packing::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(reader))),
            #[cfg(feature = "zstd")]
            Packing::Zstandard => Decoder::Zstandard(Box::new(zstd::Decoder::new(reader)?)),
            #[cfg(not(feature = "zstd"))]
            Packing::Zstandard => {
                let message = "this phex was built without Zstandard; unpack the file first";
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
            Packing::Zip => {
                let message = "this is an archive; unpack it first";
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
        };
        Ok(UnpackedBytes { decoder, count: 0, limits: *limits })
    }

    /// Unpacks a member of an archive.
    pub(super) fn deflated(reader: R, limits: &Limits) -> UnpackedBytes<R> {
        let reader = CountedBytes { reader, count: 0 };
        let decoder = Decoder::Deflate(Box::new(flate2::read::DeflateDecoder::new(reader)));
        UnpackedBytes { decoder, count: 0, limits: *limits }
    }

    /// How many packed bytes were read.
    fn packed(&self) -> u64 {
        match &self.decoder {
            Decoder::Gzip(decoder) => decoder.get_ref().count,
            Decoder::Deflate(decoder) => decoder.get_ref().count,
            #[cfg(feature = "zstd")]
            Decoder::Zstandard(decoder) => decoder.get_ref().get_ref().count,
        }
    }
}

impl<R: Read> Read for UnpackedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.read(buffer)?,
            Decoder::Deflate(decoder) => decoder.read(buffer)?,
            #[cfg(feature = "zstd")]
            Decoder::Zstandard(decoder) => decoder.read(buffer)?,
        };
        self.count += count as u64;
        let limits = &self.limits;
        let most = limits.unpacked_ratio.saturating_mul(self.packed()).max(limits.file_bytes);
        if self.count > limits.unpacked_bytes.min(most) {
            let (count, packed) = (self.count, self.packed());
            return Err(io::Error::other(format!(
                "its first {packed} bytes unpack to more than {count} bytes, which is more than is allowed; unpack it first"
            )));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(packing: Packing, bytes: &[u8], limits: &Limits) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        UnpackedBytes::new(packing, bytes, limits)?.read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn packed_bytes_come_back() {
        let limits = Limits::default();
        let both = [gzip(b"dog,"), gzip(b"cat\n")].concat();
        assert_eq!(Packing::of(&both), Some(Packing::Gzip));
        assert_eq!(unpack(Packing::Gzip, &both, &limits).unwrap(), b"dog,cat\n");
        assert!(unpack(Packing::Gzip, &both[..both.len() - 3], &limits).is_err());
        #[cfg(feature = "zstd")]
        {
            let packed = zstd::encode_all(&b"dog,cat\n"[..], 3).unwrap();
            assert_eq!(Packing::of(&packed), Some(Packing::Zstandard));
            assert_eq!(unpack(Packing::Zstandard, &packed, &limits).unwrap(), b"dog,cat\n");
        }
    }

    #[test]
    fn bombs_are_refused() {
        let bomb = gzip(&vec![0; 1 << 20]);
        let few = Limits { file_bytes: 1 << 16, unpacked_ratio: 100, ..Limits::default() };
        let error = unpack(Packing::Gzip, &bomb, &few).unwrap_err().to_string();
        assert!(error.contains("more than is allowed"), "{error}");
        let small = Limits { unpacked_bytes: 1000, ..Limits::default() };
        assert!(unpack(Packing::Gzip, &bomb, &small).is_err());
        assert_eq!(unpack(Packing::Gzip, &bomb, &Limits::default()).unwrap().len(), 1 << 20);
    }
}

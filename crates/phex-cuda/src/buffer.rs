//! Memory of a device.

use cudarc::driver::{DriverError, result, sys};

use crate::Error;
use crate::device::{Device, Stream, failed};

/// Numbers and structures of numbers, that may be copied to a device byte by byte.
///
/// # Safety
/// The type must be plain data without padding that matters and without pointers of the processor.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),*) => {
        // SAFETY: plain numbers.
        $(unsafe impl Plain for $type {})*
    };
}

plain!(i8, u8, u16, i32, u32, u64, f32, f64, [u8; 4]);
plain!([i32; 2], [u32; 2], [f32; 2], [f64; 2], [i32; 4], [u32; 4], [f32; 4], [f64; 4]);

/// A piece of device memory, freed when dropped.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) pointer: u64,
    bytes: usize,
    device: Device,
}

impl Buffer {
    /// Uninitialised memory; a byte at least, so that its address is one.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn new(device: &Device, bytes: usize) -> Result<Buffer, Error> {
        device.bind()?;
        // SAFETY: memory is only read after it was written, by this crate's kernels and copies.
        match unsafe { result::malloc_sync(bytes.max(1)) } {
            Ok(pointer) => Ok(Buffer { pointer, bytes, device: device.clone() }),
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = device.memory().map_or(0, |(free, _)| free);
                Err(Error::OutOfMemory { needed: bytes, free })
            }
            Err(error) => Err(failed("cuMemAlloc")(error)),
        }
    }

    /// A copy of some numbers.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    #[allow(private_bounds)] // Plain numbers.
    pub fn of<T: Plain>(device: &Device, values: &[T]) -> Result<Buffer, Error> {
        let buffer = Buffer::new(device, size_of_val(values))?;
        if !values.is_empty() {
            // SAFETY: the buffer has the size of the values.
            unsafe { result::memcpy_htod_sync(buffer.pointer, values) }
                .map_err(failed("cuMemcpyHtoD"))?;
        }
        Ok(buffer)
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.pointer
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies numbers in, in the order of a stream, and waits.
    pub(crate) fn fill<T: Plain>(&self, stream: Stream, values: &[T]) -> Result<(), Error> {
        self.check(size_of_val(values))?;
        if values.is_empty() {
            return Ok(());
        }
        // SAFETY: the buffer is large enough; the copy is waited for while the values live.
        unsafe { result::memcpy_htod_async(self.pointer, values, stream.raw()) }
            .map_err(failed("cuMemcpyHtoDAsync"))?;
        self.device.synchronise(stream)
    }

    /// Copies numbers out after everything on a stream, and waits.
    ///
    /// # Errors
    /// [`Error::Size`] when it is shorter, [`Error::Driver`].
    #[allow(private_bounds)] // Plain numbers.
    pub fn read<T: Plain>(&self, stream: Stream, values: &mut [T]) -> Result<(), Error> {
        self.check(size_of_val(values))?;
        if !values.is_empty() {
            self.device.bind()?;
            // SAFETY: the buffer has at least the size of the values, and any bytes are numbers.
            unsafe { result::memcpy_dtoh_async(values, self.pointer, stream.raw()) }
                .map_err(failed("cuMemcpyDtoHAsync"))?;
        }
        self.device.synchronise(stream)
    }

    fn check(&self, needed: usize) -> Result<(), Error> {
        self.device.bind()?;
        if needed > self.bytes {
            return Err(Error::Size { what: "device memory", given: self.bytes, needed });
        }
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the pointer is this buffer's own; freeing waits for the work that uses it.
        unsafe {
            let _ = self.device.bind();
            let _ = result::free_sync(self.pointer);
        }
    }
}

/// Tables of a compiled model in one piece of memory.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    bytes: Vec<u8>,
}

/// Where a table starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offset(usize);

impl Tables {
    pub(crate) fn add<T: Plain>(&mut self, values: &[T]) -> Offset {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let from = self.bytes.len();
        // SAFETY: plain data may be read as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        };
        self.bytes.extend_from_slice(bytes);
        Offset(from)
    }

    pub(crate) fn upload(&self, device: &Device) -> Result<Buffer, Error> {
        Buffer::of(device, &self.bytes)
    }
}

impl Buffer {
    /// The address of a table.
    pub(crate) fn at(&self, offset: Offset) -> u64 {
        self.pointer + offset.0 as u64
    }
}

impl Buffer {
    /// Reads from an address within this buffer.
    pub(crate) fn read_at<T: Plain>(
        &self,
        stream: Stream,
        pointer: u64,
        values: &mut [T],
    ) -> Result<(), Error> {
        self.check((pointer - self.pointer) as usize + size_of_val(values))?;
        // SAFETY: the address and what follows it lie within the buffer, and any bytes are numbers.
        unsafe { result::memcpy_dtoh_async(values, pointer, stream.raw()) }
            .map_err(failed("cuMemcpyDtoHAsync"))?;
        self.device.synchronise(stream)
    }
}

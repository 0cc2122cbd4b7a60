//! Memory of a device, and tables in it.

use cudarc::driver::{DriverError, result, sys};

use crate::Error;
use crate::device::{Device, Stream, failed};

/// Numbers and structures of numbers that may be copied to a device byte by byte.
///
/// # Safety
/// The type must be plain data, without padding that matters and without pointers to host memory.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),*) => {
        // SAFETY: plain numbers.
        $(unsafe impl Plain for $type {})*
    };
}

plain!(i8, u8, u16, i32, u32, u64, f32, f64, [u8; 4]);
plain!([i32; 2], [i32; 3], [u32; 2], [f32; 2], [f64; 2], [i32; 4], [u32; 4], [f32; 4], [f64; 4]);

/// A piece of device memory, freed when dropped.
#[derive(Debug)]
pub struct DeviceMemory {
    address: u64,
    bytes: usize,
    device: Device,
}

impl DeviceMemory {
    /// Allocates uninitialised memory: one byte at least, so that it has an address.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn new(device: &Device, bytes: usize) -> Result<DeviceMemory, Error> {
        device.bind()?;
        // SAFETY: the kernels and copies of this crate write memory before they read it.
        match unsafe { result::malloc_sync(bytes.max(1)) } {
            Ok(address) => Ok(DeviceMemory { address, bytes, device: device.clone() }),
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let free = device.memory().map_or(0, |(free, _)| free);
                Err(Error::OutOfMemory { needed: bytes, free })
            }
            Err(error) => Err(failed("cuMemAlloc")(error)),
        }
    }

    /// Allocates a copy of some numbers.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    #[allow(private_bounds)] // Plain numbers.
    pub fn of<T: Plain>(device: &Device, values: &[T]) -> Result<DeviceMemory, Error> {
        let memory = DeviceMemory::new(device, size_of_val(values))?;
        if !values.is_empty() {
            // SAFETY: the memory has the size of the values.
            unsafe { result::memcpy_htod_sync(memory.address, values) }
                .map_err(failed("cuMemcpyHtoD"))?;
        }
        Ok(memory)
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies numbers from its start, after everything on a stream, and waits.
    ///
    /// # Errors
    /// [`Error::Size`] when it is shorter, [`Error::Driver`].
    #[allow(private_bounds)] // Plain numbers.
    pub fn read<T: Plain>(&self, stream: Stream, values: &mut [T]) -> Result<(), Error> {
        self.read_at(stream, self.address, values)
    }

    /// Copies numbers from an address within it, after everything on a stream, and waits.
    pub(crate) fn read_at<T: Plain>(
        &self,
        stream: Stream,
        address: u64,
        values: &mut [T],
    ) -> Result<(), Error> {
        self.device.bind()?;
        let needed = (address - self.address) as usize + size_of_val(values);
        if needed > self.bytes {
            return Err(Error::Size { what: "device memory", given: self.bytes, needed });
        }
        if !values.is_empty() {
            // SAFETY: the address and what follows it lie within the memory, and any bytes are numbers.
            unsafe { result::memcpy_dtoh_async(values, address, stream.raw()) }
                .map_err(failed("cuMemcpyDtoHAsync"))?;
        }
        self.device.synchronise(stream)
    }

    /// The address of a table.
    pub(crate) fn at(&self, offset: TableOffset) -> u64 {
        self.address + offset.0 as u64
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: the address is this memory's own; freeing waits for the work that uses it.
        unsafe {
            let _ = self.device.bind();
            let _ = result::free_sync(self.address);
        }
    }
}

/// Sets four bytes to zero, in the order of a stream.
///
/// # Safety
/// The address must be that of live memory.
pub(crate) unsafe fn clear_count(address: u64, stream: Stream) -> Result<(), Error> {
    // SAFETY: as the caller promises.
    unsafe { result::memset_d8_async(address, 0, 4, stream.raw()) }
        .map_err(failed("cuMemsetD8Async"))
}

/// Gathers the tables of a compiled model, which then go to the device in one piece.
#[derive(Debug, Default)]
pub(crate) struct TableBuilder {
    bytes: Vec<u8>,
}

/// Where a table starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableOffset(usize);

impl TableBuilder {
    pub(crate) fn add<T: Plain>(&mut self, values: &[T]) -> TableOffset {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let from = self.bytes.len();
        // SAFETY: plain data may be read as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        };
        self.bytes.extend_from_slice(bytes);
        TableOffset(from)
    }

    pub(crate) fn upload(&self, device: &Device) -> Result<DeviceMemory, Error> {
        DeviceMemory::of(device, &self.bytes)
    }
}

/// Divides a piece of device memory.
pub(crate) struct Carver {
    next: u64,
}

impl Carver {
    pub(crate) fn new(address: u64) -> Carver {
        Carver { next: address.next_multiple_of(256) }
    }

    pub(crate) fn take(&mut self, bytes: usize) -> u64 {
        let at = self.next;
        self.next = (at + bytes as u64).next_multiple_of(256);
        at
    }

    /// How many bytes `carve` takes.
    pub(crate) fn measure<T>(carve: impl FnOnce(&mut Carver) -> T) -> usize {
        let mut carver = Carver::new(0);
        carve(&mut carver);
        // The first piece may start up to 255 bytes into the memory.
        carver.next as usize + 256
    }
}

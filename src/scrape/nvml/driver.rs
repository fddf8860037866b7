//! What is wanted of a driver, so that a test can be one.

use crate::measurement::Gpu;

/// Why nothing can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// There is none that can be used.
    #[error("no NVIDIA driver: {0}")]
    Absent(String),
    /// It was there, and does not answer any more.
    #[error("the NVIDIA driver does not answer: {0}")]
    Lost(String),
}

/// A driver that was opened.
pub trait GpuDriver {
    /// All GPUs of this machine and their instances, each with its number.
    ///
    /// # Errors
    ///
    /// If the driver does not even say how many there are; a GPU that does not answer has no
    /// fields.
    fn read(&mut self) -> Result<Vec<(u32, Gpu)>, DriverError>;
}

/// Loads the library of this machine's driver.
///
/// # Errors
///
/// If there is none, or this build does not read it.
pub fn open_driver() -> Result<Box<dyn GpuDriver>, DriverError> {
    #[cfg(feature = "nvml")]
    {
        super::library::Library::open().map(|library| Box::new(library) as Box<dyn GpuDriver>)
    }
    #[cfg(not(feature = "nvml"))]
    {
        Err(DriverError::Absent(
            "this build does not read it (feature `nvml`)".to_owned(),
        ))
    }
}

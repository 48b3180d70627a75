//! The device to compute on.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use crate::Error;

/// A device to compute on. CPU always works; the others need the cargo feature of their name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The processor.
    #[default]
    Cpu,
    /// The NVIDIA GPU of this number; needs the feature `cuda`.
    Cuda(usize),
    /// The Apple GPU of this number; needs the feature `metal`.
    Metal(usize),
}

impl Backend {
    /// Opens the device.
    pub fn device(self) -> Result<Device, Error> {
        let missing = |feature| Err(Error::Feature { backend: self.to_string(), feature });
        let opened = match self {
            Self::Cpu => return Ok(Device::Cpu),
            Self::Cuda(_) if !cfg!(feature = "cuda") => return missing("cuda"),
            Self::Metal(_) if !cfg!(feature = "metal") => return missing("metal"),
            Self::Cuda(number) => Device::new_cuda(number),
            Self::Metal(number) => Device::new_metal(number),
        };
        opened.map_err(|error| Error::Device { backend: self.to_string(), source: Box::new(error) })
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Metal(number) => write!(f, "metal:{number}"),
        }
    }
}

impl FromStr for Backend {
    type Err = Error;

    /// Reads `cpu`, `cuda`, `cuda:1`, `metal` or `metal:1`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownBackend(text.to_owned());
        let (kind, number) = match text.split_once(':') {
            Some((kind, number)) => (kind, Some(number.parse().map_err(|_| unknown())?)),
            None => (text, None),
        };
        match (kind, number) {
            ("cpu", None) => Ok(Self::Cpu),
            ("cuda", number) => Ok(Self::Cuda(number.unwrap_or(0))),
            ("metal", number) => Ok(Self::Metal(number.unwrap_or(0))),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for backend in [Backend::Cpu, Backend::Cuda(0), Backend::Cuda(3), Backend::Metal(1)] {
            assert_eq!(backend.to_string().parse::<Backend>().unwrap(), backend);
        }
        assert_eq!("cuda".parse::<Backend>().unwrap(), Backend::Cuda(0));
        for wrong in ["", "gpu", "cpu:0", "cuda:", "cuda:-1", "metal:x"] {
            assert!(wrong.parse::<Backend>().is_err(), "{wrong}");
        }
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn the_error_names_the_feature() {
        let message = Backend::Cuda(0).device().unwrap_err().to_string();
        assert!(message.contains("cuda:0") && message.contains("feature `cuda`"), "{message}");
    }
}

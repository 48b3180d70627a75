//! Typed tensors in a safetensors file, read one at a time.
//!
//! The whole header is checked first: overlaps, gaps, and sizes against the length of the file. A tensor's type and
//! shape are checked before memory is allocated for it, so that a hostile file causes an error and no allocation.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Metadata, serialize_to_file};
use safetensors::{Dtype, SafeTensorError, View};

use crate::Error;

/// The element types of tensors.
pub trait Element: Copy {
    /// The type in the file.
    const DTYPE: Dtype;
    /// Its name in messages.
    const NAME: &'static str;
    /// From little-endian bytes.
    fn read(bytes: &[u8]) -> Self;
    /// To little-endian bytes.
    fn write(self, out: &mut Vec<u8>);
    /// Why the value is invalid, if it is.
    fn fault(self) -> Option<&'static str>;
}

macro_rules! element {
    ($type:ty, $dtype:ident, $name:literal, $fault:expr) => {
        impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;
            const NAME: &'static str = $name;

            fn read(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<Self>()];
                raw.copy_from_slice(bytes);
                Self::from_le_bytes(raw)
            }

            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn fault(self) -> Option<&'static str> {
                $fault(self)
            }
        }
    };
}

element!(f32, F32, "F32", |value: f32| (!value.is_finite()).then_some("NaN or infinity"));
element!(half::f16, F16, "F16", |value: half::f16| (!value.is_finite()).then_some("NaN or infinity"));
element!(half::bf16, BF16, "BF16", |value: half::bf16| (!value.is_finite()).then_some("NaN or infinity"));
element!(u32, U32, "U32", |_| None);
element!(u64, U64, "U64", |_| None);

fn widen<T: Copy>(out: &mut [f32], values: &[T], wide: fn(T) -> f32) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = wide(*value);
    }
}

/// Longer headers are rejected.
const LONGEST_HEADER: u64 = 100_000_000;
const PIECE: usize = 1 << 20;

/// An open safetensors file whose header has been checked.
pub struct TensorFile {
    path: PathBuf,
    file: File,
    start: u64,
    metadata: Metadata,
}

impl TensorFile {
    /// Opens a file and checks its header; reads no tensor yet.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut file = File::open(path).map_err(Error::io(path))?;
        let length = file.metadata().map_err(Error::io(path))?.len();
        let mut size = [0; 8];
        let truncated = |_| Error::folder(path, format!("truncated: {length} bytes are less than its header"));
        file.read_exact(&mut size).map_err(truncated)?;
        let header = u64::from_le_bytes(size);
        if header > LONGEST_HEADER || header > length.saturating_sub(8) {
            return Err(Error::folder(
                path,
                format!("not a safetensors file: a header of {header} bytes in a file of {length}"),
            ));
        }
        let mut text = vec![0; header as usize];
        file.read_exact(&mut text).map_err(Error::io(path))?;
        let metadata: Metadata = serde_json::from_slice(&text)
            .map_err(|error| Error::folder(path, format!("the safetensors header is broken: {error}")))?;
        let start = 8 + header;
        let expected = (metadata.data_len() as u64).checked_add(start);
        if expected != Some(length) {
            return Err(Error::folder(
                path,
                format!(
                    "truncated or overlong: its tensors need {} bytes after the header, it has {}",
                    metadata.data_len(),
                    length - start
                ),
            ));
        }
        Ok(Self { path: path.to_owned(), file, start, metadata })
    }

    /// The file itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The names of all tensors.
    pub(crate) fn names(&self) -> Vec<String> {
        self.metadata.tensors().into_keys().collect()
    }

    /// Checks that a tensor holds floats in this shape.
    pub(crate) fn check_floats(&self, name: &str, shape: &[usize]) -> Result<(), Error> {
        let info = self.info(name)?;
        if !matches!(info.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16) || info.shape != shape {
            return Err(self.fault(
                name,
                format!(
                    "expected F32, F16 or BF16 of shape {shape:?}, found {:?} of shape {:?}",
                    info.dtype, info.shape
                ),
            ));
        }
        Ok(())
    }

    /// Reads a tensor of f32, f16 or bf16 as f32.
    pub(crate) fn read_floats(&mut self, name: &str, shape: &[usize], out: &mut [f32]) -> Result<(), Error> {
        self.check_floats(name, shape)?;
        match self.info(name)?.dtype {
            Dtype::F16 => widen(out, &self.read::<half::f16>(name, shape)?, half::f16::to_f32),
            Dtype::BF16 => widen(out, &self.read::<half::bf16>(name, shape)?, half::bf16::to_f32),
            _ => out.copy_from_slice(&self.read::<f32>(name, shape)?),
        }
        Ok(())
    }

    pub(crate) fn fault(&self, tensor: &str, reason: impl Into<String>) -> Error {
        Error::Tensor { path: self.path.clone(), tensor: tensor.to_owned(), reason: reason.into() }
    }

    /// The number of elements of a one-dimensional tensor.
    pub fn length(&self, name: &str) -> Result<usize, Error> {
        match self.info(name)?.shape.as_slice() {
            [length] => Ok(*length),
            shape => Err(self.fault(name, format!("expected one dimension, found shape {shape:?}"))),
        }
    }

    fn info(&self, name: &str) -> Result<&safetensors::tensor::TensorInfo, Error> {
        self.metadata.info(name).ok_or_else(|| self.fault(name, "missing"))
    }

    /// Reads one tensor of this type and shape.
    pub fn read<T: Element>(&mut self, name: &str, shape: &[usize]) -> Result<Vec<T>, Error> {
        let info = self.info(name)?;
        if info.dtype != T::DTYPE || info.shape != shape {
            return Err(self.fault(
                name,
                format!("expected {} of shape {shape:?}, found {:?} of shape {:?}", T::NAME, info.dtype, info.shape),
            ));
        }
        let (from, to) = info.data_offsets;
        self.file.seek(SeekFrom::Start(self.start + from as u64)).map_err(Error::io(&self.path))?;
        let mut reader = BufReader::with_capacity(PIECE, &self.file).take((to - from) as u64);
        let mut values = Vec::with_capacity((to - from) / size_of::<T>());
        let mut piece = vec![0; PIECE];
        loop {
            let want = piece.len().min((to - from) - values.len() * size_of::<T>());
            if want == 0 {
                return Ok(values);
            }
            reader.read_exact(&mut piece[..want]).map_err(Error::io(&self.path))?;
            for bytes in piece[..want].chunks_exact(size_of::<T>()) {
                let value = T::read(bytes);
                if let Some(fault) = value.fault() {
                    return Err(self.fault(name, format!("{fault} at element {}", values.len())));
                }
                values.push(value);
            }
        }
    }
}

/// A tensor to write.
pub struct Tensor<'a, T> {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its numbers in row-major order.
    pub values: &'a [T],
}

impl<T: Element> View for Tensor<'_, T> {
    fn dtype(&self) -> Dtype {
        T::DTYPE
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut bytes = Vec::with_capacity(self.data_len());
        for value in self.values {
            value.write(&mut bytes);
        }
        Cow::Owned(bytes)
    }

    fn data_len(&self) -> usize {
        size_of_val(self.values)
    }
}

/// A tensor to write, of any type.
pub enum AnyTensor<'a> {
    /// Of f32.
    F32(Tensor<'a, f32>),
    /// Of u32.
    U32(Tensor<'a, u32>),
    /// Of u64.
    U64(Tensor<'a, u64>),
}

macro_rules! of_any {
    ($any:expr, $tensor:ident => $value:expr) => {
        match $any {
            AnyTensor::F32($tensor) => $value,
            AnyTensor::U32($tensor) => $value,
            AnyTensor::U64($tensor) => $value,
        }
    };
}

impl View for &AnyTensor<'_> {
    fn dtype(&self) -> Dtype {
        of_any!(self, tensor => tensor.dtype())
    }

    fn shape(&self) -> &[usize] {
        of_any!(self, tensor => tensor.shape())
    }

    fn data(&self) -> Cow<'_, [u8]> {
        of_any!(self, tensor => tensor.data())
    }

    fn data_len(&self) -> usize {
        of_any!(self, tensor => tensor.data_len())
    }
}

/// Writes a safetensors file.
pub fn write(path: &Path, tensors: &[(&str, AnyTensor<'_>)]) -> Result<(), Error> {
    // `serialize_to_file` makes the file private; a model gets the same permissions as other files of its user.
    let usual = File::create(path).and_then(|file| file.metadata()).map_err(Error::io(path))?.permissions();
    // Transformers rejects files without this entry.
    let metadata = std::collections::HashMap::from([("format".to_owned(), "pt".to_owned())]);
    serialize_to_file(tensors.iter().map(|(name, tensor)| (*name, tensor)), Some(metadata), path).map_err(|error| {
        match error {
            SafeTensorError::IoError(error) => Error::io(path)(error),
            other => Error::folder(path, other.to_string()),
        }
    })?;
    std::fs::set_permissions(path, usual).map_err(Error::io(path))
}

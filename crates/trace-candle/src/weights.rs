//! The named tensors of a network.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use candle_core::{DType, Device, Tensor, Var};

use crate::Error;

/// A tensor that is not on a device: its name, its shape and its numbers in row-major order.
pub type Named = (String, Vec<usize>, Vec<f32>);

/// Named weights on one device, all of the same number type.
///
/// A clone shares its numbers with the original: training one trains both.
#[derive(Clone, Debug)]
pub struct Weights {
    variables: BTreeMap<String, Var>,
    device: Device,
    dtype: DType,
    frozen: bool,
}

impl Weights {
    /// Copies tensors of 32-bit floats to a device. Each has a name, a shape and its numbers in row-major order.
    pub fn new<N: Into<String>, S: Into<Vec<usize>>>(
        tensors: impl IntoIterator<Item = (N, S, Vec<f32>)>,
        device: &Device,
    ) -> Result<Self, Error> {
        let mut variables = BTreeMap::new();
        for (name, shape, values) in tensors {
            let (tensor, shape) = (name.into(), shape.into());
            if shape.iter().product::<usize>() != values.len() {
                return Err(Error::Length { tensor, shape, found: values.len() });
            }
            match variables.entry(tensor) {
                Entry::Vacant(entry) => entry.insert(Var::from_vec(values, shape, device)?),
                Entry::Occupied(entry) => return Err(Error::Twice { tensor: entry.key().clone() }),
            };
        }
        Ok(Self { variables, device: device.clone(), dtype: DType::F32, frozen: false })
    }

    /// A copy in another number type; with `DType::F64` the networks are a reference with about 14 digits.
    pub fn to_dtype(&self, dtype: DType) -> Result<Self, Error> {
        let mut variables = BTreeMap::new();
        for (name, variable) in &self.variables {
            let copy = variable.as_detached_tensor().to_dtype(dtype)?.copy()?;
            variables.insert(name.clone(), Var::from_tensor(&copy)?);
        }
        Ok(Self { variables, dtype, ..self.clone() })
    }

    /// The same numbers, not copied, for networks that only predict: computations with them keep no graph for a
    /// backward pass, and need no memory for it. Such a network sees the updates of a [`Trainer`](crate::Trainer) of
    /// the original.
    #[must_use]
    pub fn frozen(&self) -> Self {
        Self { frozen: true, ..self.clone() }
    }

    /// One tensor; an error if it does not have this shape.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        let Some(variable) = self.variables.get(name) else {
            return Err(Error::Missing { tensor: name.to_owned(), expected: shape.to_vec() });
        };
        if variable.dims() != shape {
            let (expected, found) = (shape.to_vec(), variable.dims().to_vec());
            return Err(Error::Shape { tensor: name.to_owned(), expected, found });
        }
        Ok(if self.frozen { variable.as_detached_tensor() } else { variable.as_tensor().clone() })
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// All tensors by name, for optimizers and gradients.
    pub const fn variables(&self) -> &BTreeMap<String, Var> {
        &self.variables
    }

    /// All tensors as 32-bit floats, in the format of [`Weights::new`].
    pub fn to_vec(&self) -> Result<Vec<Named>, Error> {
        let back = |(name, variable): (&String, &Var)| {
            Ok((name.clone(), variable.dims().to_vec(), to_floats(variable.as_tensor())?))
        };
        self.variables.iter().map(back).collect()
    }

    /// The device of the numbers.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The type of the numbers.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }
}

/// The numbers of a tensor in row-major order.
pub(crate) fn to_floats(tensor: &Tensor) -> Result<Vec<f32>, Error> {
    Ok(tensor.detach().flatten_all()?.to_dtype(DType::F32)?.to_vec1()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let tensors = vec![("a".to_owned(), vec![2, 1], vec![1.0f32, 2.0]), ("b".to_owned(), vec![1], vec![0.5])];
        let weights = Weights::new(tensors.clone(), &Device::Cpu).unwrap();
        assert_eq!(weights.to_vec().unwrap(), tensors);
        assert_eq!(weights.to_dtype(DType::F64).unwrap().to_vec().unwrap(), tensors);
        assert!(weights.contains("a") && !weights.contains("c"));
    }

    #[test]
    fn errors_name_the_tensor_and_the_shapes() {
        let weights = Weights::new([("a", [2, 1], vec![1.0, 2.0])], &Device::Cpu).unwrap();
        assert_eq!(weights.get("b", &[3]).unwrap_err().to_string(), "tensor b: missing, expected shape [3]");
        let wrong = weights.get("a", &[1, 2]).unwrap_err().to_string();
        assert_eq!(wrong, "tensor a: expected shape [1, 2], found [2, 1]");
        let short = Weights::new([("a", [2, 2], vec![1.0])], &Device::Cpu).unwrap_err().to_string();
        assert_eq!(short, "tensor a: 1 numbers do not fill shape [2, 2]");
        let twice = Weights::new([("a", [1], vec![1.0]), ("a", [1], vec![1.0])], &Device::Cpu).unwrap_err();
        assert_eq!(twice.to_string(), "tensor a: given twice");
    }

    #[test]
    fn a_copy_is_a_copy_and_a_frozen_view_is_none() {
        let weights = Weights::new([("a", [1], vec![1.0])], &Device::Cpu).unwrap();
        let (copy, view) = (weights.to_dtype(DType::F32).unwrap(), weights.frozen());
        weights.variables()["a"].set(&Tensor::new(&[2.0f32], &Device::Cpu).unwrap()).unwrap();
        assert_eq!(to_floats(&copy.get("a", &[1]).unwrap()).unwrap(), [1.0]);
        assert_eq!(to_floats(&view.get("a", &[1]).unwrap()).unwrap(), [2.0]);
        assert!(weights.get("a", &[1]).unwrap().is_variable() && !view.get("a", &[1]).unwrap().is_variable());
    }
}

//! Errors.

/// Why a network could not be built, run or trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The weights lack a tensor that the architecture needs.
    #[error("tensor {tensor}: missing, expected shape {expected:?}")]
    Missing {
        /// Its name.
        tensor: String,
        /// The shape it should have.
        expected: Vec<usize>,
    },
    /// A tensor does not have the shape that the architecture needs.
    #[error("tensor {tensor}: expected shape {expected:?}, found {found:?}")]
    Shape {
        /// Its name.
        tensor: String,
        /// The shape it should have.
        expected: Vec<usize>,
        /// The shape it has.
        found: Vec<usize>,
    },
    /// The numbers given for a tensor do not fill its shape.
    #[error("tensor {tensor}: {found} numbers do not fill shape {shape:?}")]
    Length {
        /// Its name.
        tensor: String,
        /// The shape given.
        shape: Vec<usize>,
        /// How many numbers were given.
        found: usize,
    },
    /// Two tensors have the same name.
    #[error("tensor {tensor}: given twice")]
    Twice {
        /// The name.
        tensor: String,
    },
    /// A size of an architecture, or a setting, is out of range or conflicts with another one.
    #[error("{name}: {reason}")]
    Setting {
        /// The field's name.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// This build cannot use that kind of device.
    #[error("{backend}: this build has no support for it; build with the cargo feature `{feature}`")]
    Feature {
        /// The requested device.
        backend: String,
        /// The feature that it needs.
        feature: &'static str,
    },
    /// A string names no device.
    #[error("{0:?} is not a device: expected cpu, cuda, cuda:N, metal or metal:N")]
    UnknownBackend(String),
    /// The device exists in this build but cannot be opened.
    #[error("{backend}: {source}")]
    Device {
        /// The requested device.
        backend: String,
        /// The error of the driver.
        source: Box<candle_core::Error>,
    },
    /// A batch has nothing to predict.
    #[error("the batch has no target")]
    EmptyBatch,
    /// A sequence is longer than the network can read.
    #[error("{length} tokens are too many: the network reads at most {limit}")]
    TooLong {
        /// The number of tokens.
        length: usize,
        /// The maximum number of tokens.
        limit: usize,
    },
    /// The loss or its gradient is infinite or not a number; the weights are unchanged.
    #[error("training diverged: loss {loss}, gradient norm {gradient_norm}; the weights are those before this step")]
    Diverged {
        /// The loss of the batch.
        loss: f64,
        /// The norm of the whole gradient.
        gradient_norm: f64,
    },
    /// The thread for a long computation could not be started.
    #[error("no thread for the backward pass: {0}")]
    Thread(#[from] std::io::Error),
    /// An operation failed.
    #[error("tensor operation failed: {0}")]
    Candle(Box<candle_core::Error>),
}

impl From<candle_core::Error> for Error {
    fn from(error: candle_core::Error) -> Self {
        Self::Candle(Box::new(error))
    }
}

impl Error {
    pub(crate) fn setting(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Setting { name, reason: reason.into() }
    }
}

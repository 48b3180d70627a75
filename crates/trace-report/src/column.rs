//! Columns of numbers as the page holds them: base64 of little-endian values, in the narrowest type that fits.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// A column: the name of its type, as the script's typed arrays call it, and its bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Column(&'static str, String);

impl Column {
    /// Whole numbers.
    pub(crate) fn counts(values: impl IntoIterator<Item = u32>) -> Self {
        let values: Vec<u32> = values.into_iter().collect();
        match values.iter().max() {
            Some(256..=65535) => Self::bytes("Uint16", values.iter().flat_map(|value| (*value as u16).to_le_bytes())),
            Some(65536..) => Self::bytes("Uint32", values.iter().flat_map(|value| value.to_le_bytes())),
            Some(..256) | None => Self::bytes("Uint8", values.iter().map(|value| *value as u8)),
        }
    }

    /// Numbers that decide: as exact as they came, so that the page and the command line agree to the last edge.
    pub(crate) fn exact(values: impl IntoIterator<Item = f64>) -> Self {
        Self::bytes("Float64", values.into_iter().flat_map(f64::to_le_bytes))
    }

    /// Numbers that are shown.
    pub(crate) fn shown(values: impl IntoIterator<Item = f64>) -> Self {
        Self::bytes("Float32", values.into_iter().flat_map(|value| (value as f32).to_le_bytes()))
    }

    fn bytes(kind: &'static str, bytes: impl Iterator<Item = u8>) -> Self {
        Self(kind, STANDARD.encode(bytes.collect::<Vec<u8>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_type_that_fits() {
        assert_eq!(Column::counts([0, 255]), Column("Uint8", "AP8=".to_owned()));
        assert_eq!(Column::counts([256]), Column("Uint16", "AAE=".to_owned()));
        assert_eq!(Column::counts([65536]), Column("Uint32", "AAABAA==".to_owned()));
        assert_eq!(Column::counts([]), Column("Uint8", String::new()));
        assert_eq!(Column::exact([1.0]), Column("Float64", "AAAAAAAA8D8=".to_owned()));
        assert_eq!(Column::shown([1.0]), Column("Float32", "AACAPw==".to_owned()));
    }
}

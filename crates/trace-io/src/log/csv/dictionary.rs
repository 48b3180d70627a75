//! Names as bytes and their numbers, for one look-up a cell.

use rustc_hash::FxHashMap;

/// Numbers of names, by first appearance. Short names, as most are, stand in the table itself: with many cases a
/// look-up costs as much as the cache misses it takes, so that tables should be small and keys not elsewhere.
#[derive(Default)]
pub(super) struct Dictionary {
    /// Up to 7 bytes.
    tiny: FxHashMap<u64, u32>,
    /// Up to 15 bytes.
    short: FxHashMap<u128, u32>,
    long: FxHashMap<Box<[u8]>, u32>,
}

impl Dictionary {
    /// The number of a name that was added before.
    pub(super) fn get(&self, name: &[u8]) -> Option<u32> {
        match name.len() {
            0..=7 => self.tiny.get(&u64::from_le_bytes(pack(name))).copied(),
            8..=15 => self.short.get(&u128::from_le_bytes(pack(name))).copied(),
            _ => self.long.get(name).copied(),
        }
    }

    /// Adds a name that is not there yet.
    pub(super) fn add(&mut self, name: &[u8]) -> u32 {
        let number = (self.tiny.len() + self.short.len() + self.long.len()) as u32;
        match name.len() {
            0..=7 => self.tiny.insert(u64::from_le_bytes(pack(name)), number),
            8..=15 => self.short.insert(u128::from_le_bytes(pack(name)), number),
            _ => self.long.insert(name.into(), number),
        };
        number
    }
}

/// A name of fewer than `N` bytes, and its length in the last.
fn pack<const N: usize>(name: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(name) {
        *to = *from;
    }
    bytes[N - 1] = name.len() as u8;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_are_told_apart() {
        let mut names = Dictionary::default();
        let all: Vec<Vec<u8>> = (0..40).flat_map(|length| [vec![b'a'; length], vec![0; length + 1]]).collect();
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.get(name), None);
            assert_eq!(names.add(name), number as u32);
        }
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.get(name), Some(number as u32));
        }
    }
}

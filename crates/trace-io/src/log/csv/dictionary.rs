//! Names as bytes and their numbers, for one look-up per cell.

use rustc_hash::FxHashMap;

/// Numbers of names, by first appearance. Short names, as most are, stand in the table itself: with many cases a
/// look-up costs as much as the cache misses it takes, so that tables should be small and keys not elsewhere.
#[derive(Default)]
pub(super) struct Dictionary {
    /// Up to 7 bytes.
    tiny: Table<u64>,
    /// Up to 15 bytes.
    short: Table<u128>,
    long: FxHashMap<Box<[u8]>, u32>,
}

impl Dictionary {
    /// The number of a name that was added before.
    #[inline]
    pub(super) fn get(&self, name: &[u8]) -> Option<u32> {
        match name.len() {
            0..=7 => self.tiny.get(pack_tiny(name)),
            8..=15 => self.short.get(pack_short(name)),
            _ => self.long.get(name).copied(),
        }
    }

    /// Adds a name that is not there yet, and not empty.
    pub(super) fn add(&mut self, name: &[u8]) -> u32 {
        let number = (self.tiny.len + self.short.len + self.long.len()) as u32;
        match name.len() {
            0..=7 => self.tiny.add(pack_tiny(name), number),
            8..=15 => self.short.add(pack_short(name), number),
            _ => _ = self.long.insert(name.into(), number),
        }
        number
    }

    /// Looks where a name would stand and says something of what is there. Done for many names at once, it brings
    /// their places into the cache together, where looking up one after the other would wait for each.
    #[inline]
    pub(super) fn touch(&self, name: &[u8]) -> u32 {
        match name.len() {
            0..=7 => self.tiny.touch(pack_tiny(name)),
            8..=15 => self.short.touch(pack_short(name)),
            _ => 0,
        }
    }
}

/// A short name as a number, never zero unless it is empty.
trait Packed: Copy + Default + PartialEq {
    /// A hash whose upper bits are good.
    fn hash(self) -> u64;
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Packed for u64 {
    fn hash(self) -> u64 {
        let product = u128::from(self) * u128::from(MIX);
        (product as Self ^ (product >> 64) as Self).wrapping_mul(MIX)
    }
}

impl Packed for u128 {
    fn hash(self) -> u64 {
        ((self as u64).hash() ^ (self >> 64) as u64).hash()
    }
}

/// Open addressing with linear steps, at most seven eighths full: what fits in the cache is worth more steps.
#[derive(Default)]
struct Table<K> {
    /// A power of two of them; the default key is an empty place.
    slots: Vec<(K, u32)>,
    len: usize,
}

impl<K: Packed> Table<K> {
    #[inline]
    fn place(&self, key: K) -> usize {
        // The upper bits; with one slot none of them.
        (key.hash() >> 32) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn get(&self, key: K) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut place = self.place(key);
        loop {
            let (found, number) = self.slots[place];
            if found == key {
                return (key != K::default()).then_some(number);
            }
            if found == K::default() {
                return None;
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn touch(&self, key: K) -> u32 {
        if self.slots.is_empty() { 0 } else { self.slots[self.place(key)].1 }
    }

    fn add(&mut self, key: K, number: u32) {
        if self.slots.len() * 7 <= self.len * 8 + 8 {
            let size = (2 * self.slots.len()).max(64);
            let old = std::mem::replace(&mut self.slots, vec![(K::default(), 0); size]);
            for (key, number) in old.into_iter().filter(|(key, _)| *key != K::default()) {
                self.put(key, number);
            }
        }
        self.put(key, number);
        self.len += 1;
    }

    fn put(&mut self, key: K, number: u32) {
        let mut place = self.place(key);
        while self.slots[place].0 != K::default() {
            place = (place + 1) & (self.slots.len() - 1);
        }
        self.slots[place] = (key, number);
    }
}

/// A name of at most 7 bytes, and its length in the last. Two loads that overlap instead of a copy of unknown length.
#[inline]
fn pack_tiny(name: &[u8]) -> u64 {
    let length = name.len();
    let text = match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (length - 4))
        }
        _ => name.iter().rev().fold(0, |text, byte| text << 8 | u64::from(*byte)),
    };
    text | (length as u64) << 56
}

/// A name of 8 to 15 bytes, and its length in the last.
#[inline]
fn pack_short(name: &[u8]) -> u128 {
    let length = name.len();
    let (Some(first), Some(last)) = (name.first_chunk::<8>(), name.last_chunk::<8>()) else { return 0 };
    let text = u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << (8 * (length - 8));
    text | (length as u128) << 120
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_are_told_apart() {
        let mut names = Dictionary::default();
        let zeros = (1..40).map(|length| vec![0; length]);
        let digits = (0..3000).map(|number| format!("{number}").into_bytes());
        let more = (0..3000).map(|number| format!("case-{number:06}").into_bytes());
        let all: Vec<Vec<u8>> =
            zeros.chain(digits).chain(more).chain((1..40).map(|length| vec![b'a'; length])).collect();
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.get(name), None);
            assert_eq!(names.add(name), number as u32);
        }
        for (number, name) in all.iter().enumerate() {
            assert_eq!(names.get(name), Some(number as u32));
        }
        assert_eq!((names.get(b""), names.get(b"no"), names.get(b"not there")), (None, None, None));
    }
}

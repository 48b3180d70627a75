//! Packs operands in the order that the tile unit reads, split into bf16 parts.

use std::arch::x86_64::{
    __m256i, __m512, __m512bh, __m512i, _MM_HINT_T0, _mm_prefetch, _mm512_castsi512_ps, _mm512_castsi512_si256,
    _mm512_cvtepu16_epi32, _mm512_cvtne2ps_pbh, _mm512_extracti64x4_epi64, _mm512_maskz_loadu_ps, _mm512_or_si512,
    _mm512_set1_ps, _mm512_setzero_si512, _mm512_shuffle_i32x4, _mm512_slli_epi32, _mm512_store_si512, _mm512_sub_ps,
    _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

/// Lines of a tile.
pub(super) const LINES: usize = 16;
/// Numbers of the depth in a tile.
pub(super) const DEEP: usize = 32;
/// Rows and columns of a product of two panels with two panels.
pub(super) const SIDE: usize = 2 * LINES;

/// A tile of bf16 in memory.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Tile(pub(super) [u16; LINES * DEEP]);

const EMPTY: Tile = Tile([0; LINES * DEEP]);

/// An operand as lines along the depth: rows of `left`, columns of `right`. Either the stride along the depth (`step`)
/// or the stride between lines (`apart`) is one.
pub(super) struct Lines<'a> {
    pub(super) first: &'a [f32],
    pub(super) count: usize,
    pub(super) depth: usize,
    pub(super) apart: usize,
    pub(super) step: usize,
}

/// The memory layout of a tile of an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// One line after the other.
    Left,
    /// For each pair of neighbors in depth, the pair of every line.
    Right,
}

impl Lines<'_> {
    /// Copies `lines` (first, count) over `depth` (first, count) into an even number of panels, padded with zeros.
    /// Reads along contiguous memory.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn pack<const PARTS: usize>(
        &self,
        panels: &mut Vec<Tile>,
        side: Side,
        lines: (usize, usize),
        depth: (usize, usize),
    ) {
        let tiles = depth.1.div_ceil(DEEP);
        let count = lines.1.div_ceil(SIDE) * 2;
        panels.resize(count * PARTS * tiles, EMPTY);
        let natural = if self.step == 1 { Side::Left } else { Side::Right };
        let (outer, inner) = if natural == Side::Left { (count, tiles) } else { (tiles, count) };
        for o in 0..outer {
            for i in 0..inner {
                let (p, t) = if natural == Side::Left { (o, i) } else { (i, o) };
                let line = (lines.0 + p * LINES, lines.1.saturating_sub(p * LINES).min(LINES));
                let deep = (depth.0 + t * DEEP, (depth.1 - t * DEEP).min(DEEP));
                let mut split = match natural {
                    Side::Left => self.along::<PARTS>(line, deep),
                    Side::Right => self.across::<PARTS>(line, deep),
                };
                for (tile, rows) in panels[PARTS * (p * tiles + t)..][..PARTS].iter_mut().zip(&mut split) {
                    if side != natural {
                        transpose(rows);
                    }
                    for (out, row) in tile.0.chunks_exact_mut(DEEP).zip(rows) {
                        // SAFETY: a row of a tile is a whole aligned register.
                        #[expect(unsafe_code)]
                        unsafe {
                            _mm512_store_si512(out.as_mut_ptr().cast(), *row);
                        }
                    }
                }
            }
        }
    }

    /// Sixteen lines, each with its numbers along the depth, for each part.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn along<const PARTS: usize>(
        &self,
        (line, lines): (usize, usize),
        (deep, depth): (usize, usize),
    ) -> [[__m512i; LINES]; PARTS] {
        let mut split = [[_mm512_setzero_si512(); LINES]; PARTS];
        let (near, far) = (depth.min(LINES), depth.saturating_sub(LINES));
        for l in 0..lines {
            let from = (line + l) * self.apart + deep;
            let numbers = &self.first[from..from + depth];
            // There are too many lines for the hardware prefetcher.
            _mm_prefetch::<_MM_HINT_T0>(numbers.as_ptr().wrapping_add(2 * DEEP).cast());
            _mm_prefetch::<_MM_HINT_T0>(numbers.as_ptr().wrapping_add(2 * DEEP + LINES).cast());
            let parts = parts::<PARTS>(load(&numbers[..near]), load(&numbers[depth - far..]));
            for (rows, part) in split.iter_mut().zip(parts) {
                rows[l] = part;
            }
        }
        split
    }

    /// Sixteen pairs of neighbors in depth, each of all lines, for each part.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn across<const PARTS: usize>(
        &self,
        (line, lines): (usize, usize),
        (deep, depth): (usize, usize),
    ) -> [[__m512i; LINES]; PARTS] {
        let mut split = [[_mm512_setzero_si512(); LINES]; PARTS];
        if lines == 0 {
            return split;
        }
        for pair in 0..depth.div_ceil(2) {
            let at = |d: usize| {
                let from = (deep + d) * self.step + line;
                if d < depth { load(&self.first[from..from + lines]) } else { _mm512_set1_ps(0.0) }
            };
            let parts = parts::<PARTS>(at(2 * pair), at(2 * pair + 1));
            for (rows, part) in split.iter_mut().zip(parts) {
                rows[pair] = interleaved(part);
            }
        }
        split
    }
}

/// The lanes of a register that the first `count` numbers fill.
pub(super) const fn first(count: usize) -> u16 {
    ((1u32 << count) - 1) as u16
}

/// Loads at most sixteen numbers, padded with zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(numbers: &[f32]) -> __m512 {
    // SAFETY: the mask restricts the load to `numbers`.
    #[expect(unsafe_code)]
    unsafe {
        _mm512_maskz_loadu_ps(first(numbers.len()), numbers.as_ptr())
    }
}

/// Splits each of 32 numbers into a sum of bf16; each part is the remainder of the parts before it.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn parts<const PARTS: usize>(mut first: __m512, mut second: __m512) -> [__m512i; PARTS] {
    let mut parts = [_mm512_setzero_si512(); PARTS];
    for part in &mut parts {
        *part = bits(_mm512_cvtne2ps_pbh(second, first));
        first = _mm512_sub_ps(first, widened(_mm512_castsi512_si256(*part)));
        second = _mm512_sub_ps(second, widened(_mm512_extracti64x4_epi64::<1>(*part)));
    }
    parts
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bits(halves: __m512bh) -> __m512i {
    // SAFETY: both types have 64 bytes, and every bit pattern is valid.
    #[expect(unsafe_code)]
    unsafe {
        std::mem::transmute(halves)
    }
}

/// Converts sixteen bf16 to `f32`.
#[inline]
#[target_feature(enable = "avx512f")]
fn widened(halves: __m256i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
}

/// Interleaves sixteen numbers with sixteen others.
#[inline]
#[target_feature(enable = "avx512f")]
fn interleaved(halves: __m512i) -> __m512i {
    let even = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(halves));
    let odd = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(halves));
    _mm512_or_si512(even, _mm512_slli_epi32::<16>(odd))
}

/// Transposes sixteen rows of sixteen pairs.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(rows: &mut [__m512i; LINES]) {
    let mut twos = [_mm512_setzero_si512(); LINES];
    for i in 0..8 {
        twos[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        twos[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    // Of `fours[4·i + c]`, quarter `q` holds column `4·q + c` of rows `4·i` to `4·i + 3`.
    let mut fours = [_mm512_setzero_si512(); LINES];
    for i in (0..LINES).step_by(4) {
        fours[i] = _mm512_unpacklo_epi64(twos[i], twos[i + 2]);
        fours[i + 1] = _mm512_unpackhi_epi64(twos[i], twos[i + 2]);
        fours[i + 2] = _mm512_unpacklo_epi64(twos[i + 1], twos[i + 3]);
        fours[i + 3] = _mm512_unpackhi_epi64(twos[i + 1], twos[i + 3]);
    }
    for c in 0..4 {
        const EVEN: i32 = 0b10_00_10_00;
        const ODD: i32 = 0b11_01_11_01;
        let above = _mm512_shuffle_i32x4::<EVEN>(fours[c], fours[4 + c]);
        let below = _mm512_shuffle_i32x4::<EVEN>(fours[8 + c], fours[12 + c]);
        rows[c] = _mm512_shuffle_i32x4::<EVEN>(above, below);
        rows[8 + c] = _mm512_shuffle_i32x4::<ODD>(above, below);
        let above = _mm512_shuffle_i32x4::<ODD>(fours[c], fours[4 + c]);
        let below = _mm512_shuffle_i32x4::<ODD>(fours[8 + c], fours[12 + c]);
        rows[4 + c] = _mm512_shuffle_i32x4::<EVEN>(above, below);
        rows[12 + c] = _mm512_shuffle_i32x4::<ODD>(above, below);
    }
}

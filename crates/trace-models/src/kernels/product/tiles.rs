//! Products of `f32` matrices on the tile unit (AMX) of recent Intel processors, as exact as single precision needs.
//!
//! ```text
//! x  =  h + l + e,        h = bf16(x),  l = bf16(x − h),  |e| ≤ 2⁻¹⁸ |x|
//! Σ x y  ≈  Σ h h'  +  Σ h l'  +  Σ l h'                  (l l' is as small as e)
//! ```
//!
//! The unit multiplies tiles of 16 × 32 by 32 × 16 numbers of eight bits' precision (bf16) and adds up in `f32`. Each
//! operand is split into two such numbers, and three products take the place of one; what is left out is below
//! 2⁻¹⁶ of `|x y|`, against 2⁻²⁴ by which each of the `f32` sums is rounded anyway. Infinities become NaN.
//!
//! Shapes: `left` is `R × K`, `right` is `K × C`. Both are copied, a block at a time, into panels of sixteen lines
//! (rows of `left`, columns of `right`): for every 32 of the depth a tile of `h`, then one of `l`. Cost `6·R·K·C`
//! operations of the unit, about ten times as fast as the vector units', and a copy of `left` for every [`COLUMNS`]
//! columns. For training, `Σ h h'` alone is taken: `2·R·K·C` operations, each factor to 2⁻⁹ of itself. Every sum runs over `k` in the same order wherever its row and column lie.

use std::arch::asm;
use std::arch::x86_64::{
    __cpuid_count, __m512, __m512bh, __m512i, _MM_HINT_T0, _mm_prefetch, _mm512_castsi512_ps, _mm512_castsi512_si256,
    _mm512_cvtepu16_epi32, _mm512_cvtne2ps_pbh, _mm512_extracti64x4_epi64, _mm512_fmadd_ps, _mm512_load_ps,
    _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_mul_ps, _mm512_or_si512, _mm512_set1_ps, _mm512_setzero_si512,
    _mm512_shuffle_i32x4, _mm512_slli_epi32, _mm512_store_si512, _mm512_sub_ps, _mm512_unpackhi_epi32,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};
use std::cell::RefCell;
use std::sync::LazyLock;

use super::{Grade, Matrix, MatrixMut, Old};

/// Lines of a tile.
const LINES: usize = 16;
/// Numbers of the depth in a tile.
const DEEP: usize = 32;
/// The depth of a block.
const DEPTH: usize = 512;
/// Rows of a block.
const ROWS: usize = 128;
/// Columns of a block: with the rows, what the second cache holds.
const COLUMNS: usize = 512;
/// Below this many multiplications copying costs more than the unit saves.
const LEAST: usize = 1 << 20;

/// A tile of bf16 in memory.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Tile([u16; LINES * DEEP]);

const EMPTY: Tile = Tile([0; LINES * DEEP]);

/// Whether this processor has the unit and the system lets us use it, which it is asked once.
pub(super) fn available() -> bool {
    static AVAILABLE: LazyLock<bool> = LazyLock::new(|| {
        const BF16: u32 = 1 << 22;
        const TILE: u32 = 1 << 24;
        const REQUEST_PERMISSION: libc::c_long = 0x1023;
        const TILE_DATA: libc::c_long = 18;
        let vectors = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16");
        if !vectors {
            return false;
        }
        // SAFETY: every processor with AVX-512 has leaf 7. The request changes nothing but what later instructions
        // may do, and fails where the system does not know it.
        #[expect(unsafe_code)]
        unsafe {
            __cpuid_count(7, 0).edx & (BF16 | TILE) == BF16 | TILE
                && libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0
        }
    });
    *AVAILABLE
}

/// Whether a product of this shape is worth the copies.
pub(super) fn worth(rows: usize, depth: usize, columns: usize) -> bool {
    rows >= SIDE && columns >= SIDE && rows * depth * columns >= LEAST
}

/// `out = scale · left · right`, or that added to `out`; shapes have been checked, and so has [`available`].
pub(super) fn multiply(
    out: &mut MatrixMut<'_, f32>,
    old: Old,
    scale: f32,
    grade: Grade,
    left: &Matrix<'_, f32>,
    right: &Matrix<'_, f32>,
) {
    thread_local! {
        static PANELS: RefCell<(Vec<Tile>, Vec<Tile>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    }
    let left = Lines {
        first: left.values,
        count: left.rows,
        depth: left.columns,
        apart: left.row_stride,
        step: left.column_stride,
    };
    let right = Lines {
        first: right.values,
        count: right.columns,
        depth: right.rows,
        apart: right.column_stride,
        step: right.row_stride,
    };
    PANELS.with_borrow_mut(|(rows, columns)| {
        // SAFETY: the caller has seen that the unit and the vector instructions are there.
        #[expect(unsafe_code)]
        unsafe {
            match grade {
                Grade::Exact => blocks::<2>(out, old, scale, &left, &right, rows, columns),
                Grade::Training => blocks::<1>(out, old, scale, &left, &right, rows, columns),
            }
        }
    });
}

/// An operand seen as lines of the depth: rows of `left`, columns of `right`. Either neighbours along the depth are
/// one apart (`step`), or neighbouring lines are (`apart`).
struct Lines<'a> {
    first: &'a [f32],
    count: usize,
    depth: usize,
    apart: usize,
    step: usize,
}

/// How a tile of an operand lies in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// A line after the other.
    Left,
    /// Pairs of neighbours in depth, of all lines, one after the other.
    Right,
}

/// The product from `PARTS` parts of each number.
///
/// # Safety
/// The tile unit must be [`available`], and the shapes those of a product.
#[expect(unsafe_code)]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn blocks<const PARTS: usize>(
    out: &mut MatrixMut<'_, f32>,
    old: Old,
    scale: f32,
    left: &Lines<'_>,
    right: &Lines<'_>,
    left_panels: &mut Vec<Tile>,
    right_panels: &mut Vec<Tile>,
) {
    let mut sums = Sums([0.0; SIDE * SIDE]);
    let configuration = Configuration::default();
    // SAFETY: a valid configuration: eight tiles of sixteen rows of 64 bytes. It is released below.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, preserves_flags, readonly)) };
    for deep in (0..left.depth).step_by(DEPTH) {
        let depth = DEPTH.min(left.depth - deep);
        let tiles = depth.div_ceil(DEEP);
        let old = if deep > 0 { Old::Add } else { old };
        for column in (0..right.count).step_by(COLUMNS) {
            let columns = COLUMNS.min(right.count - column);
            right.pack::<PARTS>(right_panels, Side::Right, (column, columns), (deep, depth));
            for row in (0..left.count).step_by(ROWS) {
                let rows = ROWS.min(left.count - row);
                left.pack::<PARTS>(left_panels, Side::Left, (row, rows), (deep, depth));
                for (c, pair) in right_panels.chunks_exact(2 * PARTS * tiles).enumerate() {
                    for (r, lines) in left_panels.chunks_exact(2 * PARTS * tiles).enumerate() {
                        let place = (row + r * SIDE, column + c * SIDE);
                        let size = (SIDE.min(rows - r * SIDE), SIDE.min(columns - c * SIDE));
                        if size == (SIDE, SIDE) && scale == 1.0 {
                            let stride = out.row_stride;
                            let sums = &mut out.values[place.0 * stride + place.1..];
                            // SAFETY: both are two panels of `tiles` pairs of tiles; the unit is configured.
                            unsafe { four_tiles::<PARTS>(sums, stride, old, lines, pair, tiles) };
                        } else {
                            // SAFETY: as above.
                            unsafe { four_tiles::<PARTS>(&mut sums.0, SIDE, Old::Replace, lines, pair, tiles) };
                            sums.add_to(out, old, scale, place, size);
                        }
                    }
                }
            }
        }
    }
    // SAFETY: gives back what was configured above.
    unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
}

/// What the unit is told: the rows of its eight tiles, and their width in bytes.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start: u8,
    zero: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

impl Default for Configuration {
    fn default() -> Self {
        let (mut bytes, mut rows) = ([0; 16], [0; 16]);
        bytes[..8].fill(2 * DEEP as u16);
        rows[..8].fill(LINES as u8);
        Self { palette: 1, start: 0, zero: [0; 14], bytes, rows }
    }
}

/// Rows, and columns, that two panels by two panels give.
const SIDE: usize = 2 * LINES;

/// Sums that do not go straight to where they belong.
#[repr(C, align(64))]
struct Sums([f32; SIDE * SIDE]);

/// Two panels of each operand: 32 rows of `sums`, which start `stride` apart, and 32 columns.
///
/// # Safety
/// The unit is available and configured.
#[expect(unsafe_code)]
#[inline]
unsafe fn four_tiles<const PARTS: usize>(
    sums: &mut [f32],
    stride: usize,
    old: Old,
    left: &[Tile],
    right: &[Tile],
    tiles: usize,
) {
    let panel = PARTS * tiles;
    assert!(tiles > 0 && left.len() == 2 * panel && right.len() == 2 * panel, "two panels each");
    assert!(stride >= SIDE && sums.len() >= (SIDE - 1) * stride + SIDE, "room for the sums");
    // SAFETY: reads `panel` tiles from each of the four panels; reads and writes the sums, whose place was checked
    // above. Tile registers are named as overwritten; flags may be.
    macro_rules! run {
        ($($step:literal,)+) => {
            unsafe {
                asm!(
                    "test {add:e}, {add:e}",
                    "jz 2f",
                    "tileloadd tmm0, [{sums} + {stride}]",
                    "tileloadd tmm1, [{sums} + {stride} + 64]",
                    "tileloadd tmm2, [{below} + {stride}]",
                    "tileloadd tmm3, [{below} + {stride} + 64]",
                    "jmp 3f",
                    "2:",
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "3:",
                    // The high parts.
                    "tileloadd tmm4, [{left} + {row}]",
                    "tileloadd tmm6, [{right} + {row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{next_right} + {row}]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tileloadd tmm5, [{next_left} + {row}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    $($step,)+
                    "add {left}, {step}",
                    "add {next_left}, {step}",
                    "add {right}, {step}",
                    "add {next_right}, {step}",
                    "dec {tiles}",
                    "jnz 3b",
                    "tilestored [{sums} + {stride}], tmm0",
                    "tilestored [{sums} + {stride} + 64], tmm1",
                    "tilestored [{below} + {stride}], tmm2",
                    "tilestored [{below} + {stride} + 64], tmm3",
                    add = in(reg) u32::from(old == Old::Add),
                    sums = in(reg) sums.as_mut_ptr(),
                    below = in(reg) sums[LINES * stride..].as_mut_ptr(),
                    stride = in(reg) size_of::<f32>() * stride,
                    left = inout(reg) left.as_ptr() => _,
                    next_left = inout(reg) left[panel..].as_ptr() => _,
                    right = inout(reg) right.as_ptr() => _,
                    next_right = inout(reg) right[panel..].as_ptr() => _,
                    tiles = inout(reg) tiles => _,
                    row = in(reg) 2 * DEEP,
                    step = const PARTS * size_of::<Tile>(),
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                )
            }
        };
    }
    if PARTS == 1 {
        run!("",);
    } else {
        run!(
            // High parts on the left, low ones on the right.
            "tileloadd tmm6, [{right} + {row} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{next_right} + {row} + 1024]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            // Low ones on the left, high ones on the right.
            "tileloadd tmm4, [{left} + {row} + 1024]",
            "tileloadd tmm6, [{right} + {row}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{next_right} + {row}]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm5, [{next_left} + {row} + 1024]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
        );
    }
}

impl Sums {
    /// Adds the sums, scaled, to the block of `out` at a row and column, or puts them there; of the block, `size` is within.
    #[target_feature(enable = "avx512f")]
    fn add_to(&self, out: &mut MatrixMut<'_, f32>, old: Old, scale: f32, at: (usize, usize), size: (usize, usize)) {
        let scale = _mm512_set1_ps(scale);
        for (r, sums) in self.0.chunks_exact(SIDE).take(size.0).enumerate() {
            let from = (at.0 + r) * out.row_stride + at.1;
            let row = &mut out.values[from..from + size.1];
            for (place, sums) in row.chunks_mut(LINES).zip(sums.chunks_exact(LINES)) {
                let mask = first(place.len());
                // SAFETY: half a row of sums is a whole aligned register; of `place` no more is touched than there is.
                #[expect(unsafe_code)]
                unsafe {
                    let sums = _mm512_load_ps(sums.as_ptr());
                    let value = match old {
                        Old::Replace => _mm512_mul_ps(scale, sums),
                        Old::Add => _mm512_fmadd_ps(scale, sums, _mm512_maskz_loadu_ps(mask, place.as_ptr())),
                    };
                    _mm512_mask_storeu_ps(place.as_mut_ptr(), mask, value);
                }
            }
        }
    }
}

impl Lines<'_> {
    /// Copies `lines` from the first of them, `depth` numbers from the first of these, into panels: an even number of
    /// them, filled up with zeros. Runs along what lies together in memory.
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn pack<const PARTS: usize>(
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
            // The lines are too many for the processor to see where they go on.
            _mm_prefetch::<_MM_HINT_T0>(numbers.as_ptr().wrapping_add(2 * DEEP).cast());
            _mm_prefetch::<_MM_HINT_T0>(numbers.as_ptr().wrapping_add(2 * DEEP + LINES).cast());
            let parts = parts::<PARTS>(load(&numbers[..near]), load(&numbers[depth - far..]));
            for (rows, part) in split.iter_mut().zip(parts) {
                rows[l] = part;
            }
        }
        split
    }

    /// Sixteen pairs of neighbours in depth, each of all lines, for each part.
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
const fn first(count: usize) -> u16 {
    ((1u32 << count) - 1) as u16
}

/// At most sixteen numbers, and zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(numbers: &[f32]) -> __m512 {
    // SAFETY: only lanes that are in `numbers` are read.
    #[expect(unsafe_code)]
    unsafe {
        _mm512_maskz_loadu_ps(first(numbers.len()), numbers.as_ptr())
    }
}

/// Each of 32 numbers as a sum of bf16, each part what the parts before it left.
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
    // SAFETY: both are 64 bytes of which every pattern is valid.
    #[expect(unsafe_code)]
    unsafe {
        std::mem::transmute(halves)
    }
}

/// Sixteen bf16 as the `f32` that they are.
#[inline]
#[target_feature(enable = "avx512f")]
fn widened(halves: std::arch::x86_64::__m256i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
}

/// Of sixteen numbers and sixteen others: the first of each, the second of each, …
#[inline]
#[target_feature(enable = "avx512f")]
fn interleaved(halves: __m512i) -> __m512i {
    let even = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(halves));
    let odd = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(halves));
    _mm512_or_si512(even, _mm512_slli_epi32::<16>(odd))
}

/// Sixteen rows of sixteen pairs become columns.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::view;
    use super::*;

    #[test]
    fn the_parts_of_a_number_make_it_up() {
        if !is_x86_feature_detected!("avx512bf16") {
            eprintln!("skipped: this processor has no bf16");
            return;
        }
        let numbers: Vec<f32> = (0..DEEP).map(|i| (i as f32 - 9.7).powi(3) * 1.234_567).collect();
        let lines = Lines { first: &numbers, count: 1, depth: DEEP, apart: DEEP, step: 1 };
        let mut panels = Vec::new();
        // SAFETY: the instructions are there.
        #[expect(unsafe_code)]
        unsafe {
            lines.pack::<2>(&mut panels, Side::Left, (0, 1), (0, DEEP));
        }
        assert_eq!(panels.len(), 4, "two panels of a high and a low tile");
        for (i, number) in numbers.iter().enumerate() {
            let part = |tile: usize| f32::from_bits(u32::from(panels[tile].0[i]) << 16);
            assert!((part(0) + part(1) - number).abs() <= number.abs() / 131_072.0, "{number}");
        }
    }

    proptest! {
        #[test]
        fn tiles_multiply_as_the_definition_says(
            (rows, depth, columns) in (1usize..150, 1usize..70, 1usize..100),
            (more_depth, more_columns) in (0usize..2, 0usize..2),
            (gap, salt, scale) in (0usize..3, 0u64..1000, prop_oneof![Just(1.0f32), -2.0..2.0f32]),
            (turn_left, turn_right, add, exact) in any::<(bool, bool, bool, bool)>(),
        ) {
            if !available() {
                eprintln!("skipped: this machine has no tile unit");
                return Ok(());
            }
            // Some products are larger than a block.
            let (depth, columns) = (depth + more_depth * DEPTH, columns + more_columns * COLUMNS);
            let value = |i: usize| {
                ((i as u64 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / 8_388_608.0 - 1.0
            };
            let at = |m: &Matrix<'_, f32>, r: usize, c: usize| f64::from(m.values[r * m.row_stride + c * m.column_stride]);
            let many: Vec<f32> = (0..(rows.max(columns) + gap) * (depth + gap)).map(value).collect();
            let left = view(&many, (rows, depth), gap, turn_left);
            let right = view(&many, (depth, columns), gap, turn_right);
            let start: Vec<f32> = (0..rows * (columns + gap)).map(|i| value(i + 3)).collect();
            let mut out = start.clone();
            let old = if add { Old::Add } else { Old::Replace };
            let (grade, tolerance) = if exact { (Grade::Exact, 2.0 / 65_536.0) } else { (Grade::Training, 4.0 / 512.0) };
            multiply(&mut MatrixMut::strided(&mut out, rows, columns, columns + gap), old, scale, grade, &left, &right);
            for r in 0..rows {
                for c in 0..columns + gap {
                    let (before, after) = (start[r * (columns + gap) + c], out[r * (columns + gap) + c]);
                    if c >= columns {
                        prop_assert_eq!(before, after);
                        continue;
                    }
                    let (mut sum, mut size) = (0.0, 0.0);
                    for d in 0..depth {
                        let product = at(&left, r, d) * at(&right, d, c);
                        sum += product;
                        size += product.abs();
                    }
                    let expected = f64::from(scale) * sum + if add { f64::from(before) } else { 0.0 };
                    let error = (f64::from(after) - expected).abs();
                    prop_assert!(error <= 1e-6 + f64::from(scale.abs()) * size * tolerance, "{error} at {r}, {c}");
                }
            }
        }
    }
}

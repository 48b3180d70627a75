//! Products of `f32` matrices on the tile unit (AMX) of recent Intel processors, nearly at single precision.
//!
//! ```text
//! x  =  h + l + e,        h = bf16(x),  l = bf16(x − h),  |e| ≤ 2⁻¹⁸ |x|
//! Σ x y  ≈  Σ h h'  +  Σ h l'  +  Σ l h'                  (l l' is about as small as e)
//! ```
//!
//! The unit multiplies tiles of 16 × 32 by 32 × 16 numbers with a precision of eight bits (bf16) and accumulates in
//! `f32`. Each operand is split into two such numbers, and three products replace one; the error is below 2⁻¹⁶ of `|x
//! y|`, while each `f32` sum is rounded to 2⁻²⁴ anyway. Infinities become NaN.
//!
//! Shapes: `left` is `R × K`, `right` is `K × C`. Both are copied, a block at a time, into panels of sixteen lines
//! (rows of `left`, columns of `right`): for every 32 of the depth a tile of `h`, then one of `l`. Cost `6·R·K·C`
//! operations of the unit, which is several times as fast as the vector units, and a copy of `left` for every
//! [`COLUMNS`] columns. Training uses only `Σ h h'`: `2·R·K·C` operations, with a relative error of 2⁻⁹ per factor.
//! Every sum runs over `k` in the same order, for every row and column.

mod pack;
#[cfg(test)]
mod tests;

use std::arch::asm;
use std::arch::x86_64::{
    __cpuid_count, _mm512_fmadd_ps, _mm512_load_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_mul_ps,
    _mm512_set1_ps,
};
use std::cell::RefCell;
use std::sync::LazyLock;

use self::pack::{DEEP, LINES, Lines, SIDE, Side, Tile, first};
use super::{Accumulate, Matrix, MatrixMut, Precision};

/// The depth of a block.
const DEPTH: usize = 512;
/// Rows of a block.
const ROWS: usize = 128;
/// Columns of a block: together with the rows they fit the second-level cache.
const COLUMNS: usize = 512;
/// Below this many multiplications, copying costs more than the unit saves.
const LEAST: usize = 1 << 20;

/// Whether the processor has the unit and the operating system permits it; the request is made once.
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

/// Whether a product of this shape is large enough to be worth the copies.
pub(super) fn worth(rows: usize, depth: usize, columns: usize) -> bool {
    rows >= SIDE && columns >= SIDE && rows * depth * columns >= LEAST
}

/// `out = scale · left · right`, or `out += scale · left · right`. The caller has checked the shapes and [`available`].
pub(super) fn multiply(
    out: &mut MatrixMut<'_, f32>,
    accumulate: Accumulate,
    scale: f32,
    precision: Precision,
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
        // SAFETY: the caller has checked that the unit and the vector instructions are available.
        #[expect(unsafe_code)]
        unsafe {
            match precision {
                Precision::Exact => blocks::<2>(out, accumulate, scale, &left, &right, rows, columns),
                Precision::Training => blocks::<1>(out, accumulate, scale, &left, &right, rows, columns),
            }
        }
    });
}

/// The product from `PARTS` parts of each number.
///
/// # Safety
/// The tile unit must be [`available`], and the shapes those of a product.
#[expect(unsafe_code)]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn blocks<const PARTS: usize>(
    out: &mut MatrixMut<'_, f32>,
    accumulate: Accumulate,
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
        let accumulate = if deep > 0 { Accumulate::Add } else { accumulate };
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
                            unsafe { four_tiles::<PARTS>(sums, stride, accumulate, lines, pair, tiles) };
                        } else {
                            // SAFETY: as above.
                            unsafe { four_tiles::<PARTS>(&mut sums.0, SIDE, Accumulate::Replace, lines, pair, tiles) };
                            sums.add_to(out, accumulate, scale, place, size);
                        }
                    }
                }
            }
        }
    }
    // SAFETY: releases the configuration above.
    unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
}

/// The configuration of the unit: the rows of its eight tiles, and their width in bytes.
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

/// A buffer for sums that are not written directly to the output.
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
    accumulate: Accumulate,
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
                    add = in(reg) u32::from(accumulate == Accumulate::Add),
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
    /// Adds the scaled sums to the block of `out` at a row and column, or replaces it; only `size` of the block is
    /// inside the matrix.
    #[target_feature(enable = "avx512f")]
    fn add_to(
        &self,
        out: &mut MatrixMut<'_, f32>,
        accumulate: Accumulate,
        scale: f32,
        at: (usize, usize),
        size: (usize, usize),
    ) {
        let scale = _mm512_set1_ps(scale);
        for (r, sums) in self.0.chunks_exact(SIDE).take(size.0).enumerate() {
            let from = (at.0 + r) * out.row_stride + at.1;
            let row = &mut out.values[from..from + size.1];
            for (place, sums) in row.chunks_mut(LINES).zip(sums.chunks_exact(LINES)) {
                let mask = first(place.len());
                // SAFETY: half a row of sums is a whole aligned register; the mask restricts accesses to `place`.
                #[expect(unsafe_code)]
                unsafe {
                    let sums = _mm512_load_ps(sums.as_ptr());
                    let value = match accumulate {
                        Accumulate::Replace => _mm512_mul_ps(scale, sums),
                        Accumulate::Add => _mm512_fmadd_ps(scale, sums, _mm512_maskz_loadu_ps(mask, place.as_ptr())),
                    };
                    _mm512_mask_storeu_ps(place.as_mut_ptr(), mask, value);
                }
            }
        }
    }
}

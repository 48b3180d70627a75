//! Tests of [`super`].

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
    // SAFETY: the instructions are available.
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
        let accumulate = if add { Accumulate::Add } else { Accumulate::Replace };
        let (precision, tolerance) = if exact { (Precision::Exact, 2.0 / 65_536.0) } else { (Precision::Training, 4.0 / 512.0) };
        multiply(&mut MatrixMut::strided(&mut out, rows, columns, columns + gap), accumulate, scale, precision, &left, &right);
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

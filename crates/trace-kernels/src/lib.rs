//! The hot loops over slices: matrix products, and the operations on rows between them.
//!
//! All `unsafe` code of the workspace is here, in [`matmul`]. SIMD instructions are detected at run time: `gemm`
//! selects its kernels, large products run on the tile unit of processors that have one, and `pulp` compiles the loops
//! of the other files for each instruction set. Sums always run over sixteen lanes, so that their order, and therefore
//! the result, does not depend on the register width.
//!
//! * [`matmul`] – general matrix products; [`panels`] – repeated products of a few rows with the same matrix.
//! * [`f32`](mod@f32) – norms, softmax, losses, rotations and sums of rows; [`f64`](mod@f64) – the same for exact models.
//! * [`gates`], [`scan`], [`gelu`], [`layer_norm`] – operations of single architectures.
//! * [`peak`] – the peak speed of this machine, for benchmarks.
#![allow(clippy::inline_always)] // only what is inlined into the dispatched function is compiled for its features

pub mod f32;
pub mod f64;
pub mod gates;
pub mod gelu;
pub mod layer_norm;
pub mod matmul;
pub mod panels;
pub mod peak;
pub mod scan;

const LANES: usize = 16;

/// Defines a function whose body is compiled for each instruction set and selected at run time. (A closure would be
/// enough if it could be marked `inline(always)`; without that its `mul_add`s become calls.)
macro_rules! dispatched {
    ($(#[$doc:meta])* $visible:vis fn $name:ident<$life:lifetime>($($argument:ident: $type:ty),* $(,)?) -> $output:ty $body:block) => {
        $(#[$doc])*
        $visible fn $name<$life>($($argument: $type),*) -> $output {
            struct Kernel<$life> {
                $($argument: $type,)*
                _borrowed: std::marker::PhantomData<&$life ()>,
            }
            impl<$life> WithSimd for Kernel<$life> {
                type Output = $output;

                #[inline(always)]
                fn with_simd<S: Simd>(self, _: S) -> $output {
                    let Self { $($argument,)* .. } = self;
                    $body
                }
            }
            Arch::new().dispatch(Kernel { $($argument,)* _borrowed: std::marker::PhantomData })
        }
    };
}
use dispatched;

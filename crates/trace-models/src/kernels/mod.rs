//! The hot loops over slices: matrix products, and what happens to rows of numbers between them.
//!
//! All `unsafe` of the workspace is in [`product`]. SIMD comes from run-time detection: `gemm` picks its own kernels, large
//! products go to the tile unit of processors that have one,
//! and `pulp` compiles the loops of the other files for each instruction set. Sums run over sixteen fixed lanes, so
//! that their order, and with it the result, does not depend on the width of a register.
#![allow(clippy::inline_always)] // only what is inlined into the dispatched function is compiled for its features

pub(crate) mod double;
pub(crate) mod gates;
pub(crate) mod gelu;
pub(crate) mod layer_norm;
pub(crate) mod panels;
pub(crate) mod product;
pub(crate) mod scan;
pub(crate) mod single;

const LANES: usize = 16;

/// Defines a function whose body is compiled for each instruction set and picked at run time. (A closure would do if
/// it could be marked as always inlined; without that its `mul_add`s become calls.)
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

#!/bin/sh
# Builds one target with coverage on the stable toolchain, without cargo-fuzz, and runs it:
#   fuzz/run.sh csv -max_total_time=600
# Needs a C++ compiler for libFuzzer. `cargo fuzz run --sanitizer none csv` does the same where cargo-fuzz is there.
set -eu
target=$1
shift
cd "$(dirname "$0")"
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
    cargo build --release --jobs "${JOBS:-2}" --target "$(rustc -vV | sed -n 's/^host: //p')" --bin "$target"
mkdir -p "corpus/$target" "artifacts/$target"
exec "target/$(rustc -vV | sed -n 's/^host: //p')/release/$target" \
    -artifact_prefix="artifacts/$target/" -rss_limit_mb=2048 "$@" "corpus/$target" "seeds/$target"

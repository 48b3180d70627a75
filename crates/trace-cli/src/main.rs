//! The `trace` command; all of it is in the library, so that other packages can ship it too.

fn main() -> std::process::ExitCode {
    trace_cli::run(std::env::args_os())
}

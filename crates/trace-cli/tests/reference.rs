//! The command reference says what the program says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::path::Path;

use clap::CommandFactory;
use trace_cli::cli::Cli;

/// Set to write the reference instead of comparing it.
const UPDATE: &str = "UPDATE_REFERENCE";

/// The help of a command and of all below it.
fn write(command: &mut clap::Command, name: &str, page: &mut String) {
    let help = command.clone().bin_name(name.to_owned()).term_width(100).render_long_help();
    let help = help.to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for sub in names.iter().filter(|sub| *sub != "help") {
        let below = command.find_subcommand_mut(sub).unwrap();
        write(below, &format!("{name} {sub}"), page);
    }
}

#[test]
fn the_command_reference_is_up_to_date() {
    let mut page = String::from(
        "# Commands\n\nWhat `trace` and each of its commands say to `--help`. This page is generated from the program: \
         `UPDATE_REFERENCE=1 cargo test -p trace-cli --test reference` writes it anew.\n",
    );
    let mut command = Cli::command();
    command.build();
    write(&mut command, "trace", &mut page);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/commands.md is stale: {UPDATE}=1 writes it anew");
}

/// Doors render options; libraries name them.
#[test]
fn no_library_string_names_a_flag() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut left: Vec<_> = ["core", "kernels", "models", "sim", "io", "report", "causal", "candle"]
        .map(|name| crates.join(format!("trace-{name}/src")))
        .to_vec();
    let mut found = Vec::new();
    let mut files = 0;
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.trim_start();
            let flag = |text: &str| {
                text.match_indices("--").any(|(at, _)| text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase()))
            };
            if !code.starts_with("//") && code.contains('"') && flag(code) {
                found.push(format!("{}:{number}: {code}", path.display()));
            }
        }
    }
    assert!(files > 100, "the libraries are somewhere else");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

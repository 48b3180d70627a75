//! Running the command in a folder of its own.
#![allow(dead_code)] // each test file uses its part

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub struct Workplace(tempfile::TempDir);

impl Workplace {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Every file below the folder with its contents.
    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, all);
                    all.insert(path, Vec::new());
                } else {
                    all.insert(path.clone(), std::fs::read(path).unwrap_or_default()); // a link to nowhere
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(self.0.path(), &mut all);
        all
    }

    /// The files there, hidden ones too, in order.
    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The command with these words, to be run in the folder.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("trace"));
        command.current_dir(self.0.path()).args(words.split_whitespace());
        command
    }

    pub fn try_run(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs the command, which must succeed; returns its standard output.
    pub fn run(&self, words: &str) -> String {
        let output = self.try_run(words);
        assert!(output.status.success(), "trace {words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the command, which must fail with code 2 and leave nothing behind; returns what it said.
    pub fn refuse(&self, words: &str) -> String {
        let before = self.contents();
        let output = self.try_run(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "trace {words}: {said}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "trace {words}");
        assert!(self.contents() == before, "trace {words} left something behind or changed a file: {:?}", self.files());
        assert!(!said.contains("panicked"), "{said}");
        said
    }

    /// A small process with its log and truth in `process`.
    pub fn simulate(&self, options: &str) {
        self.run(&format!("simulate scm --quiet --out process {options}"));
    }
}

pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub fn lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(json).collect()
}

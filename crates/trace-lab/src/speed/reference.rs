//! The other side: PyTorch and the reference package, or Polars, in a virtual environment of their own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::output::say;

/// What an environment has in it, and the program that answers.
pub struct Reference {
    packages: &'static [&'static str],
    imports: &'static str,
    server: &'static str,
}

/// PyTorch and the reference package.
pub const TORCH: Reference = Reference {
    packages: &["torch", "transformers", "safetensors", "seq2cause==0.1.9"],
    imports: "import torch, transformers, safetensors, seq2cause",
    server: include_str!("reference.py"),
};

/// Another reader of CSV.
pub const POLARS: Reference =
    Reference { packages: &["polars"], imports: "import polars", server: include_str!("read.py") };

/// A virtual environment with everything in it.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Uses the environment in `folder`, making it first if it is not there.
    pub fn prepare(folder: &Path, reference: &Reference, quiet: bool) -> anyhow::Result<Self> {
        let environment = Self { folder: folder.to_owned() };
        if !environment.python().exists() {
            say(quiet, format_args!("making a virtual environment in {}", folder.display()));
            run(Command::new("python3").args(["-m", "venv"]).arg(folder)).context("python3 -m venv")?;
        }
        let complete = Command::new(environment.python())
            .args(["-c", reference.imports])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !complete {
            say(
                quiet,
                format_args!("installing {} from the package index (some minutes)", reference.packages.join(", ")),
            );
            let mut pip = Command::new(environment.python());
            run(pip.args(["-m", "pip", "install", "--quiet"]).args(reference.packages)).context("pip install")?;
        }
        std::fs::write(environment.script(), reference.server)
            .with_context(|| environment.script().display().to_string())?;
        Ok(environment)
    }

    fn python(&self) -> PathBuf {
        self.folder.join("bin").join("python")
    }

    fn script(&self) -> PathBuf {
        self.folder.join("trace_reference.py")
    }

    /// Starts a server with this many threads and says what it runs on.
    pub fn start(&self, threads: usize) -> anyhow::Result<(Server, Value)> {
        let mut child = Command::new(self.python())
            .arg(self.script())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the reference")?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the reference has no pipes");
        };
        let mut server = Server { child, input, output: BufReader::new(output) };
        let versions = server.ask(&json!({"do": "hello", "threads": threads}))?;
        Ok((server, versions))
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("failed with {status}");
    }
    Ok(())
}

/// A running reference.
pub struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    /// Asks one thing and waits for the answer.
    pub fn ask(&mut self, question: &Value) -> anyhow::Result<Value> {
        writeln!(self.input, "{question}").context("asking the reference")?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line).context("waiting for the reference")?;
        let answer: Value =
            serde_json::from_str(&line).with_context(|| format!("the reference ended, or answered {line:?}"))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => bail!("the reference failed: {error}"),
            None => Ok(answer),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be in the middle of something that no longer matters.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Writing so that nothing half-written is ever seen.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Error;

/// The place to write that a path means: links are followed, and what is not an ordinary file is refused, because it
/// would be replaced and not written to.
pub fn resolve(path: &Path) -> Result<PathBuf, Error> {
    if path == Path::new("-") {
        return Err(Error::file(path, "standard output cannot be replaced at the end; expected a file to write"));
    }
    match path.canonicalize() {
        Ok(there) if there.is_dir() => Err(Error::file(path, "is a folder; expected a file to write")),
        Ok(there) if !there.is_file() => Err(Error::file(path, "is not an ordinary file; expected one to write")),
        Ok(there) if path.is_symlink() => Ok(there),
        Err(_) if path.is_symlink() => Err(Error::file(path, "is a link to nowhere; expected a file to write")),
        _ => Ok(path.to_owned()),
    }
}

/// Like [`resolve`], and whether the file can be written there: better known before hours of work than after.
pub fn check_writable(path: &Path) -> Result<PathBuf, Error> {
    let place = resolve(path)?;
    tempfile::Builder::new().prefix(".trace-").tempfile_in(folder_of(&place)).map_err(Error::io(path))?;
    Ok(place)
}

/// Whether two paths mean the same file.
pub fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a whole file under a temporary name and then gives it its own.
pub fn write_whole(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Error> {
    let place = resolve(path)?;
    let temporary = tempfile::Builder::new()
        .prefix(".trace-")
        .permissions_of_new_files()
        .tempfile_in(folder_of(&place))
        .map_err(Error::io(path))?;
    let mut writer = BufWriter::new(temporary.as_file());
    fill(&mut writer).and_then(|()| writer.flush()).map_err(Error::io(path))?;
    drop(writer);
    temporary.persist(place).map_err(|error| Error::io(path)(error.error))?;
    Ok(())
}

/// Writes a value as JSON, all at once.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    write_whole(path, |out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Temporary files are private by default; these take the place of ordinary ones.
trait UsualPermissions {
    fn permissions_of_new_files(&mut self) -> &mut Self;
}

impl UsualPermissions for tempfile::Builder<'_, '_> {
    fn permissions_of_new_files(&mut self) -> &mut Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The process's umask still applies.
            self.permissions(fs::Permissions::from_mode(0o666));
        }
        self
    }
}

/// A file of lines that grows in `FILE.partial` and takes its name when complete.
#[derive(Debug)]
pub struct PartialFile {
    path: PathBuf,
    partial: PathBuf,
    writer: BufWriter<File>,
}

/// Where a file grows before it is complete.
pub fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

impl PartialFile {
    /// Starts an empty partial file.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::continue_at(path, 0)
    }

    /// Continues a partial file after its first `bytes` bytes; what follows them is cut off.
    pub fn continue_at(path: &Path, bytes: u64) -> Result<Self, Error> {
        let partial = partial_path(path);
        let io = |error| Error::io(&partial)(error);
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&partial).map_err(io)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(Error::file(&partial, "another run is writing it")),
            // Some file systems cannot lock; then nobody can.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        file.set_len(bytes).and_then(|()| file.seek(SeekFrom::End(0))).map_err(io)?;
        Ok(Self { path: path.to_owned(), partial, writer: BufWriter::new(file) })
    }

    /// Adds a line and hands it to the system, so that a kill loses nothing that was finished.
    pub fn write_line(&mut self, line: &str) -> Result<(), Error> {
        let write = |writer: &mut BufWriter<File>| {
            writer.write_all(line.as_bytes())?;
            writer.write_all(b"\n")?;
            writer.flush()
        };
        write(&mut self.writer).map_err(Error::io(&self.partial))
    }

    /// The file is complete: it takes its name.
    pub fn finish(mut self) -> Result<(), Error> {
        self.writer.flush().map_err(Error::io(&self.partial))?;
        fs::rename(&self.partial, &self.path).map_err(Error::io(&self.path))
    }

    /// The file is not wanted.
    pub fn discard(self) -> Result<(), Error> {
        drop(self.writer);
        fs::remove_file(&self.partial).map_err(Error::io(&self.partial))
    }
}

/// Complete lines of a partial file, with the number of bytes up to and including each. A last line without its end
/// is left out: it was being written when the run was killed.
pub fn complete_lines(partial: &Path) -> Result<Vec<(String, u64)>, Error> {
    let mut reader = BufReader::new(File::open(partial).map_err(Error::io(partial))?);
    let mut lines = Vec::new();
    let mut bytes = 0;
    loop {
        let mut line = Vec::new();
        bytes += reader.read_until(b'\n', &mut line).map_err(Error::io(partial))? as u64;
        if line.pop() != Some(b'\n') {
            return Ok(lines);
        }
        let text = String::from_utf8(line).map_err(|_| Error::file(partial, "not UTF-8 text"))?;
        lines.push((text, bytes));
    }
}

//! The weights of a folder as one set of tensors, in one safetensors file or in several with an index.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::Error;
use crate::folder::WEIGHTS;
use crate::tensors::TensorFile;

const INDEX: &str = "model.safetensors.index.json";
/// Longer files are rejected as an index.
const LONGEST_INDEX: u64 = 100_000_000;

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// All tensors of a folder.
pub(crate) struct TensorSet {
    folder: PathBuf,
    files: Vec<TensorFile>,
    /// The file of each tensor.
    places: BTreeMap<String, usize>,
}

/// The files with the weights of a folder: one file, or an index and the files that it names.
pub(crate) fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let index = folder.join(INDEX);
    if folder.join(WEIGHTS).exists() || !index.exists() {
        return Ok(vec![folder.join(WEIGHTS)]);
    }
    let mut names: Vec<String> = read_index(&index)?.weight_map.into_values().collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Err(Error::folder(&index, "names no file; expected those that hold the tensors"));
    }
    let mut files = vec![index.clone()];
    for name in names {
        let path = Path::new(&name);
        let plain = matches!(path.components().collect::<Vec<_>>().as_slice(), [Component::Normal(_)]);
        if !plain {
            let reason = format!("names {name:?}; expected files of the same folder");
            return Err(Error::folder(&index, reason));
        }
        files.push(folder.join(path));
    }
    Ok(files)
}

fn read_index(path: &Path) -> Result<Index, Error> {
    let length = fs::metadata(path).map_err(Error::io(path))?.len();
    if length > LONGEST_INDEX {
        return Err(Error::folder(path, format!("{length} bytes are too many for an index")));
    }
    let text = fs::read(path).map_err(Error::io(path))?;
    serde_json::from_slice(&text).map_err(|error| Error::folder(path, format!("the index is broken: {error}")))
}

impl TensorSet {
    /// Opens every file and checks every header; reads no tensor yet.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let mut paths = weight_files(folder)?;
        let index = if paths.len() > 1 { Some(read_index(&paths.remove(0))?) } else { None };
        let files = paths.iter().map(|path| TensorFile::open(path)).collect::<Result<Vec<_>, _>>()?;
        let mut places = BTreeMap::new();
        for (number, file) in files.iter().enumerate() {
            for name in file.names() {
                if places.insert(name.clone(), number).is_some() {
                    return Err(file.fault(&name, "occurs in two files"));
                }
            }
        }
        for (name, file) in index.into_iter().flat_map(|index| index.weight_map) {
            let there = places.get(&name).map(|number| &paths[*number]);
            if there.and_then(|path| path.file_name()).is_none_or(|there| *there != *file) {
                let path = folder.join(&file);
                return Err(Error::Tensor { path, tensor: name, reason: "missing, though the index has it".into() });
            }
        }
        Ok(Self { folder: folder.to_owned(), files, places })
    }

    /// The names of all tensors.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Whether a tensor exists.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    fn place(&self, name: &str) -> Result<usize, Error> {
        self.places.get(name).copied().ok_or_else(|| Error::Tensor {
            path: self.folder.clone(),
            tensor: name.to_owned(),
            reason: "missing".to_owned(),
        })
    }

    /// The error for a tensor that the architecture does not have.
    pub(crate) fn unexpected(&self, name: &str) -> Error {
        let path = self.places.get(name).map_or(self.folder.as_path(), |number| self.files[*number].path());
        let reason = "not part of this architecture as far as this version computes it".to_owned();
        Error::Tensor { path: path.to_owned(), tensor: name.to_owned(), reason }
    }

    /// Checks that a tensor of floats with this shape exists; reads nothing.
    pub(crate) fn check_floats(&self, name: &str, shape: &[usize]) -> Result<(), Error> {
        self.files[self.place(name)?].check_floats(name, shape)
    }

    /// Reads a tensor of f32, f16 or bf16.
    pub(crate) fn read_floats(&mut self, name: &str, shape: &[usize], out: &mut [f32]) -> Result<(), Error> {
        let place = self.place(name)?;
        self.files[place].read_floats(name, shape, out)
    }
}

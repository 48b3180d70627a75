//! Names that are too long to be shown whole.

use std::collections::{BTreeMap, BTreeSet};

/// Shortens names to at most `longest` letters, so that names which differ still do.
///
/// A long name loses its end. Of names that would then look alike, each loses its middle instead, as what tells names apart
/// tends to stand at either end; and those that would still look alike are cut around the letter in which they differ.
pub fn distinct(names: &[String], longest: usize) -> Vec<String> {
    let clean: Vec<Vec<char>> = names.iter().map(|name| clean(name)).collect();
    let (by_start, by_ends) = (Alike::new(&clean, longest, start), Alike::new(&clean, longest, ends));
    let shown = |name: &Vec<char>| match (by_start.twins(name), by_ends.twins(name)) {
        (None, _) => start(name, longest),
        (Some(_), None) => ends(name, longest),
        (Some(_), Some(twins)) => around(name, twins, longest),
    };
    clean.iter().map(shown).collect()
}

/// Names by what is shown of them.
struct Alike<'n> {
    longest: usize,
    shown: fn(&[char], usize) -> String,
    names: BTreeMap<String, BTreeSet<&'n Vec<char>>>,
}

impl<'n> Alike<'n> {
    fn new(all: &'n [Vec<char>], longest: usize, shown: fn(&[char], usize) -> String) -> Self {
        let mut names: BTreeMap<String, BTreeSet<&Vec<char>>> = BTreeMap::new();
        for name in all {
            names.entry(shown(name, longest)).or_default().insert(name);
        }
        Self { longest, shown, names }
    }

    /// All names that look like this one, if there are others.
    fn twins(&self, name: &[char]) -> Option<&BTreeSet<&'n Vec<char>>> {
        self.names.get(&(self.shown)(name, self.longest)).filter(|twins| twins.len() > 1)
    }
}

/// Letters that a terminal would act on are replaced.
fn clean(name: &str) -> Vec<char> {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A name without its end.
fn start(name: &[char], longest: usize) -> String {
    if name.len() <= longest {
        return name.iter().collect();
    }
    let start: String = name[..longest - 1].iter().collect();
    format!("{}…", start.trim_end())
}

/// A name without its middle.
fn ends(name: &[char], longest: usize) -> String {
    if name.len() <= longest {
        return name.iter().collect();
    }
    let tail = (longest - 1) / 2;
    let head = longest - 1 - tail;
    name[..head].iter().chain(&['…']).chain(&name[name.len() - tail..]).collect()
}

/// The part of a name around the last letter that tells it from one of its twins. In alphabetical order, the twin that
/// has most in common with it stands next to it.
fn around(name: &Vec<char>, twins: &BTreeSet<&Vec<char>>, longest: usize) -> String {
    let next = [twins.range::<&Vec<char>, _>(..name).next_back(), twins.range::<&Vec<char>, _>(name..).nth(1)];
    let differs = |twin: &&Vec<char>| name.iter().zip(twin.iter()).position(|(a, b)| a != b).unwrap_or(name.len());
    let at = next.into_iter().flatten().map(differs).max().unwrap_or(0);
    let room = longest.saturating_sub(2).max(1);
    let from = at.saturating_sub(room / 2).min(name.len().saturating_sub(room));
    let to = (from + room).min(name.len());
    let mut short = String::new();
    if from > 0 {
        short.push('…');
    }
    short.extend(&name[from..to]);
    if to < name.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(names: &[&str], longest: usize) -> Vec<String> {
        distinct(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), longest)
    }

    #[test]
    fn what_fits_stays_and_what_does_not_loses_its_end() {
        assert_eq!(short(&["A", "Payment\nreceived"], 20), ["A", "Payment\u{fffd}received"]);
        assert_eq!(short(&["T02 Check confirmation of receipt"], 15), ["T02 Check conf…"]);
        let alike = ["T02 Check confirmation of receipt", "T02 Check confirmation of payment"];
        assert_eq!(short(&alike, 15), ["T02 Che…receipt", "T02 Che…payment"], "unless names would look alike");
    }

    #[test]
    fn names_that_differ_look_different() {
        let names = ["node 17 of rack 3 in hall north lost power", "node 18 of rack 3 in hall north lost power"];
        let shown = short(&names, 20);
        assert_ne!(shown[0], shown[1]);
        // All alike at both ends.
        let names = [1, 2, 3].map(|i| format!("{}{i}{}", "a".repeat(40), "b".repeat(40)));
        let shown = distinct(&names, 24);
        let unique: BTreeSet<&String> = shown.iter().collect();
        assert_eq!(unique.len(), 3, "{shown:?}");
        assert!(shown.iter().all(|name| name.chars().count() <= 24), "{shown:?}");
    }
}

//! Event types and their names.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::EventId;

/// What a log calls an event type: text, or a plain number when the model has no names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventName {
    /// A number, as in logs of integer ids.
    Number(u64),
    /// Any text.
    Text(Arc<str>),
}

impl From<&str> for EventName {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl Serialize for EventName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for EventName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = EventName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a whole number, 0 or more")
    }

    fn visit_u64<E>(self, number: u64) -> Result<EventName, E> {
        Ok(EventName::Number(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<EventName, E> {
        u64::try_from(number)
            .map(EventName::Number)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_str<E>(self, text: &str) -> Result<EventName, E> {
        Ok(text.into())
    }
}

/// The event types `X` that a model knows, and their names where it has any.
///
/// With names, a number in a log is looked up as its decimal text; without names, numbers (and decimal text)
/// are the ids themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Vocabulary(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Ids(usize),
    Named { names: Vec<Arc<str>>, index: FxHashMap<Arc<str>, EventId> },
}

/// What files call the end of a case where it is an effect.
pub const END: &str = "[end]";

impl Vocabulary {
    /// A vocabulary of `size` types that have no names but their ids.
    pub const fn ids(size: usize) -> Self {
        Self(Kind::Ids(size))
    }

    /// An empty vocabulary to [`intern`](Self::intern) names into.
    pub fn named() -> Self {
        Self(Kind::Named { names: Vec::new(), index: FxHashMap::default() })
    }

    /// The number of types, `V`.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Ids(size) => *size,
            Kind::Named { names, .. } => names.len(),
        }
    }

    /// Whether there is no type at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the types have names of their own.
    pub const fn has_names(&self) -> bool {
        matches!(self.0, Kind::Named { .. })
    }

    /// The id of a name, adding the name if it is new; `None` where a vocabulary of bare ids lacks it.
    pub fn intern(&mut self, name: &EventName) -> Option<EventId> {
        if let Some(id) = self.id(name) {
            return Some(id);
        }
        match &mut self.0 {
            Kind::Ids(_) => None,
            Kind::Named { names, index } => {
                let id = EventId(u32::try_from(names.len()).ok()?);
                let text: Arc<str> = match name {
                    EventName::Number(number) => number.to_string().into(),
                    EventName::Text(text) => Arc::clone(text),
                };
                names.push(Arc::clone(&text));
                index.insert(text, id);
                Some(id)
            }
        }
    }

    /// The id of a name, if the vocabulary has it.
    pub fn id(&self, name: &EventName) -> Option<EventId> {
        match (&self.0, name) {
            (Kind::Ids(size), EventName::Number(number)) => {
                usize::try_from(*number).is_ok_and(|n| n < *size).then_some(EventId(*number as u32))
            }
            (Kind::Ids(_), EventName::Text(text)) => {
                // Only the number's own text: "007" and "+7" are other names, not type 7.
                let number: u64 = text.parse().ok().filter(|number: &u64| number.to_string() == **text)?;
                self.id(&EventName::Number(number))
            }
            (Kind::Named { index, .. }, EventName::Text(text)) => index.get(text).copied(),
            (Kind::Named { index, .. }, EventName::Number(number)) => index.get(number.to_string().as_str()).copied(),
        }
    }

    /// What to call an id in output. The id behind all types is the end of a case; another one outside the vocabulary
    /// is called by its number.
    pub fn name(&self, id: EventId) -> EventName {
        match &self.0 {
            Kind::Named { names, .. } if id.index() < names.len() => EventName::Text(Arc::clone(&names[id.index()])),
            _ if id.index() == self.len() => END.into(),
            _ => EventName::Number(u64::from(id.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_meet_in_a_named_vocabulary() {
        let mut vocabulary = Vocabulary::named();
        let a = vocabulary.intern(&"17".into());
        assert_eq!(vocabulary.id(&EventName::Number(17)), a);
        assert_eq!(vocabulary.intern(&EventName::Number(17)), a);
        assert_eq!(vocabulary.len(), 1);
        assert_eq!(vocabulary.name(EventId(0)), "17".into());
        assert_eq!(vocabulary.id(&"x".into()), None);
    }

    #[test]
    fn bare_ids_are_bounded() {
        let mut vocabulary = Vocabulary::ids(3);
        assert_eq!(vocabulary.id(&"2".into()), Some(EventId(2)));
        assert_eq!((vocabulary.id(&"02".into()), vocabulary.id(&"+2".into())), (None, None));
        assert_eq!(vocabulary.id(&EventName::Number(3)), None);
        assert_eq!(vocabulary.id(&EventName::Number(u64::MAX)), None);
        assert_eq!(vocabulary.intern(&"new".into()), None);
        assert_eq!(vocabulary.name(EventId(1)), EventName::Number(1));
    }
}

//! Event names in JSON: text, or a whole number.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use trace_core::EventName;

/// An [`EventName`] as JSON has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub EventName);

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            EventName::Number(number) => serializer.serialize_u64(*number),
            EventName::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a whole number, 0 or more")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Name, E> {
        Ok(Name(EventName::Number(number)))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Name, E> {
        u64::try_from(number)
            .map(|number| Name(EventName::Number(number)))
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_str<E>(self, text: &str) -> Result<Name, E> {
        Ok(Name(text.into()))
    }
}

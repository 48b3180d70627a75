//! Results to show, and a browser to show them in.
#![allow(dead_code)] // each test file uses its part

pub mod browser;
pub mod sample;

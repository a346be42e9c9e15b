//! Clew.
fn main() {}

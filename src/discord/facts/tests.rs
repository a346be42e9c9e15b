//! Facts from events.

//! Helpers that integration tests share.

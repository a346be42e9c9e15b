//! Posting to Discord.

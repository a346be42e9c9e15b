//! Fills what `GUILD_CREATE` left open, over REST.

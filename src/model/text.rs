//! Texts for people: counted things, addresses, and texts that are cut or show every letter.

use clew_context::model::{ChannelId, GuildId};

/// `1 message`, `2 messages`, `2 fetches`.
pub fn count(number: impl TryInto<u64>, one: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = match number {
        1 => "",
        _ if one.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {one}{plural}")
}

/// At most `most` characters; a shortened text ends with `…`.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    cut(text, most.saturating_sub(1), "…")
}

/// The first `most` characters, and `more` behind them if there are others.
pub fn cut(text: &str, most: usize, more: &str) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}{more}", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text of which Discord shows every letter: it neither formats nor pings.
pub fn unformatted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if "*_`~|<>[]\\".contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

/// The address of a channel of a server, or of direct messages; a message's id goes behind it.
pub fn channel_address(guild: Option<GuildId>, channel: ChannelId) -> String {
    let guild = guild.map_or_else(|| "@me".to_owned(), |guild| guild.to_string());
    format!("https://discord.com/channels/{guild}/{channel}")
}

/// What a model wrote, without the code fence that some put around JSON.
pub fn unfenced(answer: &str) -> &str {
    let inside = answer
        .strip_prefix("```json")
        .or_else(|| answer.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"));
    inside.map_or(answer, str::trim)
}

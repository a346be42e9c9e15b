//! Texts for people: counted things, addresses, and texts that are cut or show every letter.

use std::time::Duration;

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

/// A time span as people type it, from a minute to 365 days: `90m`, `12 hours`, `7d`, `1w`; a
/// bare number is hours.
pub fn read_span(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let minutes = match unit.trim() {
        "m" | "min" | "minute" | "minutes" => 1,
        "" | "h" | "hour" | "hours" => 60,
        "d" | "day" | "days" => 24 * 60,
        "w" | "week" | "weeks" => 7 * 24 * 60,
        _ => return None,
    };
    let minutes = number.parse::<u64>().ok()?.checked_mul(minutes)?;
    let is_meant = (1..=365 * 24 * 60).contains(&minutes);
    is_meant.then(|| Duration::from_mins(minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_type_them() {
        for (text, seconds) in [
            ("1m", Some(60)),
            ("90 minutes", Some(5_400)),
            (" 2 h", Some(7_200)),
            ("36", Some(129_600)),
            (" 7D ", Some(604_800)),
            ("1w", Some(604_800)),
            ("365d", Some(31_536_000)),
            ("", None),
            ("0", None),
            ("0m", None),
            ("-1h", None),
            ("366d", None),
            ("8761", None),
            ("53w", None),
            ("h", None),
            ("2 years", None),
            ("3ü", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(read_span(text), seconds.map(Duration::from_secs), "{text}");
        }
    }
}

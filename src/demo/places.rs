//! Names for the ids of the demo's world, to make calls and messages readable.

use clew_context::model::UnixMillis;
use clew_simulator::{Id, RequestRecord, World};

/// The most of a message that is quoted, in Unicode scalars.
const QUOTED: usize = 52;

pub(super) fn name(world: &World, user: Id) -> String {
    world
        .get_user(user)
        .map_or_else(|| "somebody".to_owned(), |user| user.name.clone())
}

/// `#pumps`, `#filter-house > "Filter 3"`, `a direct conversation`.
pub(super) fn place(world: &World, channel: Id) -> String {
    let Some(found) = world.get_channel(channel) else {
        return "nowhere".to_owned();
    };
    match (found.parent, found.guild) {
        (Some(parent), _) => format!("{} > \"{}\"", place(world, parent), found.name),
        (None, Some(_)) => format!("#{}", found.name),
        (None, None) => "a direct conversation".to_owned(),
    }
}

/// `Boris: "Head loss is at 47 kPa now."`
pub(super) fn quotation(world: &World, channel: Id, message: Id) -> String {
    let Some(found) = world.message(channel, message) else {
        return "a message that is gone".to_owned();
    };
    let author = match &found.webhook {
        Some(webhook) => webhook.clone(),
        None => name(world, found.author),
    };
    let mut text = readable(world, &found.content);
    if text.is_empty() {
        let titles = found
            .embeds
            .iter()
            .filter_map(|embed| embed["title"].as_str());
        text = titles.collect::<Vec<_>>().join(" ");
    }
    format!("{author}: \"{}\"", short(&text, QUOTED))
}

/// A GET request in words, with its status unless it succeeded.
pub(super) fn call(world: &World, call: &RequestRecord) -> String {
    let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
    let words = match parts.as_slice() {
        ["channels", channel, "messages"] => page(world, id(channel), &call.query),
        ["channels", channel, "messages", "pins"] => {
            format!("the pinned messages of {}", place(world, id(channel)))
        }
        ["channels", channel, "messages", message] => one(world, id(channel), id(message)),
        ["channels", _] => "the channel itself".to_owned(),
        _ => call.path.clone(),
    };
    match call.status {
        Some(200) => words,
        Some(status) => format!("{words} (HTTP {status})"),
        None => format!("{words} (no answer)"),
    }
}

fn page(world: &World, channel: Id, query: &str) -> String {
    let value = |wanted: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(name, value)| (name == wanted).then_some(value))
    };
    let limit = value("limit").unwrap_or("50");
    let place = place(world, channel);
    let edge = |value: &str| {
        let exact = id(value);
        // `before` is exclusive, so `before` the next id means up to the message itself.
        let inclusive = Id(exact.0.saturating_sub(1));
        match world.message(channel, inclusive) {
            Some(_) => format!(", ending at {}", quotation(world, channel, inclusive)),
            None if world.message(channel, exact).is_some() => {
                format!(", before {}", quotation(world, channel, exact))
            }
            // A message of another channel: what was said until then.
            None => String::new(),
        }
    };
    match (value("before"), value("after"), value("around")) {
        (Some(before), _, _) => format!("up to {limit} messages of {place}{}", edge(before)),
        (_, Some(_), _) => format!("up to {limit} messages from the beginning of {place}"),
        (_, _, Some(_)) => format!("up to {limit} messages around one of {place}"),
        _ => format!("the newest {limit} messages of {place}"),
    }
}

fn one(world: &World, channel: Id, message: Id) -> String {
    let place = place(world, channel);
    let quoted = quotation(world, channel, message);
    if world.get_channel(message).is_some() {
        format!("the starter, in {place}: {quoted}")
    } else {
        format!("one message of {place}: {quoted}")
    }
}

fn id(digits: &str) -> Id {
    Id(digits.parse().unwrap_or(0))
}

/// A text with names in its mentions and links, and times of day.
pub(super) fn readable(world: &World, text: &str) -> String {
    let users =
        mentions(text, "<@").map(|(mention, id)| (mention, format!("@{}", name(world, id))));
    let channels = mentions(text, "<#").map(|(mention, id)| (mention, place(world, id)));
    let times = mentions(text, "<t:");
    let times = times.map(|(mention, at)| {
        let ms = i64::try_from(at.0).unwrap_or_default() * 1_000;
        (mention, UnixMillis(ms).clock())
    });
    let all = users.chain(channels).chain(times);
    let named = all.fold(text.to_owned(), |text, (from, to)| text.replace(from, &to));
    linked(world, &named)
}

/// A text that says where its links to messages lead, also those behind numbers.
fn linked(world: &World, text: &str) -> String {
    let mut parts = text.split("https://discord.com/channels/");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', '\n', '>', ')']).unwrap_or(part.len());
        let (ids, mut rest) = part.split_at(end);
        let channel = id(ids.split('/').nth(1).unwrap_or_default());
        let title = shown.trim_end_matches('<').strip_suffix('(');
        if let Some(title) = title.filter(|title| title.ends_with(']')) {
            shown = title.replace("[\\[", "[").replace("\\]]", "]") + " ";
            rest = rest.trim_start_matches('>');
            rest = rest.strip_prefix(')').unwrap_or(rest);
        }
        shown += &format!("(link to a message of {}){rest}", place(world, channel));
    }
    shown
}

/// The thread that a text mentions first.
pub(super) fn thread_in(world: &World, text: &str) -> Option<Id> {
    let mut channels = mentions(text, "<#").filter_map(|(_, id)| world.get_channel(id));
    channels
        .find(|found| found.kind.is_thread())
        .map(|found| found.id)
}

/// The mentions that begin so, with their ids.
fn mentions<'a>(text: &'a str, begin: &'a str) -> impl Iterator<Item = (&'a str, Id)> {
    text.match_indices(begin).filter_map(move |(at, _)| {
        let rest = &text[at + begin.len()..];
        let (inside, _) = rest.split_once('>')?;
        let end = at + begin.len() + inside.len() + 1;
        // A time says how it is shown, too.
        let digits = inside.split(':').next()?;
        Some((&text[at..end], Id(digits.parse().ok()?)))
    })
}

/// Shortens a text after a whole word, to about `most` Unicode scalars.
pub(super) fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most).collect();
    let whole = cut
        .rsplit_once(' ')
        .map_or(cut.as_str(), |(whole, _)| whole);
    format!("{} ...", whole.trim_end_matches([',', ':', '.']))
}

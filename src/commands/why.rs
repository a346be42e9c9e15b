//! `/context why` and the button under answers: what an answer was made from, for those
//! who may read it now.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::call::{Call, run};
use super::definition::Button;
use super::done::{Done, Stop};
use super::readable::{self, Reader};
use super::{CommandServices, words};
use crate::model::{
    Consent, CutBy, LeftOut, PromptReceipt, RECEIPT_BUTTON, ReadSource, Receipt, ShownMessage,
    channel_address, shortened,
};
use clew_context::model::{
    BlockPlace, ChannelId, GuildId, MessageId, OmitReason, Readers, Scene, Stage, Tie,
};
use clew_discord::guild_state::AnswerPlace;
use clew_discord::model::{Answer, AnswerEmbed, OptionSpec};
use clew_store::model::StoredReceipt;

/// An answer; without it the last one here.
pub(super) const ANSWER: OptionSpec =
    OptionSpec::text("answer", "The link or id of an answer of mine", 0, 200);

/// The answer stays: everyone sees it.
pub(super) const BUTTON: Button = Button {
    keeps_message: true,
    ..Button::new(RECEIPT_BUTTON, run!(press))
};

/// The most characters for the links to messages, to what tools read and to what was left
/// out: the other fields fit beside them.
const LINKS_CHARS: usize = 2_500;
const READ_CHARS: usize = 800;
const LEFT_OUT_CHARS: usize = 1_000;
/// The most passages of docs that are named.
const PASSAGES: usize = 6;
/// The most links to what was left out.
const LEFT_OUT_LINKS: usize = 10;
const FULL: &str = "The model's context was full, so caps and history were halved. A higher \
                    LLM_CONTEXT_TOKENS shows more, if the model takes it.";
/// Of an answer that has no receipt, or whose receipt is not for the caller: it reads the
/// same.
const NONE: &str = "No record: it expired, or you can't see that channel.";

/// The last answer here, or the one that is named.
pub(super) async fn why(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let here = call.channel_id();
    let given = call.text(&ANSWER).map(str::trim);
    let receipt = match given.filter(|text| !text.is_empty()) {
        None => services.memory.last_receipt(here, call.caller()).await?,
        Some(text) => {
            let (channel, message) = address(text, here)
                .ok_or_else(|| Stop::refused("That's neither a message's link nor its id."))?;
            services.memory.receipt_of(channel, message).await?
        }
    };
    show(services, call, receipt).await
}

async fn press(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let (here, answer) = (call.channel_id(), call.argument()?);
    let receipt = services.memory.receipt_of(here, answer).await?;
    show(services, call, receipt).await
}

/// A link's channel and message, or a message here by its id.
fn address(text: &str, here: ChannelId) -> Option<(ChannelId, MessageId)> {
    let text = text.trim_matches(['<', '>']);
    let mut parts = text.rsplit('/');
    let message = parts.next()?.parse().ok()?;
    match parts.next() {
        None => Some((here, message)),
        Some(channel) => Some((channel.parse().ok()?, message)),
    }
}

async fn show(
    services: &CommandServices<'_>,
    call: &Call,
    stored: Option<StoredReceipt>,
) -> Result<Done, Stop> {
    let none = || Stop::refused(NONE);
    let reader = Reader::of(services, call, &call.roles);
    let embed = told(&reader, &stored.ok_or_else(none)?).await;
    let embed = embed.ok_or_else(none)?;
    Ok(Done::answer(Answer::default().with_embed(embed)))
}

/// What an answer was made from, for somebody who may read where it stands now.
pub async fn told(reader: &Reader<'_>, stored: &StoredReceipt) -> Option<AnswerEmbed> {
    let mut receipt: Receipt = Receipt::parse(&stored.body)?;
    let is_for_them = !stored.is_private || stored.owner == reader.user;
    if !is_for_them || !may_read(reader, stored).await {
        return None;
    }
    let hidden = hide(reader, stored, &mut receipt);
    Some(embed(stored, &receipt, hidden))
}

/// Whether somebody may read where the answer stands now; direct messages are read by
/// who asked.
async fn may_read(reader: &Reader<'_>, stored: &StoredReceipt) -> bool {
    if stored.guild != reader.guild {
        return false;
    }
    if stored.guild.is_none() {
        return stored.channel == reader.here && stored.owner == reader.user;
    }
    let readable = readable::among(reader, BTreeSet::from([stored.channel])).await;
    readable.contains(&stored.channel)
}

/// Takes out what stands elsewhere and is not for the reader. Returns how much.
fn hide(reader: &Reader<'_>, stored: &StoredReceipt, receipt: &mut Receipt) -> usize {
    let place = AnswerPlace {
        asker: reader.user,
        roles: Some(reader.roles),
        channel: stored.channel,
        is_private: true,
    };
    let is_readable = |channel: ChannelId| {
        let channel = reader.guild_state.channel(channel);
        channel.is_some_and(|one| reader.guild_state.readers(&place, &one) == Readers::Everybody)
    };
    let may_see = |channel: ChannelId| channel == stored.channel || is_readable(channel);
    let before = named(receipt);
    let prompt = &mut receipt.prompt;
    prompt.shown.retain(|message| may_see(message.channel));
    prompt.quoted = prompt.quoted.filter(|message| may_see(message.channel));
    prompt.omitted.retain(|message| may_see(message.channel));
    for read in [&mut receipt.read, &mut receipt.cited] {
        read.retain(|source| may_see(source.channel));
    }
    before - named(receipt)
}

/// How many messages and channels a receipt names.
fn named(receipt: &Receipt) -> usize {
    let prompt = &receipt.prompt;
    let shown = prompt.shown.len() + usize::from(prompt.quoted.is_some());
    shown + prompt.omitted.len() + receipt.read.len()
}

fn embed(stored: &StoredReceipt, receipt: &Receipt, hidden: usize) -> AnswerEmbed {
    let prompt = &receipt.prompt;
    let guild = stored.guild;
    let fields = [
        ("Question and answer", about(stored, receipt)),
        ("Left out", left_out(guild, prompt, receipt.scene)),
        ("Not read", missing(receipt)),
        ("Calls to Discord", calls(receipt, hidden)),
        ("Tools", tools(receipt)),
        ("Remembered", remembered(prompt)),
        ("Documents", documents(prompt)),
        ("Model", model(receipt)),
    ];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    AnswerEmbed {
        title: "What this answer was made from".to_owned(),
        description: shown(guild, prompt)
            + &read(guild, "Cited", &receipt.cited)
            + &read(guild, "Read by tools", &receipt.read),
        fields: fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        footer: match hidden {
            0 => String::new(),
            hidden => format!(
                "{} not shown: you can't read where they are.",
                words::count(hidden, "message")
            ),
        },
    }
}

/// A link to a message of a server, or of direct messages.
fn link(guild: Option<GuildId>, words: &str, channel: ChannelId, message: MessageId) -> String {
    let channel = channel_address(guild, channel);
    format!("[{words}]({channel}/{message})")
}

fn about(stored: &StoredReceipt, receipt: &Receipt) -> String {
    let (guild, here) = (stored.guild, stored.channel);
    let to = |words, id: Option<MessageId>| id.map(|id| link(guild, words, here, id));
    let parts = [
        to("question", stored.trigger),
        to("answer", stored.messages.first().copied()),
        to("replies to", receipt.target),
        Some(words::moment(stored.at)),
        Some(scene(receipt.scene).to_owned()),
        receipt
            .agent
            .as_ref()
            .map(|agent| format!("agent `{agent}`")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

const fn scene(scene: Scene) -> &'static str {
    match scene {
        Scene::Thread => "in a thread",
        Scene::ReplyChain => "a reply",
        Scene::Direct => "a direct message",
        Scene::Lone => "a message by itself",
    }
}

/// The messages of the prompt as numbered links, by why they are there. If there are too
/// many, the oldest that nothing points at are counted instead.
fn shown(guild: Option<GuildId>, prompt: &PromptReceipt) -> String {
    let all: Vec<&ShownMessage> = prompt.shown.iter().chain(&prompt.quoted).collect();
    let numbered = (1..).zip(&all).map(|(number, message)| {
        let number = number.to_string();
        (*message, link(guild, &number, message.channel, message.id))
    });
    let mut numbered: Vec<(&ShownMessage, String)> = numbered.collect();
    numbered.sort_by_key(|(message, _)| (!message.place.is_named(), std::cmp::Reverse(message.id)));
    let fitting = fitting(LINKS_CHARS, numbered.iter().map(|(_, link)| link));
    let rest = numbered.len() - fitting;
    numbered.truncate(fitting);
    numbered.sort_by_key(|(message, _)| message.id);
    let mut places: BTreeMap<BlockPlace, Vec<String>> = BTreeMap::new();
    for (message, link) in numbered {
        places.entry(message.place).or_default().push(link);
    }
    let mut text = format!("{} read", words::count(all.len(), "message"));
    for (place, links) in places {
        text.push_str(&format!("\n**{}** {}", title(place), links.join(" ")));
    }
    if prompt.topic > 0 {
        text.push_str(&format!("\n**Topic** {} characters", prompt.topic));
    }
    if rest > 0 {
        text.push_str(&format!("\nand {}", words::count(rest, "older message")));
    }
    text
}

const fn title(place: BlockPlace) -> &'static str {
    match place {
        BlockPlace::Starter => "Starter",
        BlockPlace::PointedAt => "Pointed at",
        BlockPlace::Target => "Replied to",
        BlockPlace::Tail => "Right before",
        BlockPlace::History => "Earlier",
        BlockPlace::Chain => "Chain of replies",
        BlockPlace::Linked => "Linked",
        BlockPlace::LinkContext => "Around what is linked",
        BlockPlace::Pinned => "Pinned",
        BlockPlace::Conversation(Tie::Reply) => "In your conversation by a reply",
        BlockPlace::Conversation(Tie::Named) => "In your conversation, named",
        BlockPlace::Conversation(Tie::Answers) => "In your conversation, answers",
        BlockPlace::Conversation(Tie::SameTopic) => "In your conversation, same topic",
    }
}

/// How many for each reason, links to the newest, and the setting that shows the most of them.
pub fn left_out(guild: Option<GuildId>, prompt: &PromptReceipt, scene: Scene) -> String {
    let line = |one: &LeftOut| {
        let reason = one.reason.in_scene(Some(scene));
        format!("{} {}", one.all, reason.text())
    };
    let mut lines: Vec<String> = prompt.left_out.iter().map(line).collect();
    let shortened = prompt.shortened.iter();
    let cut = shortened.map(|(cap, count)| format!("{count} shortened, {}", cap.text()));
    let cut: Vec<String> = cut.collect();
    let advice = advice(prompt, scene);
    let told = lines.iter().chain(&cut).chain(&advice);
    let told = told.map(|line| line.len() + 2);
    let mut room = LEFT_OUT_CHARS.saturating_sub(told.sum());
    let newest = (1..=LEFT_OUT_LINKS).zip(prompt.omitted.iter().rev());
    for (number, message) in newest {
        let link = link(guild, &number.to_string(), message.channel, message.id);
        let mut reasons = prompt.left_out.iter();
        let at = reasons.position(|one| one.reason == message.reason);
        let line = at.and_then(|at| lines.get_mut(at));
        let Some((line, left)) = line.zip(room.checked_sub(link.len() + 1)) else {
            continue;
        };
        room = left;
        line.push(' ');
        line.push_str(&link);
    }
    lines.extend(cut.into_iter().chain(advice));
    lines.join("\n")
}

/// The setting that shows more: the cap that binds, unless all were halved for the model.
fn advice(prompt: &PromptReceipt, scene: Scene) -> Option<String> {
    if prompt.halvings > 0 {
        return Some(FULL.to_owned());
    }
    let caps = prompt.left_out.iter().filter_map(|one| {
        let reason = one.reason.in_scene(Some(scene));
        Some(((binds(reason), one.all), reason.setting()?))
    });
    let (_, setting) = caps.max_by_key(|(rank, _)| *rank)?;
    Some(format!("A higher {setting} shows more."))
}

/// Which cap shows more if it is raised: the last one of those that are applied one after the
/// other, age, count, characters.
const fn binds(reason: OmitReason) -> u8 {
    match reason {
        OmitReason::Chars | OmitReason::LoneChars => 2,
        OmitReason::Msgs => 1,
        _ => 0,
    }
}

/// Links to what the tools read, a line for all; those beyond the room are counted.
fn read(guild: Option<GuildId>, title: &str, sources: &[ReadSource]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    let numbered = (1..).zip(sources);
    let linked = numbered.map(|(number, source)| match source.message {
        Some(message) => link(guild, &number.to_string(), source.channel, message),
        None => format!("[{number}]({})", channel_address(guild, source.channel)),
    });
    let linked: Vec<String> = linked.collect();
    let shown = &linked[..fitting(READ_CHARS, &linked)];
    let more = match linked.len() - shown.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!("\n**{title}** {}{more}", shown.join(" "))
}

/// How many of the links fit, with a space after each.
fn fitting<'a>(mut room: usize, links: impl IntoIterator<Item = &'a String>) -> usize {
    let fits = |link: &&String| {
        let fits = link.len() < room;
        room = room.saturating_sub(link.len() + 1);
        fits
    };
    links.into_iter().take_while(fits).count()
}

fn missing(receipt: &Receipt) -> String {
    let lines = receipt.missing.iter().map(|(stage, why)| match stage {
        Stage::Link => "link: closed".to_owned(),
        stage => format!("{}: {why}", stage.as_str()),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Calls for a link that is closed, to the asker or to the caller, would tell whether
/// there is anything behind it.
fn calls(receipt: &Receipt, hidden: usize) -> String {
    let took = receipt.collected_in.as_millis();
    let mut missing = receipt.missing.iter();
    let is_closed = hidden > 0 || missing.any(|(stage, _)| *stage == Stage::Link);
    let told = receipt.collectors.iter();
    let told = told.filter(|one| !is_closed || one.stage != Stage::Link);
    let each = told.map(|one| {
        let (stage, fetches) = (one.stage.as_str(), one.fetches);
        format!("{stage}: {fetches} in {} ms", one.took.as_millis())
    });
    let mut lines: Vec<String> = each.collect();
    if lines.is_empty() {
        lines.push("none".to_owned());
    }
    lines.push(format!("{took} ms in all"));
    lines.join("\n")
}

/// Each tool once, with all its calls; those of servers by how they came about.
fn tools(receipt: &Receipt) -> String {
    let mut called: BTreeMap<(&str, Option<Consent>), (usize, Duration)> = BTreeMap::new();
    for one in &receipt.tools {
        let (count, took) = called
            .entry((one.name.as_deref().unwrap_or("unknown"), one.consent))
            .or_default();
        *count += 1;
        *took += one.took;
    }
    let lines = called.into_iter().map(|((name, consent), (count, took))| {
        let calls = words::count(count, "call");
        let consent = consent.map(|word| format!(", {}", word.as_str().replace('_', " ")));
        let consent = consent.unwrap_or_default();
        format!("`{name}`: {calls} in {} ms{consent}", took.as_millis())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn remembered(prompt: &PromptReceipt) -> String {
    let counted = [
        (prompt.history, "message", " of our conversation"),
        (
            prompt.recalled,
            "message",
            " from earlier in it, found by the question",
        ),
        (prompt.user_facts, "fact", " about the asker"),
        (prompt.server_facts, "fact", " about this server"),
        (
            prompt.server_prompt,
            "character",
            " of this server's own instructions",
        ),
    ];
    let counted = counted.into_iter().filter(|(count, ..)| *count > 0);
    let lines = counted.map(|(count, what, of)| words::count(count, what) + of);
    lines.collect::<Vec<_>>().join("\n")
}

/// The passages of the agent's docs; those beyond the room are counted.
fn documents(prompt: &PromptReceipt) -> String {
    let titles = prompt.passages.iter().take(PASSAGES);
    let mut lines: Vec<String> = titles.map(|title| shortened(title, 80)).collect();
    let rest = prompt.passages.len() - lines.len();
    lines.extend((rest > 0).then(|| format!("and {rest} more")));
    lines.join("\n")
}

fn model(receipt: &Receipt) -> String {
    let Some(model) = &receipt.model else {
        return format!("none · {} ms in all", receipt.took.as_millis());
    };
    let tokens = (model.prompt_tokens, model.completion_tokens);
    let tokens = (tokens != (0, 0)).then(|| format!("{} + {} tokens", tokens.0, tokens.1));
    let server = (model.server > 1).then(|| format!("server {}", model.server));
    let images = model.images;
    let images = (images.count > 0).then(|| {
        let count = words::count(images.count, "image");
        format!("{count} of {} kB", images.bytes.div_ceil(1_000))
    });
    let first = model.first_words;
    let first = first.map(|first| format!("first words after {} ms", first.as_millis()));
    let parts = [
        Some(format!("`{}`", model.name)),
        server,
        images,
        tokens,
        first,
        model.cut_by.map(cut_by),
        Some(format!("{} ms in all", receipt.took.as_millis())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn cut_by(cut: CutBy) -> String {
    let by = match cut {
        CutBy::Tokens => "the model's token limit",
        CutBy::Filter => "its content filter",
        CutBy::Length => "its length",
    };
    format!("cut off by {by}")
}

#[cfg(test)]
mod tests;

//! `/settings show|set|prompt|limits`: how the bot behaves in a server. Needs Manage Server.

use std::collections::BTreeSet;

use super::call::{Call, run};
use super::definition::{Action, Command, Section};
use super::done::{Done, Stop};
use super::server_memory::managed;
use super::{CommandServices, words};
use clew_context::model::{
    ChannelId, ChannelMode, LinkContext, LoneContext, PlaceContext, ReplyTarget, RoleId,
};
use clew_discord::model::{CommandData, OptionKind, OptionSpec};
use clew_store::model::{Change, GuildSettings, RoleLimits, SettingsChange};

pub(super) const SETTINGS: Command = Command {
    servers_only: true,
    manage_server: true,
    help: Some((
        Section::Server,
        "`/settings show` · `/settings set` · `/settings prompt` · `/settings limits`",
    )),
    ..Command::subs(
        "settings",
        "How I behave in this server",
        &[
            Action::new("show", "Show the settings", run!(show)),
            Action::new("set", "Change what is given, leave the rest", run!(set)).options(&[
                WINDOW, CHANNEL, MODE, TARGET, LEARNING, LINKS, LONE, PLACE, BUTTONS, PROGRAMS,
            ]),
            Action::new("prompt", "What I am told in this server", run!(prompt)).options(&[TEXT]),
            Action::new(
                "limits",
                "What a role may use; left out: as the operator set it",
                run!(limits),
            )
            .options(&[ROLE, QUESTIONS, TOKENS]),
        ],
    )
};

const WINDOW: OptionSpec = OptionSpec::text(
    "rolling-window",
    "How long I remember: 90m, 12h or 7d, at most 365d; default: as the operator set it",
    0,
    20,
);
const CHANNEL: OptionSpec = OptionSpec::new(
    "channel",
    "Together with mode or lone-context: the channel it is for",
    OptionKind::Channel,
);
const MODE: OptionSpec = OptionSpec::new(
    "mode",
    "Together with channel: what I answer there",
    OptionKind::Choice(&[
        ("Mentions and replies", "mentions"),
        ("Every message", "everything"),
        ("Nothing", "off"),
    ]),
);
const TARGET: OptionSpec = OptionSpec::new(
    "reply-target",
    "What my answers in threads reply to",
    OptionKind::Choice(&[
        ("The newest message", "newest"),
        ("The message that asked", "trigger"),
        OPERATORS,
    ]),
);
const LEARNING: OptionSpec = OptionSpec::new(
    "learning",
    "Whether I learn facts from conversations",
    OptionKind::Choice(&[("Yes", "on"), ("No", "off"), OPERATORS]),
);
const LINKS: OptionSpec = OptionSpec::text(
    "link-context",
    "How many messages before and after a linked one I read, such as 3,1; at most 10 each; or default",
    0,
    20,
);
const LONE: OptionSpec = OptionSpec::new(
    "lone-context",
    "What I read of a channel when I am mentioned there outside threads",
    OptionKind::Choice(&[
        ("Nothing", "off"),
        ("The last messages", "recent"),
        ("What belongs to the asker's conversation", "conversation"),
        OPERATORS,
    ]),
);
const PLACE: OptionSpec = OptionSpec::new(
    "place-context",
    "What I read of the channel itself",
    OptionKind::Choice(&[
        ("Nothing", "off"),
        ("Its topic or guidelines", "topic"),
        ("That, and pinned messages", "topic,pins"),
        OPERATORS,
    ]),
);
const BUTTONS: OptionSpec = OptionSpec::new(
    "buttons",
    "Whether my answers have buttons to stop, regenerate and continue them",
    OptionKind::Choice(&[("Yes", "on"), ("No", "off")]),
);
const PROGRAMS: OptionSpec = OptionSpec::new(
    "programs",
    "Whether members may have programs of theirs read what they may read (/connect)",
    OptionKind::Choice(&[("Yes", "on"), ("No", "off")]),
);
const TEXT: OptionSpec = OptionSpec::text(
    "text",
    "Instructions for me in this server, \\n for a new line; left out: none",
    0,
    2_000,
);
const ROLE: OptionSpec = OptionSpec::new("role", "Whose members", OptionKind::Role).required();
const QUESTIONS: OptionSpec = OptionSpec::text("questions", "Questions a minute, 1 to 1000", 0, 4);
const TOKENS: OptionSpec = OptionSpec::text("tokens", "The model's tokens a day", 0, 13);
/// The choice that resets a setting.
const OPERATORS: (&str, &str) = ("As the operator set it", "default");

/// The most characters in a list of channels: of an embed's 6,000 the rest may take 5,000.
const CHANNELS_CHARS: usize = 500;

async fn show(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let settings = services.memory.guild_settings(managed(call)?);
    Ok(shown(
        "How I behave in this server",
        services,
        call,
        &settings,
    ))
}

async fn set(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let change = change(&call.data).map_err(Stop::refused)?;
    let guild = managed(call)?;
    let settings = services.memory.change_settings(guild, &change).await?;
    let title = "Changed. This is how I behave in this server from now on";
    Ok(shown(title, services, call, &settings))
}

/// Discord's options are one line: `\n` stands for a new one.
async fn prompt(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let guild = managed(call)?;
    let text = call.text(&TEXT).unwrap_or_default().replace("\\n", "\n");
    let text = text.trim();
    if text.chars().count() > GuildSettings::MOST_PROMPT {
        let most = GuildSettings::MOST_PROMPT;
        return Err(Stop::refused(format!(
            "`text` is at most {most} characters long."
        )));
    }
    let before = services.memory.guild_settings(guild);
    let change = SettingsChange {
        prompt: match text {
            "" => Change::Unset,
            text => Change::Set(text.to_owned()),
        },
        ..SettingsChange::default()
    };
    let after = services.memory.change_settings(guild, &change).await?;
    let told = |title, prompt| Done::described(title, prompt, Vec::new());
    Ok(match (&after.prompt, &before.prompt) {
        (Some(prompt), _) => told("In this server I am told, too", prompt),
        (None, Some(prompt)) => told("In this server I am no longer told", prompt),
        (None, None) => Done::say("In this server I am told nothing of its own."),
    })
}

/// Never above the operator's; whoever has several of the roles gets the most that one allows.
/// Roles that are gone have none any more.
async fn limits(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let guild = managed(call)?;
    let role = call.data.id(&ROLE);
    let role: RoleId = role.ok_or_else(|| Stop::refused("Say which role."))?;
    let number = |option, most: u64| match call.text(option) {
        None => Ok(None),
        Some(text) => match text.trim().parse::<u64>() {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let name = option.name;
                Err(Stop::refused(format!(
                    "`{name}` is a number from 1 to {most}."
                )))
            }
        },
    };
    let questions = number(&QUESTIONS, 1_000)?;
    let limits = RoleLimits {
        questions: questions.and_then(|most| u32::try_from(most).ok()),
        tokens: number(&TOKENS, 1_000_000_000_000)?,
    };
    let memory = services.memory;
    let mut settings = memory.guild_settings(guild);
    let known = settings.role_limits.clone().into_keys();
    let gone = known.filter(|role| services.guild_state.lacks_role(guild, *role));
    let changes = gone.map(|role| (role, RoleLimits::default()));
    for change in changes.chain([(role, limits)]) {
        let change = SettingsChange {
            role_limits: Some(change),
            ..SettingsChange::default()
        };
        settings = memory.change_settings(guild, &change).await?;
    }
    if limits != RoleLimits::default() && !settings.role_limits.contains_key(&role) {
        let most = GuildSettings::MOST_ROLES;
        return Err(Stop::refused(format!(
            "At most {most} roles can have limits."
        )));
    }
    Ok(Done::fields("Changed", by_role(&settings)))
}

/// In as many fields as it takes.
fn by_role(settings: &GuildSettings) -> Vec<(&'static str, String)> {
    const TITLE: &str = "Limits by role, within the operator's";
    let told = settings.role_limits.iter().map(|(role, limits)| {
        let questions = limits
            .questions
            .map(|most| format!("{most} questions a minute"));
        let tokens = limits.tokens.map(|most| format!("{most} tokens a day"));
        let both: Vec<String> = questions.into_iter().chain(tokens).collect();
        format!("<@&{role}>: {}", both.join(", "))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return vec![(TITLE, "none of its own".to_owned())];
    }
    let fields = told.chunks(GuildSettings::MOST_ROLES / 2);
    fields.map(|lines| (TITLE, lines.join("\n"))).collect()
}

/// All settings. The server's instructions are longer than a field may be.
fn shown(
    title: &str,
    services: &CommandServices<'_>,
    call: &Call,
    settings: &GuildSettings,
) -> Done {
    let description = settings
        .prompt
        .as_ref()
        .map(|prompt| format!("I am told:\n{prompt}"));
    let fields = fields(services, call, settings);
    Done::described(title, &description.unwrap_or_default(), fields)
}

/// The change asked for, or what is wrong with the options together.
fn change(options: &CommandData) -> Result<SettingsChange, &'static str> {
    let mode = options.text(&MODE).map(|word| match word {
        "mentions" => ChannelMode::Mentions,
        "everything" => ChannelMode::Everything,
        _ => ChannelMode::Off,
    });
    let channel = options.channel(&CHANNEL);
    let lone_context = changed(options, &LONE, |word| match word {
        "recent" => Some(LoneContext::Recent),
        "conversation" => Some(LoneContext::Conversation),
        _ => Some(LoneContext::Off),
    })
    .unwrap_or_default();
    if channel.is_none() && mode.is_some() {
        return Err("`mode` needs `channel` with it: which channel is it for?");
    }
    if channel.is_some() && mode.is_none() && lone_context == Change::Keep {
        return Err("`channel` needs `mode` or `lone-context` with it: what changes there?");
    }
    let (lone_context, lone_context_in) = match channel {
        Some(channel) => (Change::Keep, Some((channel, lone_context))),
        None => (lone_context, None),
    };
    let change = SettingsChange {
        rolling_window: changed(options, &WINDOW, words::read_span).ok_or(
            "`rolling-window` is a time such as `90m`, `12h` or `7d`, from a minute to 365 days, \
             or `default` for the operator's.",
        )?,
        channel: channel.zip(mode),
        reply_target: changed(options, &TARGET, |word| match word {
            "newest" => Some(ReplyTarget::Newest),
            _ => Some(ReplyTarget::Trigger),
        })
        .unwrap_or_default(),
        learning: changed(options, &LEARNING, |word| Some(word == "on")).unwrap_or_default(),
        link_context: changed(options, &LINKS, LinkContext::parse).ok_or(
            "`link-context` is two numbers such as `3,1`, each at most 10: how many messages \
             before and after a linked one I read; or `default` for the operator's.",
        )?,
        lone_context,
        lone_context_in: lone_context_in.filter(|(_, change)| *change != Change::Keep),
        place_context: changed(options, &PLACE, PlaceContext::from_word).unwrap_or_default(),
        buttons: changed(options, &BUTTONS, |word| Some(word == "on")).unwrap_or_default(),
        programs: changed(options, &PROGRAMS, |word| Some(word == "on")).unwrap_or_default(),
        ..SettingsChange::default()
    };
    if change == SettingsChange::default() {
        return Err("Say what to change: give at least one option.");
    }
    Ok(change)
}

/// What to do with a setting; none if its text cannot be read.
fn changed<T>(
    options: &CommandData,
    option: &OptionSpec,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Change<T>> {
    match options.text(option) {
        None => Some(Change::Keep),
        Some("default") => Some(Change::Unset),
        Some(text) => read(text).map(Change::Set),
    }
}

/// The settings in effect, and whether they were set here.
fn fields(
    services: &CommandServices<'_>,
    call: &Call,
    settings: &GuildSettings,
) -> Vec<(&'static str, String)> {
    let operators = services.memory.settings();
    let target = settings.reply_target.unwrap_or(services.reply_target);
    let learning = match (operators.learn, settings.learning.unwrap_or(true)) {
        (true, true) => "on",
        (true, false) => "off",
        (false, true) => "off: the operator switched it off for all servers",
        (false, false) => "off, for all servers too",
    };
    let here = |value: &str, is_set: bool| {
        let source = if is_set { "" } else { " (not set here)" };
        format!("{value}{source}")
    };
    let all_of = |channels| listed(channels, CHANNELS_CHARS);
    let target = match target {
        ReplyTarget::Newest => "the newest message",
        ReplyTarget::Trigger => "the message that asked",
    };
    let links = settings.link_context;
    let links = around(links.unwrap_or(services.limits.link_context));
    let lone = lone(services, settings);
    let place = settings.place_context;
    let place = match place.unwrap_or(services.limits.place_context) {
        PlaceContext::Off => "nothing",
        PlaceContext::Topic => "its topic",
        PlaceContext::TopicPins => "its topic and pinned messages",
    };
    let on = |set| if set == Some(true) { "on" } else { "off" }.to_owned();
    let mut fields = vec![
        (
            "I remember a conversation for",
            window(services, call, settings),
        ),
        (
            "My answers in threads reply to",
            here(target, settings.reply_target.is_some()),
        ),
        (
            "Learning from conversations",
            here(learning, settings.learning.is_some()),
        ),
        (
            "With a linked message I read",
            here(&links, settings.link_context.is_some()),
        ),
        (
            "Mentioned outside threads I read",
            here(&lone, settings.lone_context.is_some()),
        ),
        (
            "Of the channel itself I read",
            here(place, settings.place_context.is_some()),
        ),
        ("Buttons under my answers", on(settings.buttons)),
        ("Programs of members read", on(settings.programs)),
        ("I am silent in", all_of(&settings.channels_off)),
        (
            "I answer every message in",
            all_of(&settings.channels_answered),
        ),
    ];
    fields.extend(by_role(settings));
    fields
}

/// The rolling window. The server's takes precedence over the agent's, and
/// that over the operator's; a window that is overridden is shown as well.
fn window(services: &CommandServices<'_>, call: &Call, settings: &GuildSettings) -> String {
    let operators = words::span(services.memory.settings().rolling_window);
    let agent = services.agents.pick(call.channel_id(), call.parent());
    let own = agent.and_then(|agent| Some((agent.rolling_window?, agent)));
    let own = own.map(|(window, agent)| (words::span(window), agent.name.to_string()));
    match (settings.rolling_window.map(words::span), own) {
        (None, None) => format!("{operators} (not set here)"),
        (None, Some((own, agent))) => {
            format!(
                "{own}, as the agent `{agent}` in this channel has it; elsewhere {operators} (not set here)"
            )
        }
        (Some(set), None) => set,
        (Some(set), Some((own, agent))) => format!(
            "{set}, and not the {own} that the agent `{agent}` in this channel has by itself: \
             `rolling-window:default` gives it that back"
        ),
    }
}

fn around(LinkContext { before, after }: LinkContext) -> String {
    format!("{before} before and {after} after it")
}

/// What a lone mention gets in the server, and in the channels that have it otherwise.
fn lone(services: &CommandServices<'_>, settings: &GuildSettings) -> String {
    let words = |context| match context {
        LoneContext::Off => "only the question",
        LoneContext::Recent => "the last messages of the channel too",
        LoneContext::Conversation => "what belongs to the asker's conversation too",
    };
    let operators = services.limits.lone_context;
    let mut told = words(settings.lone_context.unwrap_or(operators)).to_owned();
    let all = [
        LoneContext::Off,
        LoneContext::Recent,
        LoneContext::Conversation,
    ];
    for context in all {
        let channels = settings.lone_contexts.iter();
        let channels = channels.filter(|(_, one)| **one == context);
        let channels: BTreeSet<ChannelId> = channels.map(|(channel, _)| *channel).collect();
        if !channels.is_empty() {
            let listed = listed(&channels, CHANNELS_CHARS / 4);
            told.push_str(&format!("; in {listed} {}", words(context)));
        }
    }
    told
}

/// In about so many characters at most.
fn listed(channels: &BTreeSet<ChannelId>, chars: usize) -> String {
    if channels.is_empty() {
        return "no channel".to_owned();
    }
    let mut text = String::new();
    for (at, channel) in channels.iter().enumerate() {
        if text.len() > chars {
            text.push_str(&format!(" and {} more", channels.len() - at));
            break;
        }
        let gap = if at > 0 { ", " } else { "" };
        text.push_str(&format!("{gap}<#{channel}>"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use clew_discord::model::OptionValue;

    #[track_caller]
    fn check(options: &[(&str, &str)], expected: Result<SettingsChange, &str>) {
        let text = |(name, text): &(&str, &str)| {
            ((*name).to_owned(), OptionValue::Text((*text).to_owned()))
        };
        let options = CommandData {
            options: options.iter().map(text).collect(),
            ..CommandData::default()
        };
        match (change(&options), expected) {
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (found, expected) => assert_eq!(found, expected),
        }
    }

    #[test]
    fn a_window_is_a_time_up_to_a_year() {
        for (text, seconds) in [("1m", 60), ("36", 129_600), ("365d", 31_536_000)] {
            let change = SettingsChange {
                rolling_window: Change::Set(Duration::from_secs(seconds)),
                ..SettingsChange::default()
            };
            check(&[("rolling-window", text)], Ok(change));
        }
        for text in ["", "0", "366d"] {
            check(&[("rolling-window", text)], Err("is a time such as"));
        }
    }

    #[test]
    fn settings_are_read_together() {
        let back = [
            "rolling-window",
            "reply-target",
            "learning",
            "link-context",
            "lone-context",
            "place-context",
        ];
        let unset = SettingsChange {
            rolling_window: Change::Unset,
            channel: None,
            reply_target: Change::Unset,
            learning: Change::Unset,
            link_context: Change::Unset,
            lone_context: Change::Unset,
            place_context: Change::Unset,
            ..SettingsChange::default()
        };
        check(&back.map(|name| (name, "default")), Ok(unset));
        let (channel, mode) = (("channel", "42"), ("mode", "off"));
        check(&[channel], Err("`channel` needs `mode` or `lone-context`"));
        let there = |lone_context| SettingsChange {
            lone_context_in: Some((ChannelId::new(42), lone_context)),
            ..SettingsChange::default()
        };
        let recent = Change::Set(LoneContext::Recent);
        check(&[channel, ("lone-context", "recent")], Ok(there(recent)));
        let back = ("lone-context", "default");
        check(&[channel, back], Ok(there(Change::Unset)));
        let both = SettingsChange {
            channel: Some((ChannelId::new(42), ChannelMode::Off)),
            ..there(recent)
        };
        check(&[channel, mode, ("lone-context", "recent")], Ok(both));
        check(&[mode], Err("`mode` needs `channel`"));
        check(&[], Err("Say what to change"));
        let change = SettingsChange {
            rolling_window: Change::Keep,
            channel: Some((ChannelId::new(42), ChannelMode::Off)),
            reply_target: Change::Set(ReplyTarget::Trigger),
            learning: Change::Set(false),
            link_context: Change::Keep,
            ..SettingsChange::default()
        };
        let rest = [("reply-target", "trigger"), ("learning", "off")];
        check(&[channel, mode, rest[0], rest[1]], Ok(change));
        let change = SettingsChange {
            link_context: Change::Set(LinkContext {
                before: 0,
                after: 10,
            }),
            lone_context: Change::Set(LoneContext::Recent),
            place_context: Change::Set(PlaceContext::TopicPins),
            ..SettingsChange::default()
        };
        let place = ("place-context", "topic,pins");
        let read = [("link-context", "0, 10"), ("lone-context", "recent"), place];
        check(&read, Ok(change));
        for text in ["", "3", "3,11", "-1,1", "3;1", "a,b"] {
            check(&[("link-context", text)], Err("is two numbers"));
        }
    }

    #[test]
    fn choices_of_words_are_read() {
        let change = SettingsChange {
            channel: Some((ChannelId::new(42), ChannelMode::Everything)),
            reply_target: Change::Set(ReplyTarget::Newest),
            learning: Change::Set(true),
            buttons: Change::Set(false),
            programs: Change::Set(true),
            ..SettingsChange::default()
        };
        let words = [
            ("channel", "42"),
            ("mode", "everything"),
            ("reply-target", "newest"),
            ("learning", "on"),
            ("buttons", "off"),
            ("programs", "on"),
        ];
        check(&words, Ok(change));
    }
}

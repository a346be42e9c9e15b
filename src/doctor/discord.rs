//! The token, the intents, the servers and the clock, as Discord's REST API tells them.

use std::time::Duration;

use tokio::time::Instant;

use super::{Finding, proxies};
use crate::app::system_clock;
use crate::config::{Config, Endpoint, MessageContent};
use clew_context::discord::error::RestError;
use clew_discord::invite;
use clew_discord::rest::{Application, OwnGuild, Rest};

/// How long each request may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// In so many servers each channel is looked at; of the others only our roles.
const MAX_SURVEYED: usize = 20;
/// So many findings about servers are told one by one.
const MAX_SERVERS: usize = 50;
/// So many channels are named.
const MAX_NAMED: usize = 5;
/// With less of a day's session starts left, a crash loop may have used them up.
const FEW_STARTS: u32 = 50;
/// What to do while Discord does not answer.
const TRY_AGAIN: &str = "try again: Discord's status is at https://discordstatus.com";

/// Ids tell the time of messages; a clock that is further off makes ages wrong.
const MAX_SKEW: Duration = Duration::from_secs(5);

pub(super) async fn look(config: &Config, tell: &mut dyn FnMut(Finding)) {
    let (rest, application) = match application(config).await {
        Ok(accepted) => accepted,
        Err(finding) => return tell(finding),
    };
    let findings = of_application(config, &application).into_iter();
    findings.for_each(&mut *tell);
    tell(session_starts(&rest).await);
    tell(clock(&rest).await);
    servers(config, &rest, &application, tell).await;
}

/// The application behind the token.
pub(super) async fn application(config: &Config) -> Result<(Rest, Application), Finding> {
    let rest = rest(config)?;
    let application = rest.application(soon()).await.map_err(refused)?;
    Ok((rest, application))
}

/// How many sessions may still be started today; none if Discord does not tell.
pub(super) async fn starts_left(config: &Config) -> Option<u32> {
    let info = rest(config).ok()?.gateway(soon()).await;
    Some(info.ok()?.session_start_limit.remaining)
}

fn rest(config: &Config) -> Result<Rest, Finding> {
    let Some(token) = &config.discord.token else {
        let remedy = "set DISCORD_TOKEN to the bot's token (developer portal, Bot, Reset Token)";
        return Err(Finding::failed("token", "DISCORD_TOKEN is not set", remedy));
    };
    let api = config.discord.api.as_ref().map(Endpoint::url);
    Rest::new(token.expose(), api.as_deref()).map_err(|error| {
        let remedy = "copy the token again from the developer portal, or correct DISCORD_API_URL";
        Finding::failed("token", error.to_string(), remedy)
    })
}

/// What is to be said of an application.
pub(super) fn of_application(config: &Config, application: &Application) -> Vec<Finding> {
    let Application { id, name, .. } = application;
    let token = Finding::ok("token", format!("{name}, application {id}"));
    vec![token, intents(config, application)]
}

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

fn refused(error: RestError) -> Finding {
    let remedy = if error.unauthorized {
        "Discord refuses it: make a new one (developer portal, Bot, Reset Token) and set DISCORD_TOKEN"
    } else {
        "see whether https://discord.com can be reached from here, or correct DISCORD_API_URL"
    };
    Finding::failed("token", error.to_string(), remedy)
}

/// The portal's switches, which the gateway goes by.
fn intents(config: &Config, application: &Application) -> Finding {
    let id = application.id;
    let wanted = [
        (
            config.discord.message_content == MessageContent::Required,
            application.has_message_content,
            "Message Content Intent",
            "DISCORD_MESSAGE_CONTENT=off",
        ),
        (
            config.discord.members_intent,
            application.has_members,
            "Server Members Intent",
            "DISCORD_MEMBERS_INTENT=false",
        ),
    ];
    for (is_wanted, is_granted, name, without) in wanted {
        if is_wanted && !is_granted {
            let remedy = format!(
                "switch it on at https://discord.com/developers/applications/{id}/bot, or set {without}"
            );
            return Finding::failed("intents", format!("{name} is off"), remedy);
        }
    }
    Finding::ok("intents", "granted as the settings ask")
}

async fn session_starts(rest: &Rest) -> Finding {
    let limit = match rest.gateway(soon()).await {
        Ok(info) => info.session_start_limit,
        Err(error) => return Finding::failed("gateway", error.to_string(), TRY_AGAIN),
    };
    let (left, total, hours) = (limit.remaining, limit.total, limit.reset_after / 3_600_000);
    if left >= FEW_STARTS {
        return Finding::ok("gateway", format!("{left} of {total} session starts left"));
    }
    let found = format!("{left} session starts left of {total} today");
    let remedy = format!(
        "find out what restarts the bot; there are new ones in {hours} h, and with none left \
         Discord resets the token"
    );
    Finding::warning("gateway", found, remedy)
}

async fn clock(rest: &Rest) -> Finding {
    match rest.server_time(soon()).await {
        Ok(theirs) => {
            let ours = system_clock()();
            let skew = Duration::from_millis(ours.0.abs_diff(theirs.0));
            // The header has whole seconds.
            let seconds = skew.as_secs();
            if skew > MAX_SKEW {
                let found = format!("{seconds} s off Discord's");
                let remedy =
                    "let the machine keep its time by NTP: ages of messages are measured by it";
                Finding::warning("clock", found, remedy)
            } else {
                Finding::ok("clock", "agrees with Discord's")
            }
        }
        Err(error) => {
            let found = format!("not compared: {error}");
            Finding::warning("clock", found, "compare it with another machine's")
        }
    }
}

async fn servers(
    config: &Config,
    rest: &Rest,
    application: &Application,
    tell: &mut dyn FnMut(Finding),
) {
    let guilds = match rest.own_guilds(soon()).await {
        Ok(guilds) => guilds,
        Err(error) => return tell(Finding::failed("server", error.to_string(), TRY_AGAIN)),
    };
    if guilds.is_empty() {
        let remedy = format!("invite the bot: {}", invite(application.id));
        let found = "the bot is in no server";
        tell(Finding::warning("server", found, remedy));
    }
    for (nth, guild) in guilds.iter().take(MAX_SERVERS).enumerate() {
        let survey = nth < MAX_SURVEYED;
        tell(server(rest, application, guild, survey).await);
    }
    let more = guilds.len().saturating_sub(MAX_SERVERS);
    if more > 0 {
        tell(Finding::ok("server", format!("{more} more, not looked at")));
    }
    if let Some(finding) = proxies::found(config, rest, &guilds, soon).await {
        tell(finding);
    }
}

async fn server(rest: &Rest, application: &Application, guild: &OwnGuild, survey: bool) -> Finding {
    let name = &guild.name;
    if !guild.missing.is_empty() {
        let found = format!("{name}: our roles lack {}", guild.missing.join(", "));
        let remedy = format!(
            "give them to the bot's role, or invite it again: {}",
            invite(application.id)
        );
        return Finding::warning("server", found, remedy);
    }
    if !survey {
        return Finding::ok("server", format!("{name}: our roles suffice"));
    }
    let survey = rest.channel_survey(guild.id, application.bot, soon()).await;
    let (all, unreadable) = match survey {
        Ok(survey) => (survey.channels, survey.unreadable),
        Err(error) => {
            let found = format!("{name}: not looked at: {error}");
            return Finding::warning("server", found, TRY_AGAIN);
        }
    };
    if unreadable.is_empty() {
        return Finding::ok("server", format!("{name}: all {all} channels can be read"));
    }
    let named = unreadable.iter().take(MAX_NAMED);
    let named: Vec<String> = named.map(|channel| format!("#{channel}")).collect();
    let more = match unreadable.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (open, named) = (all - unreadable.len(), named.join(", "));
    let found = format!("{name}: {open} of {all} channels can be read; not {named}{more}");
    Finding::ok("server", found)
}

//! What a question would be answered from, and what an answer was made from.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::member::{Member, NOWHERE};
use super::{Given, TIME, Who};
use crate::commands::{self, Reader};
use crate::model::PromptReceipt;
use crate::telemetry::event::ToolOutcome;
use crate::tools::{Address, Arguments};
use crate::turn;
use clew_context::engine::links::{Link, LinkPlace};
use clew_context::model::{
    ApplicationId, Author, ChannelId, ContentSource, Interaction, InteractionId, InteractionPlace,
    Message, MessageId, Secret, Stage, TurnRequest,
};

/// The longest question, as `/ask` takes it, in Unicode scalars.
const MAX_QUESTION: usize = 2_000;

/// The block of a question there, perhaps about a message, that only its asker will see the
/// answer of.
pub(super) async fn read(
    member: &Member<'_>,
    channel: ChannelId,
    about: Option<MessageId>,
    question: &str,
) -> Given {
    let services = member.services;
    let about = match about {
        None => None,
        Some(id) => match message(member, channel, id).await {
            Some(about) => Some(about),
            None => return Given::nothing(),
        },
    };
    know_name(member).await;
    let request = request(member, channel, about.as_ref(), question);
    let mut context = Box::pin(turn::context_of(services, request)).await;
    // An archived thread behind a link is known to its question alone.
    let items = context.block.items();
    let shown: BTreeSet<ChannelId> = items.map(|item| item.message.channel).collect();
    for channel in shown {
        member.opens(channel).await;
    }
    context.omitted.retain(|one| member.reads(one.channel));
    let prompt = PromptReceipt {
        omitted: context.omitted,
        ..PromptReceipt::of_block(&context.block)
    };
    let guild = Some(member.who.guild);
    let left_out = commands::left_out(guild, &prompt, context.scene);
    let missing = context.missing.iter();
    let missing = missing.filter(|(stage, _)| *stage != Stage::Link);
    let missing: Vec<String> = missing
        .map(|(stage, why)| format!("{}: {why}", stage.as_str()))
        .collect();
    let parts = [
        ("Context", context.framed),
        ("Left out", left_out),
        ("Not read", missing.join("\n")),
    ];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    let parts: Vec<String> = parts
        .map(|(name, text)| format!("{name}:\n{text}"))
        .collect();
    let items = context.block.items().map(|item| &item.message);
    let source = |message: &Arc<Message>| ContentSource {
        guild,
        channel: message.channel,
        message: Some(message.id),
        author: (!message.withheld).then_some(message.author.id),
    };
    let text = if parts.is_empty() {
        "Context:\n(There is nothing.)".to_owned()
    } else {
        parts.join("\n\n")
    };
    Given::of(text, items.map(source).collect())
}

/// A message whose author has not opted out.
async fn message(member: &Member<'_>, channel: ChannelId, id: MessageId) -> Option<Message> {
    let services = member.services;
    let deadline = Instant::now() + TIME;
    let reader = services.rest.reader();
    let mut message = reader.message(channel, id, deadline).await.ok()?;
    services.opt_outs.current().withhold(&mut message);
    (!message.withheld).then_some(message)
}

/// Has their messages bear their name, which a command would have brought.
async fn know_name(member: &Member<'_>) {
    let (services, Who { user, guild, .. }) = (member.services, member.who);
    let guild_state = &services.guild_state;
    if guild_state.user_name(guild, user).is_some() || guild_state.heard_name(guild, user).is_some()
    {
        return;
    }
    let deadline = Instant::now() + TIME;
    if let Ok(name) = services.rest.member_name(guild, user, deadline).await {
        guild_state.hear(guild, [(user, name.as_str())]);
    }
}

/// The question as a command would ask it there now.
fn request(
    member: &Member<'_>,
    channel: ChannelId,
    about: Option<&Message>,
    question: &str,
) -> TurnRequest {
    let (services, Who { user, guild, .. }) = (member.services, member.who);
    let guild_state = &services.guild_state;
    let name = guild_state.user_name(guild, user);
    let name = name.or_else(|| guild_state.heard_name(guild, user));
    let asker = Author {
        id: user,
        name: name.unwrap_or_default().into(),
        bot: false,
        webhook: false,
        application: None,
    };
    let now = MessageId::first_at(services.memory.now());
    let interaction = Interaction {
        id: InteractionId::new(now.get()),
        application: ApplicationId::new(0),
        token: Secret::new(""),
        channel,
        guild: Some(guild),
        user,
        place: InteractionPlace::Guild,
    };
    let question: String = question.chars().take(MAX_QUESTION).collect();
    let (trigger, cause) = commands::asked(interaction, asker, &question, about.cloned());
    TurnRequest {
        trigger: Arc::new(trigger),
        channel_kind: guild_state.kind_and_parent(channel).map(|(kind, _)| kind),
        asker_roles: Some(member.roles.clone()),
        cause,
        is_private: true,
    }
}

/// What an answer was made from, as `/context why` tells it.
pub(super) async fn why(member: &Member<'_>, given: &Arguments) -> Given {
    let answer = given.text("answer").and_then(|text| Address::parse(&text));
    let (channel, message) = match answer {
        Some(Address::Link(link)) if link.place != LinkPlace::Guild(member.who.guild) => {
            return Given::nothing();
        }
        Some(Address::Link(Link {
            channel,
            message: Some(message),
            ..
        })) => (channel, message),
        _ => return Given::missing("answer"),
    };
    if !member.opens(channel).await {
        return Given::nothing();
    }
    let services = member.services;
    let stored = match services.memory.receipt_of(channel, message).await {
        Ok(Some(stored)) => stored,
        Ok(None) => return Given::nothing(),
        Err(_) => return Given::refused(ToolOutcome::Failed, "It cannot be read right now."),
    };
    let reader = Reader {
        guild_state: &services.guild_state,
        rest: &services.rest,
        user: member.who.user,
        guild: Some(member.who.guild),
        here: NOWHERE,
        roles: &member.roles,
    };
    let Some(told) = commands::told(&reader, &stored).await else {
        return Given::nothing();
    };
    let fields = told.fields.into_iter();
    let fields = fields.map(|(name, text)| format!("{name}:\n{text}"));
    let parts = [told.title, told.description];
    let parts = parts.into_iter().chain(fields).chain([told.footer]);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    let source = ContentSource {
        guild: Some(member.who.guild),
        channel,
        message: Some(message),
        author: None,
    };
    Given::of(parts.join("\n\n"), vec![source])
}

//! What triggers a turn: one table for each rule of
//! `docs/behaviour.md`, "Triggers".

use std::collections::BTreeSet;

use clew_context::engine::admission::Denied;
use clew_context::engine::route::{RouteFacts, Rules, Verdict, ends_bot_turns, route, scene};
use clew_context::model::{
    AccessRules, AllowList, Cause, ChannelId, ChannelKind, ChannelMode, IdList, Message,
    MessageFlags, RoleId, Scene, TriggerRules,
};

use crate::support::build::{
    ADA, ALERT, CLEW, DICE, EVE, GENERAL, GUILD, OTHER_ROLE, Shape, asked, said, thread_id, us,
};

fn rules() -> Rules {
    Rules {
        access: AccessRules::default(),
        triggers: TriggerRules::default(),
        message_content: true,
    }
}

fn triggers(change: impl FnOnce(&mut TriggerRules)) -> Rules {
    let mut rules = rules();
    change(&mut rules.triggers);
    rules
}

const HERE: RouteFacts<'static> = RouteFacts {
    kind: Some(ChannelKind::Text),
    parent: None,
    roles: Some(&[]),
    replied_author: None,
    bot_turns: 0,
    mode: ChannelMode::Mentions,
};

fn verdict(message: &Message, rules: &Rules, facts: RouteFacts<'_>) -> &'static str {
    match route(message, &us(), rules, facts) {
        Verdict::Ignore => "ignore",
        Verdict::Denied(Denied::DirectMessages) => "no direct messages",
        Verdict::Denied(Denied::Guild) => "denied guild",
        Verdict::Denied(Denied::Channel) => "denied channel",
        Verdict::Denied(Denied::User) => "denied user",
        Verdict::NoContent => "no_content",
        Verdict::Turn(Cause::Mention) => "mention",
        Verdict::Turn(Cause::Direct) => "direct",
        Verdict::Turn(Cause::AutoReply) => "auto_reply",
        Verdict::Turn(Cause::Ask(_) | Cause::AskAbout(..) | Cause::AgentRun) => "command",
    }
}

#[track_caller]
fn check(message: &Message, rules: &Rules, facts: RouteFacts<'_>, expected: &str) {
    assert_eq!(verdict(message, rules, facts), expected, "{message:?}");
}

#[test]
fn only_types_0_and_19_trigger() {
    for number in 0..50 {
        let message = asked(1, EVE, "hi").of_type(number);
        let expected = if number == 0 || number == 19 {
            "mention"
        } else {
            "ignore"
        };
        check(&message, &rules(), HERE, expected);
    }
}

#[test]
fn mentions_of_us_and_of_our_role() {
    for (text, expected) in [
        ("<@90> hi", "mention"),
        ("hi <@90>", "mention"),
        ("<@&8000> hi", "mention"),
        ("<@&8001> hi", "ignore"),
        ("@everyone hi", "ignore"),
        ("@here <@11>", "ignore"),
        ("Clew?", "ignore"),
        ("", "ignore"),
    ] {
        check(&said(1, EVE, text), &rules(), HERE, expected);
    }
    assert_eq!(OTHER_ROLE, RoleId::new(8_001));
}

#[test]
fn replies_with_or_without_a_ping() {
    let reply = said(2, EVE, "why?").replying(1);
    let to_us = RouteFacts {
        replied_author: Some(CLEW.user()),
        ..HERE
    };
    let to_ada = RouteFacts {
        replied_author: Some(ADA.user()),
        ..HERE
    };
    check(&reply, &rules(), to_us, "mention");
    check(&reply, &rules(), to_ada, "ignore");
    check(&reply, &rules(), HERE, "ignore");
    check(&reply.clone().pinging(CLEW), &rules(), HERE, "mention");
    // A forward of the bot's message is not a reply to it.
    check(&reply.of_type(0), &rules(), to_us, "ignore");
    let only = triggers(|triggers| triggers.mention_only = true);
    let reply = said(2, EVE, "why?").replying(1);
    check(&reply, &only, to_us, "ignore");
    check(&reply.pinging(CLEW), &only, HERE, "mention");
}

/// The channel's type makes a message direct, not the lack of a guild id.
#[test]
fn direct_messages_are_known_by_channel_type() {
    let stray = said(1, EVE, "hi").shaped(|message| message.guild = None);
    for (kind, expected) in [
        (Some(ChannelKind::Dm), "direct"),
        (Some(ChannelKind::GroupDm), "direct"),
        (Some(ChannelKind::Text), "ignore"),
        (None, "ignore"),
    ] {
        check(&stray, &rules(), RouteFacts { kind, ..HERE }, expected);
        let mention = asked(1, EVE, "hi").shaped(|message| message.guild = None);
        check(&mention, &rules(), RouteFacts { kind, ..HERE }, expected);
    }
    let dm = RouteFacts {
        kind: Some(ChannelKind::Dm),
        ..HERE
    };
    let mut closed = rules();
    closed.access.direct_messages = false;
    check(&stray, &closed, dm, "no direct messages");
    // MENTION_ONLY applies to servers.
    check(
        &stray,
        &triggers(|triggers| triggers.mention_only = true),
        dm,
        "direct",
    );
    check(
        &stray.shaped(|message| message.author = DICE.author()),
        &rules(),
        dm,
        "ignore",
    );
}

#[test]
fn auto_reply_channels_and_their_threads() {
    let auto = triggers(|triggers| {
        triggers.auto_reply_channels.insert(GENERAL);
    });
    let in_thread = RouteFacts {
        kind: Some(ChannelKind::PublicThread),
        parent: Some(GENERAL),
        ..HERE
    };
    let there = || said(1, EVE, "hi").into_channel(thread_id(0));
    check(&said(1, EVE, "hi"), &auto, HERE, "auto_reply");
    check(&there(), &auto, in_thread, "auto_reply");
    check(&there(), &auto, HERE, "ignore");
    check(&asked(1, EVE, "hi"), &auto, HERE, "mention");
    check(&said(1, DICE, "hi"), &auto, HERE, "ignore");
    check(&said(1, ALERT, "hi"), &auto, HERE, "ignore");
    check(&said(1, EVE, "hi").of_type(7), &auto, HERE, "ignore");
    let both = Rules {
        triggers: TriggerRules {
            mention_only: true,
            ..auto.triggers.clone()
        },
        ..auto
    };
    check(&said(1, EVE, "hi"), &both, HERE, "ignore");
}

/// Bots only if enabled, by a mention in the text, and a limited number of times.
#[test]
fn bots_and_webhooks_only_if_enabled_and_mentioned() {
    let replying = triggers(|triggers| {
        triggers.reply_to_bots = true;
        triggers.max_bot_turns = 3;
    });
    for who in [DICE, ALERT] {
        check(&asked(1, who, "hi"), &rules(), HERE, "ignore");
        check(&asked(1, who, "hi"), &replying, HERE, "mention");
        let ping = said(1, who, "hi").replying(0).pinging(CLEW);
        check(&ping, &replying, HERE, "ignore");
        for (bot_turns, expected) in [(2, "mention"), (3, "ignore"), (9, "ignore")] {
            let facts = RouteFacts { bot_turns, ..HERE };
            check(&asked(1, who, "hi"), &replying, facts, expected);
            check(&asked(1, EVE, "hi"), &replying, facts, "mention");
        }
    }
}

#[test]
fn our_own_and_ephemeral_messages_are_ignored() {
    let anything = triggers(|triggers| {
        triggers.reply_to_bots = true;
        triggers.auto_reply_channels.insert(GENERAL);
    });
    check(&asked(1, CLEW, "hi"), &anything, HERE, "ignore");
    for flags in [MessageFlags::EPHEMERAL, MessageFlags::LOADING] {
        check(
            &asked(1, EVE, "hi").flagged(flags),
            &anything,
            HERE,
            "ignore",
        );
    }
    check(
        &asked(1, EVE, "hi").flagged(MessageFlags(4)),
        &anything,
        HERE,
        "mention",
    );
}

/// Without the intent, an empty message does not mean that nothing was written.
#[test]
fn without_message_content_an_empty_message_gets_no_answer() {
    let off = Rules {
        message_content: false,
        ..triggers(|triggers| {
            triggers.auto_reply_channels.insert(GENERAL);
        })
    };
    let to_us = RouteFacts {
        replied_author: Some(CLEW.user()),
        ..HERE
    };
    check(&said(1, EVE, ""), &off, HERE, "no_content");
    check(&said(1, EVE, "").replying(0), &off, to_us, "no_content");
    check(&asked(1, EVE, ""), &off, HERE, "mention");
    check(
        &said(1, EVE, "").with_file("a.txt", None, 1),
        &off,
        HERE,
        "auto_reply",
    );
    let on = Rules {
        message_content: true,
        ..off
    };
    check(&said(1, EVE, ""), &on, HERE, "auto_reply");
}

#[test]
fn lists_apply_to_everybody() {
    let only = |channel| IdList {
        allowed: AllowList::Only(BTreeSet::from([channel])),
        denied: BTreeSet::new(),
    };
    let mut elsewhere = rules();
    elsewhere.access.channels = only(ChannelId::new(1));
    check(&asked(1, EVE, "hi"), &elsewhere, HERE, "denied channel");
    check(&said(1, EVE, "hi"), &elsewhere, HERE, "ignore");
    let in_thread = RouteFacts {
        parent: Some(ChannelId::new(1)),
        ..HERE
    };
    check(&asked(1, EVE, "hi"), &elsewhere, in_thread, "mention");
    let mut denied = rules();
    denied.access.users.denied.insert(EVE.user());
    check(&asked(1, EVE, "hi"), &denied, HERE, "denied user");
    let mut guild = rules();
    guild.access.guilds.denied.insert(GUILD);
    check(&asked(1, EVE, "hi"), &guild, HERE, "denied guild");
}

/// If users and roles are both listed, either is enough; nobody else is admitted.
#[test]
fn listed_users_and_listed_roles_get_in() {
    let mut both = rules();
    both.access.users.allowed = AllowList::Only(BTreeSet::from([EVE.user()]));
    both.access.roles.allowed = AllowList::Only(BTreeSet::from([OTHER_ROLE]));
    let with_role = RouteFacts {
        roles: Some(&[OTHER_ROLE]),
        ..HERE
    };
    check(&asked(1, EVE, "hi"), &both, HERE, "mention");
    check(&asked(1, ADA, "hi"), &both, with_role, "mention");
    check(&asked(1, ADA, "hi"), &both, HERE, "denied user");
}

/// Messages by others do not reset the count, or they would keep two bots talking.
#[test]
fn a_person_who_may_ask_resets_the_count_of_bots_turns() {
    let mut closed = rules();
    closed.access.users.denied.insert(ADA.user());
    let ends = |message: &Message| ends_bot_turns(message, &us(), &closed, &HERE);
    assert!(ends(&said(1, EVE, "hi")));
    assert!(!ends(&said(1, ADA, "hi")), "of somebody who may not ask");
    assert!(!ends(&said(1, DICE, "hi")), "a bot");
    assert!(!ends(&said(1, EVE, "").of_type(7)), "somebody joined");
    assert!(!ends(&said(1, DICE, "").of_type(7)), "a bot joined");
}

#[test]
fn the_scene_comes_from_the_channel_then_from_the_message() {
    let reply = asked(2, EVE, "hi").replying(1);
    for (kind, of_reply, of_mention) in [
        (ChannelKind::Text, Scene::ReplyChain, Scene::Lone),
        (ChannelKind::Voice, Scene::ReplyChain, Scene::Lone),
        (ChannelKind::Stage, Scene::ReplyChain, Scene::Lone),
        (ChannelKind::Announcement, Scene::ReplyChain, Scene::Lone),
        (ChannelKind::Dm, Scene::Direct, Scene::Direct),
        (ChannelKind::PublicThread, Scene::Thread, Scene::Thread),
        (ChannelKind::PrivateThread, Scene::Thread, Scene::Thread),
        (
            ChannelKind::AnnouncementThread,
            Scene::Thread,
            Scene::Thread,
        ),
    ] {
        assert_eq!(scene(&reply, Some(kind)), of_reply);
        assert_eq!(scene(&asked(2, EVE, "hi"), Some(kind)), of_mention);
    }
    assert_eq!(scene(&reply, None), Scene::ReplyChain);
}

//! A prompt has only names from the trigger's server that everybody who reads the answer
//! may know, however it is asked for.

use std::fs;

use clew_simulator::{ChannelKind, Draft, Id, OverwriteOf, Permissions, Use};
use serde_json::json;

use super::{Place, Seeds, assert_in_order, place_with};

/// Channels and roles whose names tell something. Boris has the role `staff`, which may
/// view `plans`.
#[derive(Clone, Copy)]
struct Named {
    plans: Id,
    layoffs: Id,
    salaries: Id,
    vault: Id,
    staff: Id,
    barons: Id,
    direct: Id,
}

/// The names that only some people may know.
const HIDDEN: [&str; 5] = ["plans", "layoffs", "salaries", "vault", "barons"];

fn named(world: &mut clew_simulator::World, seeds: Seeds) -> Named {
    let plans = world.channel(seeds.guild, ChannelKind::Text, "plans");
    let staff = world.role(seeds.guild, "staff", Permissions::NONE);
    world.give_role(seeds.guild, seeds.boris, staff);
    world.deny_everyone(plans, Permissions::VIEW_CHANNEL);
    let view = Permissions::VIEW_CHANNEL;
    world.overwrite(plans, OverwriteOf::Role(staff), view, Permissions::NONE);
    world.overwrite(
        plans,
        OverwriteOf::Member(world.bot),
        view,
        Permissions::NONE,
    );
    let layoffs = world.thread(plans, ChannelKind::PublicThread, "layoffs", seeds.boris);
    let kind = ChannelKind::PrivateThread;
    let salaries = world.thread(seeds.channel, kind, "salaries", seeds.boris);
    world.join_thread(salaries, world.bot);
    let elsewhere = world.guild("Elsewhere");
    world.join(elsewhere, seeds.ada);
    Named {
        plans,
        layoffs,
        salaries,
        vault: world.channel(elsewhere, ChannelKind::Text, "vault"),
        staff,
        barons: world.role(elsewhere, "barons", Permissions::NONE),
        direct: world.direct(seeds.ada),
    }
}

impl Named {
    /// A question after all of them, by mention and by link.
    fn question(&self, p: &Place) -> String {
        let Self {
            plans,
            layoffs,
            salaries,
            vault,
            barons,
            ..
        } = self;
        let link = |guild: Id, channel| format!("https://discord.com/channels/{guild}/{channel}/1");
        format!(
            "what of <#{plans}>, <#{layoffs}>, <#{salaries}>, <#{vault}>, <@&{barons}>, {}, {} \
             and <#{}>?",
            link(p.guild, *plans),
            link(p.guild, *vault),
            p.channel,
        )
    }
}

/// The question as shown to somebody who may view none of it.
const NOTHING: &str = "what of #unknown channel, #unknown channel, #unknown channel, \
                       #unknown channel, @unknown role, (message in #unknown channel), \
                       (message in #unknown channel) and #help?";

#[track_caller]
fn assert_nothing_hidden(text: &str) {
    for name in HIDDEN {
        assert!(!text.contains(name), "{name} is in:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_those_of_the_server_that_every_reader_may_view() {
    let (p, named) = place_with(&[], named).await;
    let bot = p.start().await;
    let question = named.question(&p);
    p.post(p.channel, p.ada, p.to_us(&question));
    p.answer(p.channel, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &[NOTHING]);
    assert_nothing_hidden(&prompt);
    // Ada reads what Boris is answered there.
    p.post(p.channel, p.boris, p.to_us(&question));
    let prompt = p.prompt(2).await;
    assert_in_order(&prompt, &[NOTHING]);
    assert_nothing_hidden(&prompt);
    // Whether Boris is in the private thread is not asked for a name.
    let known = "what of #plans, #layoffs, #unknown channel, #unknown channel, @unknown role, \
                 (message in #plans), (message in #unknown channel) and #help?";
    p.post(named.plans, p.boris, p.to_us(&question));
    assert_in_order(&p.prompt(3).await, &[known]);
    let ask = Use::slash("ask", &[("question", &question)]);
    p.stage.discord.interact(p.channel, p.boris, &ask);
    assert_in_order(&p.prompt(4).await, &[known]);
    bot.stop().await;
}

/// A judgement may take milliseconds, and a message has room for ninety names.
#[tokio::test(flavor = "multi_thread")]
async fn one_prompt_names_a_bounded_number_of_channels() {
    let (p, channels) = place_with(&[], |world, seeds| {
        let channel = |number| world.channel(seeds.guild, ChannelKind::Text, &format!("c{number}"));
        (0..80).map(channel).collect::<Vec<Id>>()
    })
    .await;
    let bot = p.start().await;
    let twice = channels.iter().chain(&channels[..3]);
    let question: Vec<String> = twice.map(|channel| format!("<#{channel}>")).collect();
    let ask = Use::slash("ask", &[("question", &question.concat())]);
    p.stage.discord.interact(p.channel, p.ada, &ask);
    let prompt = p.prompt(1).await;
    assert_in_order(
        &prompt,
        &[
            "#c0#c1",
            "#c63#unknown channel",
            "#unknown channel#c0#c1#c2",
        ],
    );
    assert!(!prompt.contains("#c64"), "{prompt}");
    bot.stop().await;
}

/// Other people's messages are shown with the names that everybody there may know.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_tells_its_asker_no_more_names_than_the_question() {
    let (p, named) = place_with(&[], named).await;
    let bot = p.start().await;
    let thread = p
        .stage
        .discord
        .thread(p.channel, ChannelKind::PublicThread, "pumps", p.ada);
    p.post(thread, p.boris, named.question(&p));
    p.post(thread, p.ada, p.to_us("well?"));
    p.answer(thread, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &[NOTHING, "well?"]);
    assert_nothing_hidden(&prompt);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_of_a_server_is_told_in_a_direct_message() {
    let (p, named) = place_with(&[], named).await;
    let bot = p.start().await;
    let staff = format!("{} <@&{}>", named.question(&p), named.staff);
    p.post(named.direct, p.ada, staff);
    p.answer(named.direct, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &["and #unknown channel? @unknown role"]);
    assert_nothing_hidden(&prompt);
    assert!(!prompt.contains("#help"), "{prompt}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_tells_no_more_names_than_a_mention() {
    let (p, named) = place_with(&[], named).await;
    let bot = p.start().await;
    let question = named.question(&p);
    let ask = Use::slash("ask", &[("question", &question)]);
    p.stage.discord.interact(p.channel, p.ada, &ask);
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &[NOTHING]);
    assert_nothing_hidden(&prompt);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspector_tells_no_more_names_than_a_prompt() {
    let (p, named) = place_with(&[("LLM_BASE_URL", "")], named).await;
    let bot = p.start().await;
    let thread = p
        .stage
        .discord
        .thread(p.channel, ChannelKind::PublicThread, "pumps", p.ada);
    for place in [named.plans, named.layoffs, named.salaries, named.vault] {
        p.post(thread, p.boris, format!("see <#{place}>"));
    }
    p.post(thread, p.ada, p.to_us("well?"));
    let answer = p.answer(thread, 1).await;
    assert_in_order(&answer, &["see #unknown channel", "see #unknown channel"]);
    assert_nothing_hidden(&answer);
    bot.stop().await;
}

/// Names are looked up with the rights that readers have at that time.
#[tokio::test(flavor = "multi_thread")]
async fn stored_words_keep_their_markup_and_are_rendered_when_read() {
    let (p, named) = place_with(&[], named).await;
    let bot = p.start().await;
    let (everyone, view) = (OverwriteOf::Role(p.guild), Permissions::VIEW_CHANNEL);
    let none = Permissions::NONE;
    p.stage.discord.overwrite(named.plans, everyone, view, none);
    p.seen().await;
    let question = format!("what of <#{}>, <@{}>?", named.plans, p.boris);
    p.post(p.channel, p.boris, p.to_us(&question));
    p.answer(p.channel, 1).await;
    p.post(p.channel, p.boris, p.to_us("and then?"));
    p.answer(p.channel, 2).await;
    let prompt = p.prompt(2).await;
    assert_in_order(&prompt, &["what of #plans, @Boris?", "and then?"]);
    // Boris still may view it, as staff.
    p.stage.discord.overwrite(named.plans, everyone, none, view);
    p.seen().await;
    p.post(p.channel, p.boris, p.to_us("and now?"));
    p.answer(p.channel, 3).await;
    let prompt = p.prompt(3).await;
    assert_in_order(&prompt, &["what of #unknown channel, @Boris?", "and now?"]);
    assert_nothing_hidden(&prompt);
    bot.stop().await;
    let files = fs::read_dir(p.stage.folder.path()).unwrap();
    let stored: Vec<u8> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.is_file())
        .flat_map(|path| fs::read(path).unwrap())
        .collect();
    let stored = String::from_utf8_lossy(&stored);
    assert!(stored.contains(&question), "as it was typed");
    assert!(!stored.contains("#plans"));
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_rendered_for_their_asker() {
    let (p, named) = place_with(&[], named).await;
    let bot = p.start().await;
    let text = format!("I look after <#{}> and <#{}>", p.channel, named.plans);
    let discord = &p.stage.discord;
    let command = "memory remember";
    let called = discord.call(p.ada, p.channel, command, json!({"text": text}));
    called.await.unwrap().answer().await.unwrap();
    p.post(p.channel, p.ada, p.to_us("what do I do?"));
    p.answer(p.channel, 1).await;
    let prompt = p.prompt(1).await;
    assert_in_order(&prompt, &["- I look after #help and #unknown channel"]);
    assert_nothing_hidden(&prompt);
    bot.stop().await;
}

/// A thread's title counts as words of its owner.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_somebody_who_opted_out_has_no_name() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let kind = ChannelKind::PublicThread;
        world.thread(seeds.channel, kind, "kumquats", seeds.boris)
    })
    .await;
    let bot = p.start().await;
    let question = format!("what of <#{thread}>?");
    p.post(p.channel, p.ada, p.to_us(&question));
    p.answer(p.channel, 1).await;
    assert_in_order(&p.prompt(1).await, &["what of #kumquats?"]);
    p.opts_out(p.boris).await;
    let (slow, gate) = crate::support::model::Behaviour::gated(&["ok"]);
    p.stage.model.script(slow);
    p.post(thread, p.boris, Draft::new(p.to_us("mine")));
    p.stage.model.wait_requests(2).await;
    p.post(p.channel, p.ada, p.to_us(&question));
    p.answer(p.channel, 2).await;
    let prompt = p.prompt(3).await;
    assert_in_order(&prompt, &["what of #unknown channel?"]);
    assert!(!prompt.contains("kumquats"), "{prompt}");
    gate.open();
    p.answer(thread, 1).await;
    bot.stop().await;
}

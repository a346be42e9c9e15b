//! What a bot's own cache says of a turn, over real sockets.

use std::time::Duration;

use clew_context::collect::{NegativeCache, collect};
use clew_context::discord::{Cached, Live, convert};
use clew_context::engine::render::Directory;
use clew_context::engine::window::{Window, WindowLimits};
use clew_context::model::{
    Access, Cause, ChannelKind as Kind, Limits, Missing, RoleId, TurnRequest, UserId,
};
use clew_simulator::{ChannelKind, Permissions, Simulator, World};
use tokio::time::timeout;
use twilight_cache_inmemory::{InMemoryCache, ResourceType};
use twilight_gateway::{
    ConfigBuilder, Event, EventTypeFlags, Intents, Shard, ShardId, StreamExt as _,
};

use super::rest::{channel_id, rest};

async fn next_event(shard: &mut Shard) -> Event {
    let event = timeout(
        Duration::from_secs(20),
        shard.next_event(EventTypeFlags::all()),
    );
    event.await.unwrap().unwrap().unwrap()
}

/// Of what is not in the trigger's server, what only some may see, and what the cache lacks,
/// nothing is told.
#[tokio::test]
async fn a_turn_knows_what_the_cache_knows() {
    let mut world = World::new();
    let (guild, elsewhere) = (world.guild("Works"), world.guild("Elsewhere"));
    let ada = world.member(guild, "Ada");
    let helper = world.role(guild, "helper", Permissions::NONE);
    world.give_role(guild, ada, helper);
    let forum = world.channel(guild, ChannelKind::Forum, "questions");
    let post = world.forum_post(forum, ada, "Leaking pump", &[], "it drips");
    let open = world.channel(guild, ChannelKind::Text, "open");
    let staff = world.channel(guild, ChannelKind::Text, "staff");
    world.deny_everyone(staff, Permissions::VIEW_CHANNEL);
    let other = world.channel(elsewhere, ChannelKind::Text, "other");
    let discord = Simulator::start(world).await.unwrap();

    let kinds = ResourceType::CHANNEL
        | ResourceType::GUILD
        | ResourceType::MEMBER
        | ResourceType::ROLE
        | ResourceType::USER
        | ResourceType::USER_CURRENT;
    let cache = InMemoryCache::builder().resource_types(kinds).build();
    let cached = Cached::new(&cache);
    assert!(cached.us(None).is_none(), "before READY");
    let intents = Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::MESSAGE_CONTENT;
    let config = ConfigBuilder::new(discord.token(), intents);
    let config = config.proxy_url(discord.gateway_url()).build();
    let mut shard = Shard::with_config(ShardId::ONE, config);
    let mut guilds = 0;
    while guilds < 2 {
        let event = next_event(&mut shard).await;
        guilds += usize::from(matches!(event, Event::GuildCreate(_)));
        cache.update(&event);
    }
    let text = format!("<@{}> what is it?", discord.bot());
    discord.post(post, ada, text);
    let trigger = loop {
        let event = next_event(&mut shard).await;
        cache.update(&event);
        if let Event::MessageCreate(message) = event {
            break convert::from_twilight(&message).unwrap();
        }
    };

    let mut window = Window::new(WindowLimits::default());
    let request = TurnRequest::new(window.created(trigger), Cause::Mention);
    let view = window.view(channel_id(post));
    let turn = cached.input(request, view, Limits::default()).unwrap();
    assert_eq!(turn.us.name, "Clew");
    assert_eq!(turn.asker_access, Access::FULL);
    assert!(turn.our_access.may_read());
    let channel = turn.channel.as_ref().unwrap();
    assert_eq!(channel.name, "Leaking pump");
    assert_eq!(channel.parent_kind, Some(Kind::Forum));

    let hidden = cached.channel(channel_id(staff)).unwrap();
    let (user, stranger) = (UserId::new(ada.0), UserId::new(7));
    assert_eq!(cached.access(user, None, &hidden), Access::Denied);
    let unknown = Access::Unknown(Missing::Facts);
    assert_eq!(cached.access(stranger, None, &hidden), unknown);
    assert_eq!(
        cached.access(stranger, Some(&[RoleId::new(7)]), &hidden),
        unknown
    );

    let names = cached.names(&turn);
    assert_eq!(names.user(user).as_deref(), Some("Ada"));
    assert_eq!(names.user(stranger), None);
    assert_eq!(names.role(RoleId::new(helper.0)).as_deref(), Some("helper"));
    assert_eq!(names.role(RoleId::new(elsewhere.0)), None);
    for (id, name) in [
        (post, Some("Leaking pump")),
        (open, Some("open")),
        (staff, None),
        (other, None),
    ] {
        assert_eq!(names.channel(channel_id(id)).as_deref(), name, "{id}");
    }

    // Nothing but the messages is asked for.
    let reader = rest(&discord);
    collect(&Live::new(&reader), &NegativeCache::default(), turn).await;
    let asked = discord.requests_to("GET", "/");
    assert!(
        asked.iter().all(|one| one.path.contains("/messages")),
        "{asked:?}"
    );
}

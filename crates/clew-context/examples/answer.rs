//! The collectors in a bot of your own: prints the prompt for each question.

use clew_context::collect::{NegativeCache, collect};
use clew_context::discord::{Cached, Live, convert, rest::RestReader};
use clew_context::engine::prepare::{PromptInput, prepare};
use clew_context::engine::route::{RouteFacts, Rules, Verdict, route};
use clew_context::engine::window::{Window, WindowLimits};
use clew_context::model::{Limits, TurnRequest};
use std::sync::Arc;
use twilight_cache_inmemory::InMemoryCache;
use twilight_gateway::{Event, EventTypeFlags, Intents, Shard, ShardId, StreamExt as _};

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "an example has no settings")]
#[expect(clippy::print_stdout, reason = "an example has no model")]
async fn main() -> anyhow::Result<()> {
    let token = std::env::var("DISCORD_TOKEN")?;
    let client = Arc::new(twilight_http::Client::new(token.clone()));
    let (reader, negative) = (RestReader::of(client)?, NegativeCache::default());
    let cache = InMemoryCache::builder().message_cache_size(0).build();
    let (known, mut window) = (Cached::new(&cache), Window::new(WindowLimits::default()));
    let intents = Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES;
    let mut shard = Shard::new(
        ShardId::ONE,
        token.clone(),
        intents | Intents::MESSAGE_CONTENT,
    );
    while let Some(event) = shard.next_event(EventTypeFlags::all()).await {
        let Ok(event) = event else { continue };
        cache.update(&event);
        let Event::MessageCreate(message) = event else {
            continue;
        };
        let trigger = window.created(convert::from_twilight(&message)?);
        let Some(us) = known.us(trigger.guild) else {
            continue;
        };
        let verdict = route(&trigger, &us, &Rules::default(), RouteFacts::default());
        let Verdict::Turn(cause) = verdict else {
            continue;
        };
        let view = window.view(trigger.channel);
        let request = TurnRequest::new(trigger, cause);
        let Some(input) = known.input(request, view, Limits::default()) else {
            continue;
        };
        let collected = collect(&Live::new(&reader), &negative, input).await;
        collected.update(&mut window);
        let names = known.names(&collected.turn);
        let input = PromptInput::new("Be kind.", token.as_bytes(), "scope");
        let input = PromptInput {
            directory: &names,
            ..input
        };
        println!("{:#?}", prepare(&collected, &input).prompt.messages);
    }
    Ok(())
}

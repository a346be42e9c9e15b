//! The collectors in a bot of your own: prints the prompt for each question.

use clew_context::collect::{NegativeCache, collect};
use clew_context::discord::{Live, convert, rest::RestReader};
use clew_context::engine::prepare::{PromptInput, prepare};
use clew_context::engine::route::{RouteFacts, Rules, Verdict, route};
use clew_context::engine::{turn::TurnInput, window::Window, window::WindowLimits};
use clew_context::model::{Limits, TurnRequest};
use std::sync::Arc;
use twilight_gateway::{Event, EventTypeFlags, Intents, Shard, ShardId, StreamExt as _};

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "an example has no settings")]
#[expect(clippy::print_stdout, reason = "an example has no model")]
async fn main() -> anyhow::Result<()> {
    let token = std::env::var("DISCORD_TOKEN")?;
    let client = Arc::new(twilight_http::Client::new(token.clone()));
    let us = convert::us(&client.current_user().await?.model().await?);
    let (reader, cache) = (RestReader::of(client)?, NegativeCache::default());
    let mut window = Window::new(WindowLimits::default());
    let intents = Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES | Intents::MESSAGE_CONTENT;
    let mut shard = Shard::new(ShardId::ONE, token.clone(), intents);
    while let Some(event) = shard.next_event(EventTypeFlags::MESSAGE_CREATE).await {
        if let Ok(Event::MessageCreate(message)) = event {
            let trigger = window.created(convert::from_twilight(&message)?);
            let verdict = route(&trigger, &us, &Rules::default(), RouteFacts::default());
            if let Verdict::Turn(cause) = verdict {
                let view = window.view(trigger.channel);
                let request = TurnRequest::new(trigger, cause);
                let input = TurnInput::new(request, us.clone(), view, Limits::default());
                let collected = collect(&Live::new(&reader), &cache, input).await;
                collected.update(&mut window);
                let input = PromptInput::new("Be kind.", token.as_bytes(), "scope");
                println!("{:#?}", prepare(&collected, &input).prompt.messages);
            }
        }
    }
    Ok(())
}

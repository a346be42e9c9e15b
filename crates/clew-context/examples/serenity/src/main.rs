//! The collectors in a serenity bot (poise has the same client): prints the prompt for each
//! question.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use clew_context::collect::{FetchError, MessagePage, NegativeCache, PageCursor, Source, collect};
use clew_context::discord::{convert, error::RestError};
use clew_context::engine::eligible::Us;
use clew_context::engine::prepare::{PromptInput, prepare};
use clew_context::engine::route::{RouteFacts, Rules, Verdict, route};
use clew_context::engine::turn::TurnInput;
use clew_context::engine::window::{Window, WindowLimits};
use clew_context::model::{
    Attachment, Channel, ChannelId, Fallback, Limits, Message, MessageId, Proxies, TurnRequest,
    UserId,
};
use serenity::all::{
    self as discord, Client, Context, EventHandler, GatewayIntents, Http, HttpError, LightMethod,
    Ready, Request, Route,
};
use tokio::time::{Instant, timeout_at};

/// Asks Discord through serenity's client.
struct Serenity<'a>(&'a Http);

impl Serenity<'_> {
    async fn get(&self, request: Request<'_>, until: Instant) -> Result<String, FetchError> {
        let answer = async {
            let answer = self.0.request(request).await.map_err(failed)?;
            let body = answer.text().await;
            body.map_err(|_| FetchError {
                reason: Fallback::Unavailable,
                transient: true,
            })
        };
        let late = FetchError::lasting(Fallback::Timeout);
        timeout_at(until, answer).await.unwrap_or(Err(late))
    }
}

fn failed(error: discord::Error) -> FetchError {
    match error {
        discord::Error::Http(HttpError::UnsuccessfulRequest(refused)) => {
            let body = format!(r#"{{"code":{}}}"#, refused.error.code.max(0));
            RestError::refused(refused.status_code.as_u16(), body.as_bytes(), None).into()
        }
        _ => FetchError {
            reason: Fallback::Unavailable,
            transient: true,
        },
    }
}

fn malformed<E>(_: E) -> FetchError {
    FetchError::lasting(Fallback::Malformed)
}

impl Source for Serenity<'_> {
    async fn page(
        &self,
        channel: ChannelId,
        cursor: PageCursor,
        limit: usize,
        until: Instant,
    ) -> Result<MessagePage, FetchError> {
        let (side, id) = match cursor {
            PageCursor::Before(id) => ("before", id),
            PageCursor::After(id) => ("after", id),
            PageCursor::Around(id) => ("around", id),
        };
        let route = Route::ChannelMessages {
            channel_id: channel.get().into(),
        };
        let params = vec![(side, id.to_string()), ("limit", limit.to_string())];
        let request = Request::new(route, LightMethod::Get).params(Some(params));
        let page = convert::page(self.get(request, until).await?.as_bytes());
        Ok(page.map_err(malformed)?.asked_for(limit))
    }

    async fn message(
        &self,
        channel: ChannelId,
        id: MessageId,
        until: Instant,
    ) -> Result<Message, FetchError> {
        let (channel_id, message_id) = (channel.get().into(), id.get().into());
        let route = Route::ChannelMessage {
            channel_id,
            message_id,
        };
        let json = self
            .get(Request::new(route, LightMethod::Get), until)
            .await?;
        convert::message(&json).map_err(malformed)
    }

    async fn channel(&self, id: ChannelId, until: Instant) -> Result<Channel, FetchError> {
        let route = Route::Channel {
            channel_id: id.get().into(),
        };
        let json = self
            .get(Request::new(route, LightMethod::Get), until)
            .await?;
        convert::channel(&json, None).map_err(malformed)
    }

    async fn file(&self, _: &Attachment, _: u64, _: Instant) -> Result<String, FetchError> {
        Err(FetchError::lasting(Fallback::Forbidden))
    }
}

struct Bot {
    token: String,
    us: OnceLock<Us>,
    window: Mutex<Window>,
    cache: NegativeCache,
}

impl Bot {
    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[serenity::async_trait]
impl EventHandler for Bot {
    async fn ready(&self, _: Context, ready: Ready) {
        let (user, name) = (UserId::new(ready.user.id.get()), ready.user.name.clone());
        let (roles, proxies) = (Vec::new(), Proxies::default());
        self.us.get_or_init(|| Us {
            user,
            name,
            roles,
            proxies,
        });
        // Events were missed.
        self.window().break_where(|_, _| true);
    }

    async fn message(&self, context: Context, message: discord::Message) {
        let json = serde_json::to_string(&message).unwrap_or_default();
        let (Some(us), Ok(message)) = (self.us.get(), convert::message(&json)) else {
            return;
        };
        let trigger = self.window().created(message);
        let verdict = route(&trigger, us, &Rules::default(), RouteFacts::default());
        let Verdict::Turn(cause) = verdict else {
            return;
        };
        let view = self.window().view(trigger.channel);
        let request = TurnRequest::new(trigger, cause);
        let input = TurnInput::new(request, us.clone(), view, Limits::default());
        let collected = collect(&Serenity(&context.http), &self.cache, input).await;
        collected.update(&mut self.window());
        let input = PromptInput::new("Be kind.", self.token.as_bytes(), "scope");
        println!("{:#?}", prepare(&collected, &input).prompt.messages);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let token = std::env::var("DISCORD_TOKEN")?;
    let bot = Bot {
        token: token.clone(),
        us: OnceLock::new(),
        window: Mutex::new(Window::new(WindowLimits::default())),
        cache: NegativeCache::default(),
    };
    let intents = GatewayIntents::non_privileged() | GatewayIntents::MESSAGE_CONTENT;
    Ok(Client::builder(token, intents)
        .event_handler(bot)
        .await?
        .start()
        .await?)
}

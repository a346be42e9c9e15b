//! Clew answers people on Discord with the right context: the messages that
//! belong to the conversation, bounded, in order, explained, and nobody
//! else's.
//!
//! The map, from the words up (arrows go downwards only, see ARCHITECTURE.md):
//!
//! - [`model`]: the words everything else speaks.
//! - [`engine`]: pure decisions: route, plan, window, select, render, assemble.
//! - [`collect`]: gathers messages for one turn through a [`collect::Source`].
//! - [`discord`]: the door to Discord; the only place that names twilight.
//!
//! In a bot of your own, after each message event:
//!
//! ```
//! # use std::collections::BTreeSet;
//! # use std::sync::Arc;
//! use clew::collect::prepare::{Surroundings, prepare};
//! use clew::collect::{Anchor, FetchError, Occasion, Page, Recall, Source, collect};
//! use clew::discord::convert;
//! use clew::engine::eligible::Us;
//! use clew::engine::render::Nobody;
//! use clew::engine::window::{Window, WindowLimits};
//! use clew::model::*;
//! use tokio::time::Instant;
//!
//! /// Your REST client; each call is one request.
//! struct Mine;
//!
//! impl Source for Mine {
//!     async fn page(
//!         &self, _: ChannelId, _: Anchor, _: usize, _: Instant,
//!     ) -> Result<Page, FetchError> {
//!         Ok(Page { complete: true, ..Page::default() })
//!     }
//!     async fn message(
//!         &self, _: ChannelId, _: MessageId, _: Instant,
//!     ) -> Result<Message, FetchError> {
//!         Err(FetchError::lasting(Fallback::Deleted))
//!     }
//!     async fn channel(&self, _: ChannelId, _: Instant) -> Result<Channel, FetchError> {
//!         Err(FetchError::lasting(Fallback::NotFound))
//!     }
//!     async fn file(&self, _: &Attachment, _: u64, _: Instant) -> Result<String, FetchError> {
//!         Err(FetchError::lasting(Fallback::Forbidden))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let limits = Limits::default();
//! let us = Us { user: UserId::new(9), name: "Clew".into(), roles: vec![] };
//! let mut window = Window::new(WindowLimits { per_channel: 200, max_bytes: 8 << 20 });
//! # let json = |id: u64, text: &str| format!(
//! #     r#"{{"id":"{id}","channel_id":"7","content":"{text}","author":{{"id":"5","username":"ada"}},
//! #     "mentions":[{{"id":"9","username":"Clew"}}],"timestamp":"2026-01-02T03:04:05Z"}}"#);
//! # let (first, second) = (json(1 << 40, "the pump leaks"), json(2 << 40, "<@9>"));
//! window.created(convert::message(&first)?); // or convert::from_twilight(&message)
//! let trigger = window.created(convert::message(&second)?);
//! let request = TurnRequest {
//!     trigger: Arc::clone(&trigger),
//!     channel_kind: Some(ChannelKind::Text),
//!     asker_roles: vec![],
//!     cause: Cause::Mention,
//! };
//! let (view, recall) = (window.view(trigger.channel), Recall::default());
//! let occasion = Occasion {
//!     request: &request,
//!     channel: None,
//!     us: &us,
//!     our_access: None,
//!     asker_access: None,
//!     view: &view,
//!     starter: None,
//!     other_triggers: &BTreeSet::new(),
//!     reply_target: ReplyTarget::Newest,
//!     limits: &limits,
//! };
//! let collected = collect(&Mine, &recall, &occasion).await;
//! let prepared = prepare(&collected, &Surroundings {
//!     us: &us,
//!     directory: &Nobody,
//!     system: "You are helpful.",
//!     docs: &[],
//!     status: "",
//!     secret: b"kept over restarts",
//!     scope: "guild/channel/user",
//!     limits: &limits,
//!     profiles: &Profiles::default(),
//!     history: &[],
//! });
//! assert!(prepared.prompt.messages[1].content.contains("the pump leaks"));
//! # Ok::<(), convert::Unreadable>(())
//! # }).unwrap();
//! ```
//!
//! With the default feature `bot` also the settings, the model client, the
//! telemetry, the simulator and the command line. Without it, the four above
//! (of `discord` only the conversion) serve other people's bots.

pub mod collect;
pub mod discord;
pub mod engine;
pub mod model;

#[cfg(feature = "bot")]
pub mod agents;
#[cfg(feature = "bot")]
pub mod app;
#[cfg(feature = "bot")]
pub mod archive;
#[cfg(feature = "bot")]
pub mod cli;
#[cfg(feature = "bot")]
pub mod commands;
#[cfg(feature = "bot")]
pub mod config;
#[cfg(feature = "bot")]
pub mod demo;
#[cfg(feature = "bot")]
pub mod llm;
#[cfg(feature = "bot")]
pub mod memory;
#[cfg(feature = "bot")]
pub mod replay;
#[cfg(feature = "bot")]
pub mod simulator;
#[cfg(feature = "bot")]
pub mod store;
#[cfg(feature = "bot")]
pub mod telemetry;
#[cfg(feature = "bot")]
pub mod turn;

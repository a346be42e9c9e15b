//! Discord support: lenient conversion of its JSON into the types of
//! [`model`](crate::model), and, with the feature `twilight`, `Live`, the source
//! that asks the REST API.
//!
//! Invariant: `twilight_*` is named only in this module, and everything it
//! returns is a type of `model`.
//!
//! Do this after each message event:
//!
#![cfg_attr(feature = "twilight", doc = "```")]
#![cfg_attr(not(feature = "twilight"), doc = "```ignore")]
//! use clew_context::collect::{NegativeCache, collect};
//! use clew_context::discord::{Live, convert, rest::RestReader};
//! use clew_context::engine::eligible::Us;
//! use clew_context::engine::prepare::{PromptInput, prepare};
//! use clew_context::engine::turn::TurnInput;
//! use clew_context::engine::window::{Window, WindowLimits};
//! use clew_context::model::{Access, Cause, Limits, Proxies, TurnRequest, UserId};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let json = |id: u64, text: &str| format!(
//! #     r#"{{"id":"{id}","channel_id":"7","content":"{text}","author":{{"id":"5","username":"ada"}},
//! #     "mentions":[{{"id":"9","username":"Clew"}}],"timestamp":"2026-01-02T03:04:05Z"}}"#);
//! # let (first, second) = (json(1 << 40, "the pump leaks"), json(2 << 40, "<@9>"));
//! # let limits = Limits { max_fetches: 0, ..Limits::default() };
//! let reader = RestReader::new("the token", None)?;
//! let us = Us { user: UserId::new(9), name: "Clew".into(), roles: vec![], proxies: Proxies::default() };
//! let (mut window, cache) = (Window::new(WindowLimits::default()), NegativeCache::default());
//! window.created(convert::message(&first)?); // or convert::from_twilight(&message)
//! let trigger = window.created(convert::message(&second)?);
//! let view = window.view(trigger.channel);
//! let request = TurnRequest::new(trigger, Cause::Mention);
//! let mut input = TurnInput::new(request, us, view, limits);
//! // What you know of the asker's rights; what you do not know is asked for.
//! input.asker_access = Access::FULL;
//! let collected = collect(&Live::new(&reader), &cache, input).await;
//! let input = PromptInput::new("You are helpful.", b"kept over restarts", "scope");
//! let prompt = prepare(&collected, &input).prompt;
//! assert!(prompt.messages[1].content().contains("the pump leaks"));
//! # Ok(()) }
//! ```

#[cfg(feature = "cache")]
mod cache;
pub mod convert;
pub mod error;
#[cfg(feature = "twilight")]
mod live;
#[cfg(feature = "twilight")]
pub mod rest;

#[cfg(feature = "cache")]
pub use cache::{Cached, Names};
#[cfg(feature = "twilight")]
pub use live::{Live, ReadCall};

//! The images that stand beside the question, if the model takes any.

use clew_context::collect::{Source, collect_images};
use clew_context::engine::images::{self, MessageImage};
use clew_context::engine::turn::Collected;
use clew_context::model::{Fallback, ImageLimits, Stage};
use tokio::time::Instant;

use super::prompt::FittedPrompt;
use crate::llm;
use crate::turn::Turn;
use crate::turn::image_room::ImageShare;

/// The images of a turn, as long as it may ask with them.
#[derive(Default)]
pub(in crate::turn) struct TurnImages {
    pub(in crate::turn) images: Vec<MessageImage>,
    _share: Option<ImageShare>,
}

/// Fetches the images of messages that the prompt shows, for the server that is asked
/// first. Nothing is fetched for a model that is known to take none.
pub(super) async fn fetched<S: Source>(
    turn: &Turn<'_>,
    source: &S,
    collected: &mut Collected,
    prompt: &FittedPrompt,
    model: Option<&llm::Client>,
    deadline: Instant,
) -> TurnImages {
    let services = turn.services;
    let prepared = &prompt.prepared;
    let is_asked = prepared.has_question && !collected.target.withheld;
    let Some(model) = model.filter(|model| is_asked && model.takes_images()) else {
        return TurnImages::default();
    };
    let limits = ImageLimits::default();
    let limits = ImageLimits {
        images: limits.images.min(fitting(prompt, model)),
        ..limits
    };
    let files = images::files(collected, prepared, &limits);
    let bytes = files.iter().map(|one| one.file.size).sum();
    let Some(share) = services.image_room.take(turn.payer(), bytes) else {
        let full = (Stage::Image, Fallback::RateLimited);
        collected.fallbacks.push(full);
        return TurnImages::default();
    };
    let cache = &services.negative_cache;
    TurnImages {
        images: collect_images(source, cache, collected, &files, deadline).await,
        _share: Some(share),
    }
}

/// How many images fit the model beside the words, which go first.
fn fitting(prompt: &FittedPrompt, model: &llm::Client) -> usize {
    let left = |room: usize| room.saturating_sub(prompt.size()) / llm::IMAGE_TOKENS;
    model.prompt_room().map_or(usize::MAX, left)
}

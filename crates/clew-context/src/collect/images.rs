//! The images that stand beside a question. Which ones is known once the prompt is
//! made, so they are fetched after everything else, with what is left of the budget.

use futures_util::future::join_all;
use tokio::time::Instant;

use super::fetch::Fetcher;
use super::negative_cache::NegativeCache;
use super::source::Source;
use crate::engine::images::{ImageFile, MessageImage};
use crate::engine::turn::Collected;
use crate::model::Limits;

/// Fetches images until `deadline`. What they cost and what failed is noted in
/// `collected`, like everything else that was fetched for the turn.
pub async fn collect_images<S: Source>(
    source: &S,
    negative_cache: &NegativeCache,
    collected: &mut Collected,
    files: &[ImageFile],
    deadline: Instant,
) -> Vec<MessageImage> {
    if files.is_empty() {
        return Vec::new();
    }
    let turn = &collected.turn;
    let limits = Limits {
        max_fetches: turn.limits.max_fetches.saturating_sub(collected.fetches),
        fetch_timeout: deadline.saturating_duration_since(Instant::now()),
        ..turn.limits
    };
    let fetcher = Fetcher::new(source, negative_cache, &turn.view.opted_out, &limits);
    let fetched = files.iter().map(|one| async {
        Some(MessageImage {
            message: one.message,
            name: one.file.filename.clone(),
            image: fetcher.image(&one.file).await?,
        })
    });
    let images = join_all(fetched).await.into_iter().flatten().collect();
    let (used, stages, failures) = (fetcher.used(), fetcher.stages(), fetcher.failures());
    collected.fetches += used;
    collected.stages.extend(stages);
    collected.fallbacks.extend(failures);
    images
}

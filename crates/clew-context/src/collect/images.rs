//! The images that stand beside a question. Which ones is known once the prompt is
//! made, so they are fetched after everything else, with what is left of the budget.

use futures_util::future::join_all;
use tokio::time::Instant;

use super::fetch::Fetcher;
use super::negative_cache::NegativeCache;
use super::source::Source;
use crate::engine::images::{ImageFile, MessageImage};
use crate::engine::turn::Collected;
use crate::model::{Limits, Stage};

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
    let now = collected.trigger().timestamp;
    // Those of one message are asked for at once.
    let of_messages = files.chunk_by(|one, next| one.message == next.message);
    let fetched = of_messages.map(|files| async {
        let at = (files[0].channel, files[0].message);
        let files = files.iter().map(|one| one.file.clone()).collect();
        let files = fetcher.at_fresh_addresses(Stage::Image, at, files, now);
        let files = files.await;
        let images = files.iter().map(|file| async {
            Some(MessageImage {
                message: at.1,
                file: file.clone(),
                image: fetcher.image(file).await?,
            })
        });
        join_all(images).await
    });
    let images = join_all(fetched).await.into_iter().flatten();
    let images = images.flatten().collect();
    let (used, stages, failures) = (fetcher.used(), fetcher.stages(), fetcher.failures());
    collected.fetches += used;
    collected.stages.extend(stages);
    collected.fallbacks.extend(failures);
    images
}

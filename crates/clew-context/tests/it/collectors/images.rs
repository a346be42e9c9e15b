//! Which images may stand beside a question.

use clew_context::engine::images;
use clew_context::model::ImageLimits;

use crate::support::build::{EVE, Shape, asked, text_channel};
use crate::support::world::{Start, World};

#[tokio::test]
async fn images_are_known_by_type_or_name_and_have_a_size_together() {
    let files = [
        ("a.png", Some("image/png"), 4_000_000),
        ("too_large.png", Some("image/png"), 4_000_001),
        ("b.JPG", None, 3_000_000),
        ("no_room.webp", Some("image/webp"), 1_000_001),
        ("vector.svg", Some("image/svg+xml"), 10),
        ("text.png", Some("text/plain"), 10),
        ("c.webp", Some("application/octet-stream"), 1_000_000),
        ("nothing_left.gif", Some("image/gif"), 1),
    ];
    let trigger = files
        .into_iter()
        .fold(asked(1, EVE, "which?"), |trigger, (name, kind, size)| {
            trigger.with_file(name, kind, size)
        });
    let start = Start::within(text_channel());
    let collected = start.collect(&World::default(), &trigger).await;
    let prepared = start.prepare(&collected);
    let chosen = |images: usize| {
        let limits = ImageLimits {
            images,
            ..ImageLimits::default()
        };
        let files = images::files(&collected, &prepared, &limits).into_iter();
        files
            .map(|one| String::from(one.file.filename))
            .collect::<Vec<_>>()
    };
    assert_eq!(chosen(10), ["a.png", "b.JPG", "c.webp"]);
    assert_eq!(chosen(2), ["a.png", "b.JPG"]);
    assert_eq!(chosen(0), [""; 0]);
}

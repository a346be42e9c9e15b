//! The text of message components, of both generations, in reading order.

use super::part::{self, List, Part, Text, note};
use super::wire::WireComponent;

/// Anything deeper is not read. Discord nests four levels (container, section or
/// row, accessory, options).
const MAX_DEPTH: usize = 8;

/// One line each: headings and texts, labels, placeholders and options,
/// descriptions of media, file names. The type is ignored, so a component of a
/// new type yields whatever fields it shares with known ones.
pub(super) fn texts(
    components: Vec<WireComponent<'_>>,
    unread: &mut Vec<&'static str>,
) -> Vec<Box<str>> {
    let mut lines = Vec::new();
    walk(components, 1, &mut lines, unread);
    lines
}

fn walk(
    components: Vec<WireComponent<'_>>,
    depth: usize,
    lines: &mut Vec<Box<str>>,
    unread: &mut Vec<&'static str>,
) {
    for component in components {
        own_text(&component, lines);
        let children = [
            component.components,
            component.component,
            component.accessory,
        ];
        for raw in children.into_iter().filter_map(Part::get) {
            if depth == MAX_DEPTH {
                note("components", unread);
                continue;
            }
            let (children, whole) = read(raw.get());
            if !whole {
                note("components", unread);
            }
            walk(children, depth + 1, lines, unread);
        }
    }
}

/// A list of components or a single one, and whether all of it was readable.
fn read(json: &str) -> (Vec<WireComponent<'_>>, bool) {
    if json.starts_with('[') {
        let list: List<_> = part::read(json).unwrap_or_default();
        return (list.items, !list.skipped);
    }
    match part::read(json) {
        Ok(component) => (vec![component], true),
        Err(_) => (Vec::new(), false),
    }
}

fn own_text(component: &WireComponent<'_>, lines: &mut Vec<Box<str>>) {
    let mut line = |part: &Part<Text<'_>>| {
        if let Part::Read(text) = part
            && !text.0.is_empty()
        {
            lines.push(text.0.as_ref().into());
        }
    };
    line(&component.label);
    line(&component.content);
    line(&component.placeholder);
    line(&component.description);
    line(&component.name);
    if let Part::Read(options) = &component.options {
        options.items.iter().for_each(|option| line(&option.label));
    }
    if let Part::Read(items) = &component.items {
        items.items.iter().for_each(|item| line(&item.description));
    }
}

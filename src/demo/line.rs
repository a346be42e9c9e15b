//! A line of telemetry: its fields, and a short form in their original order.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The parts of a line that the demo uses.
#[derive(Debug)]
pub(super) struct DemoLine {
    pub(super) event: String,
    pub(super) detail: Value,
    /// Without times and ids: `mem.ctx collect_ok case=thread msgs=40`.
    pub(super) short: String,
}

#[derive(Deserialize)]
struct RawLine<'a> {
    subsys: String,
    event: String,
    msg_id: Option<String>,
    #[serde(borrow)]
    detail: &'a RawValue,
}

/// Fields that hold ids, which mean nothing to a reader here, and the caps, which are long.
const PASSED_OVER: [&str; 3] = ["target", "reply_target", "caps"];

impl DemoLine {
    /// Reads a line about a message's turn; none if it is about another.
    pub(super) fn read(text: &str, message: &str) -> Option<Self> {
        let raw: RawLine<'_> = serde_json::from_str(text).ok()?;
        if raw.msg_id.as_deref() != Some(message) {
            return None;
        }
        Some(Self {
            short: format!("{} {}{}", raw.subsys, raw.event, fields(raw.detail.get())),
            event: raw.event,
            detail: serde_json::from_str(raw.detail.get()).ok()?,
        })
    }
}

/// ` name=value` for each field of a flat object; nested objects stay whole. A
/// detail only holds numbers and fixed words, so no value contains a quotation mark
/// or a comma.
fn fields(object: &str) -> String {
    let inside = object.trim().trim_start_matches('{');
    let inside = inside.strip_suffix('}').unwrap_or(inside);
    let mut depth = 0_usize;
    let pairs = inside.split(|character| {
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    });
    let pairs = pairs.filter_map(|pair| pair.split_once(':'));
    let named = pairs.map(|(name, value)| (name.replace('"', ""), value.replace('"', "")));
    let shown = named.filter(|(name, _)| !PASSED_OVER.contains(&name.as_str()));
    shown.fold(String::new(), |line, (name, value)| {
        line + " " + &name + "=" + &value
    })
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn details_are_shortened_in_their_order() {
        #[track_caller]
        fn check(object: &str, expected: &str) {
            assert_eq!(fields(object), expected, "{object}");
        }
        check("{}", "");
        check(r#"{"k":5,"reply_target":"12","count":0}"#, " k=5 count=0");
        check(
            r#"{"b":{"x":1,"y":2},"a":"word","c":null}"#,
            " b={x:1,y:2} a=word c=null",
        );
        check(r#"{"b":{"x":1}}"#, " b={x:1}");
        check(r#"{"b":{}}"#, " b={}");
    }
}

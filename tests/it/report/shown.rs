//! What people are shown: text of 80 columns, and a page.

use clew::report;

use super::world::{a_week, folder, options, report_of};

fn of_a_week() -> report::Report {
    let folder = folder(&[("clew.2026-01-02.jsonl", a_week().as_bytes())]);
    report::read(&[folder.path().to_owned()], &options()).unwrap()
}

#[test]
fn the_text_is_this() {
    insta::assert_snapshot!(report::text(&of_a_week()));
}

#[test]
fn the_page_needs_nothing_but_itself_and_tells_its_figures_in_words() {
    let html = report::page(&of_a_week()).html();
    for part in [
        "<script",
        "http://",
        "https://",
        "url(",
        "@import",
        "<link",
        "javascript:",
    ] {
        assert!(!html.contains(part), "{part}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(html.contains("prefers-color-scheme: dark"));
    let figures = html.matches("<svg ").count();
    assert_eq!(figures, 6);
    for part in ["<title id=", "<desc id=", "role=\"img\"", "<figcaption>"] {
        assert_eq!(html.matches(part).count(), figures, "{part}");
    }
    let ids: Vec<&str> = html
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    let with_figures = html
        .split("<section>")
        .filter(|section| section.contains("<svg "))
        .filter_map(|section| section.split_once("</h2>"))
        .filter_map(|(heading, _)| heading.rsplit('>').next());
    let expected = [
        "Turns",
        "Time",
        "Fallbacks",
        "Truncation",
        "Tokens and cost",
    ];
    assert_eq!(with_figures.collect::<Vec<_>>(), expected);
    for section in html.split("<section>").skip(1) {
        let tables = section.matches("<table>").count();
        assert!(tables > 0, "figures stand beside a table: {section}");
    }
    // Every element is closed, in order.
    let mut open = Vec::new();
    for tag in html
        .split('<')
        .skip(1)
        .filter_map(|rest| rest.split_once('>'))
    {
        let name = tag.0.split([' ', '\n']).next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.0.ends_with('/') && !["!doctype", "meta"].contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

/// Whatever could not be had, what happened most often stands first.
#[test]
fn fallbacks_of_all_kinds_stand_by_how_often_they_happened() {
    let mut lines = String::new();
    for (event, reason, times) in [
        ("collect_fallback", "timeout", 2),
        ("collect_fallback", "forbidden", 1),
        ("tail_fallback", "no_content", 4),
        ("send_fallback", "archived", 3),
    ] {
        let line = format!(
            "{{\"ts\":\"2026-01-02T03:04:05.678Z\",\"event\":\"{event}\",\"turn_id\":\"t1\",\
             \"detail\":{{\"reason\":\"{reason}\"}}}}\n"
        );
        lines += &line.repeat(times);
    }
    let report = report_of(&lines, &options());
    let rows = report["fallbacks"].as_array().unwrap().iter();
    let order: Vec<&str> = rows.map(|row| row["reason"].as_str().unwrap()).collect();
    assert_eq!(order, ["no_content", "archived", "timeout", "forbidden"]);
}

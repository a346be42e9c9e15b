//! A chart of lines: points over two axes, each series with a dash and a mark of its
//! own, so that nobody needs colours to tell them apart.

use std::fmt::Write;

use super::Axis;
use super::axis::Span;
use super::markup::{escape, svg_head};

/// Of the whole figure, in its own units.
const SIZE: (f64, f64) = (720.0, 300.0);
/// The plot's edges: left, top, right, bottom.
const EDGES: (f64, f64, f64, f64) = (64.0, 34.0, 704.0, 252.0);
/// Beyond this many points lines have no marks.
const MOST_MARKS: usize = 100;
/// The width of a line's sample in the legend, with its gaps.
const SAMPLE: f64 = 52.0;
/// The width of a character of the legend, about.
const CHARACTER: f64 = 7.0;

/// A chart of one or more lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub title: String,
    /// What it shows, for those who cannot see it.
    pub description: String,
    /// What goes to the right.
    pub x: Axis,
    /// What goes up.
    pub y: Axis,
    /// The lines; the style tells six apart.
    pub series: Vec<Series>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    pub(super) fn svg(&self, number: usize) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Span::of(self.x.scale, points().map(|(x, _)| *x));
        let y = Span::of(self.y.scale, points().map(|(_, y)| *y));
        let mut svg = svg_head(number, SIZE, &self.title, &self.description);
        self.grid(&mut svg, x, y);
        let mut at = EDGES.0;
        for (kind, series) in self.series.iter().enumerate() {
            let places = series.points.iter();
            let places = places.map(|(across, up)| (right(x, *across), down(y, *up)));
            line(&mut svg, kind, &places.collect::<Vec<_>>());
            at = legend(&mut svg, kind, &series.name, at);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn grid(&self, svg: &mut String, x: Span, y: Span) {
        let (left, top, far, bottom) = EDGES;
        for (value, label) in y.ticks() {
            let at = down(y, value);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{left}\" y1=\"{at:.1}\" x2=\"{far}\" y2=\"{at:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                at + 4.0,
                escape(&label)
            );
        }
        for (value, label) in x.ticks() {
            let at = right(x, value);
            let _ = writeln!(
                svg,
                "<line class=\"axis\" x1=\"{at:.1}\" y1=\"{bottom}\" x2=\"{at:.1}\" y2=\"{:.1}\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 5.0,
                bottom + 20.0,
                escape(&label)
            );
        }
        let middle = f64::midpoint(left, far);
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{left} {top}V{bottom}H{far}\"/>\
             <text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"8\" y=\"14\">{}</text>",
            SIZE.1 - 8.0,
            escape(&self.x.label),
            escape(&self.y.label)
        );
    }
}

fn right(x: Span, value: f64) -> f64 {
    let (left, _, far, _) = EDGES;
    left + x.place(value) * (far - left)
}

fn down(y: Span, value: f64) -> f64 {
    let (_, top, _, bottom) = EDGES;
    bottom - y.place(value) * (bottom - top)
}

fn line(svg: &mut String, kind: usize, places: &[(f64, f64)]) {
    let style = kind % 6;
    let joined: Vec<String> = places
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        svg,
        "<polyline class=\"line s{style}\" points=\"{}\"/>",
        joined.join(" ")
    );
    if places.len() <= MOST_MARKS {
        for place in places {
            mark(svg, style, *place);
        }
    }
}

/// A circle, square, triangle, diamond, plus or cross.
fn mark(svg: &mut String, style: usize, (x, y): (f64, f64)) {
    let path = match style {
        0 => "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
        1 => "m-3 -3h6v6h-6z",
        2 => "m0 -4l4 7h-8z",
        3 => "m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z",
        4 => "m-4 0h8m-4 -4v8",
        _ => "m-3 -3l6 6m0 -6l-6 6",
    };
    let _ = writeln!(
        svg,
        "<path class=\"mark s{style}\" d=\"M{x:.1} {y:.1}{path}\"/>"
    );
}

/// A line's sample and name; returns where the next one starts.
fn legend(svg: &mut String, kind: usize, name: &str, at: f64) -> f64 {
    let (style, end, height) = (kind % 6, at + 24.0, 24.0);
    let _ = writeln!(
        svg,
        "<line class=\"line s{style}\" x1=\"{at:.1}\" y1=\"{height}\" x2=\"{end:.1}\" y2=\"{height}\"/>"
    );
    mark(svg, style, (at + 12.0, height));
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\">{}</text>",
        end + 6.0,
        height + 4.0,
        escape(name)
    );
    let characters = u16::try_from(name.chars().count()).unwrap_or(u16::MAX);
    at + SAMPLE + f64::from(characters) * CHARACTER
}

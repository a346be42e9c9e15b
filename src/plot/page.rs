//! A page: its head, its style, and sections of texts, tables and figures.

use std::fmt::Write;

use super::markup::escape;
use super::{Bars, Chart, Table};

/// Of all pages. Contrasts are 4.5 to 1 and more for texts, 3 to 1 for lines.
const STYLE: &str = include_str!("page.css");

#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Its title and first heading.
    pub title: String,
    /// Paragraphs below it.
    pub lead: Vec<String>,
    pub sections: Vec<Section>,
}

/// A part of a page with a heading of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    pub title: String,
    /// What stands below it.
    pub parts: Vec<Part>,
}

/// What a section consists of.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    /// Lines to copy.
    Lines(String),
    Table(Table),
    /// Lines over two axes.
    Chart(Chart),
    Bars(Bars),
}

impl Page {
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        for text in &self.lead {
            paragraph(&mut html, text);
        }
        let mut figures = 0;
        for section in &self.sections {
            let _ = writeln!(html, "<section>\n<h2>{}</h2>", escape(&section.title));
            for part in &section.parts {
                part.html(&mut html, &mut figures);
            }
            html.push_str("</section>\n");
        }
        html.push_str("</main>\n</body>\n</html>\n");
        html
    }
}

impl Part {
    fn html(&self, html: &mut String, figures: &mut usize) {
        match self {
            Self::Text(text) => paragraph(html, text),
            Self::Lines(lines) => html.push_str(&format!("<pre>{}</pre>\n", escape(lines))),
            Self::Table(table) => html.push_str(&table.html()),
            Self::Chart(chart) => figure(html, &chart.title, &chart.svg(*figures)),
            Self::Bars(bars) => figure(html, &bars.title, &bars.svg(*figures)),
        }
        *figures += 1;
    }
}

fn paragraph(html: &mut String, text: &str) {
    let _ = writeln!(html, "<p>{}</p>", escape(text));
}

fn figure(html: &mut String, title: &str, svg: &str) {
    let _ = writeln!(
        html,
        "<figure><figcaption>{}</figcaption>\n\
         <div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">{svg}</div></figure>",
        escape(title),
        escape(title)
    );
}

//! As much of Prometheus' queries as dashboard and alerts use: which series an expression asks for, and by which labels it
//! groups them. What is not known here is an error, so that a typing mistake is none of the names.

/// What an expression may call, besides operators.
const FUNCTIONS: [&str; 10] = [
    "changes",
    "histogram_quantile",
    "increase",
    "max",
    "min",
    "rate",
    "scalar",
    "sum",
    "time",
    "topk",
];
/// Words between operands, and those before a list of labels.
const KEYWORDS: [&str; 6] = ["by", "or", "and", "unless", "on", "group_left"];

/// One request for series.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selector {
    /// The series' name.
    pub(super) metric: String,
    /// Labels, with the value or the pattern that they are to have.
    pub(super) matchers: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    /// A range, such as `[5m]`.
    Range,
    Sign(char),
}

fn tokens(expression: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => {
                let end = rest[1..].find('"').ok_or("an open quote")?;
                found.push(Token::Text(rest[1..=end].to_owned()));
                end + 2
            }
            '[' => {
                let end = rest.find(']').ok_or("an open range")?;
                let range = &rest[1..end];
                let is_duration = range.len() > 1
                    && range.ends_with(['s', 'm', 'h'])
                    && range[..range.len() - 1]
                        .bytes()
                        .all(|byte| byte.is_ascii_digit());
                if range != "$__rate_interval" && !is_duration {
                    return Err(format!("an odd range: {range}"));
                }
                found.push(Token::Range);
                end + 1
            }
            next if next.is_ascii_alphanumeric() || next == '_' => {
                let is_word = |byte: char| byte.is_ascii_alphanumeric() || "_.".contains(byte);
                let end = rest.find(|byte| !is_word(byte)).unwrap_or(rest.len());
                found.push(Token::Word(rest[..end].to_owned()));
                end
            }
            next if "(){},=~!<>+-*/".contains(next) => {
                found.push(Token::Sign(next));
                1
            }
            next if next.is_whitespace() => 1,
            other => return Err(format!("an odd sign: {other}")),
        };
        rest = &rest[length..];
    }
    Ok(found)
}

/// The series that an expression asks for.
///
/// # Errors
/// What cannot be read, or a parenthesis that stands alone.
pub(super) fn selectors(expression: &str) -> Result<Vec<Selector>, String> {
    let tokens = tokens(expression)?;
    let mut open = Vec::new();
    let mut found: Vec<Selector> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let next = tokens.get(at + 1);
        match &tokens[at] {
            Token::Sign(sign @ ('(' | '{')) => open.push(*sign),
            Token::Sign(')') if open.pop() != Some('(') => return Err("an odd )".to_owned()),
            Token::Sign('}') if open.pop() != Some('{') => return Err("an odd }".to_owned()),
            Token::Word(word) if open.last() == Some(&'{') => {
                let selector = found.last_mut().ok_or("labels of nothing")?;
                let value = tokens[at + 1..].iter().find_map(|token| match token {
                    Token::Text(text) => Some(text.clone()),
                    _ => None,
                });
                let value = value.ok_or_else(|| format!("{word} has no value"))?;
                selector.matchers.push((word.clone(), value));
            }
            // A list of labels.
            Token::Word(word) if is_keyword(word) && next == Some(&Token::Sign('(')) => {
                while tokens.get(at) != Some(&Token::Sign(')')) {
                    at += 1;
                }
            }
            Token::Word(word) if is_keyword(word) || is_number(word) => {}
            Token::Word(word) if FUNCTIONS.contains(&word.as_str()) => {
                let is_called = next == Some(&Token::Sign('('));
                let is_grouped = next == Some(&Token::Word("by".to_owned()));
                if !is_called && !is_grouped {
                    return Err(format!("{word} is not called"));
                }
            }
            Token::Word(word) => {
                let is_ours = ["clew_", "process_"]
                    .iter()
                    .any(|start| word.starts_with(start));
                if !is_ours && word != "up" {
                    return Err(format!("an unknown word: {word}"));
                }
                found.push(Selector {
                    metric: word.clone(),
                    matchers: Vec::new(),
                });
            }
            _ => {}
        }
        at += 1;
    }
    if open.is_empty() {
        Ok(found)
    } else {
        Err(format!("open: {open:?}"))
    }
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
}

/// The labels by which an expression groups.
pub(super) fn grouped_by(expression: &str) -> Vec<String> {
    let lists = expression.split(" by (").skip(1);
    let lists = lists.filter_map(|rest| rest.split(')').next());
    let labels = lists.flat_map(|list| list.split(','));
    labels.map(|label| label.trim().to_owned()).collect()
}

#[test]
fn expressions_are_read() {
    let read = |expression: &str| selectors(expression);
    let found =
        read(r#"sum by (le, model) (rate(clew_a_bucket{b="c",d=~"e|f"}[5m])) / sum(up) > 0.1"#);
    let matchers =
        [("b", "c"), ("d", "e|f")].map(|(label, value)| (label.to_owned(), value.to_owned()));
    let expected = [("clew_a_bucket", matchers.to_vec()), ("up", Vec::new())];
    let expected = expected.map(|(metric, matchers)| Selector {
        metric: metric.to_owned(),
        matchers,
    });
    assert_eq!(found.unwrap(), expected);
    for broken in [
        "sum(clew_a",
        "sum(clew_a))",
        "summ(clew_a)",
        "sum clew_a",
        "rate(clew_a[5])",
        "clew_a{b=\"c}",
        "clew_a{b}",
        "clev_a",
    ] {
        assert!(read(broken).is_err(), "{broken}");
    }
}

//! Rendering and cleaning, with what attackers write.

use super::*;

/// Names that are attacks themselves.
struct Hostile;

impl Names for Hostile {
    fn user(&self, id: u64) -> Option<String> {
        (id == 1).then(|| "<img src=x onerror=alert(1)>".to_owned())
    }

    fn channel(&self, id: u64) -> Option<String> {
        (id == 2).then(|| r#"general" onmouseover="alert(1)"#.to_owned())
    }

    fn role(&self, id: u64) -> Option<String> {
        (id == 3).then(|| "</span><script>alert(1)</script>".to_owned())
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(to_html(text, &Hostile).trim_end(), expected, "{text}");
}

#[test]
fn markdown_becomes_html() {
    check(
        "**a** *b* ~~c~~ `d <x>`",
        "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d &lt;x&gt;</code></p>",
    );
    check("one\ntwo", "<p>one<br>\ntwo</p>");
    check("> quoted", "<blockquote>\n<p>quoted</p>\n</blockquote>");
    check(
        "> one\n> two\nmine",
        "<blockquote>\n<p>one<br>\ntwo</p>\n</blockquote>\n<p>mine</p>",
    );
    check(
        "```x```\n> q\nmine",
        "<p><code>x</code></p>\n<blockquote>\n<p>q</p>\n</blockquote>\n<p>mine</p>",
    );
    check("```\n> a\nb\n```", "<pre><code>&gt; a\nb\n</code></pre>");
    check(
        "```rust\nVec<String> & <@1>\n```",
        "<pre><code>Vec&lt;String&gt; &amp; &lt;@1&gt;\n</code></pre>",
    );
    check(
        "-# a note\nand more",
        "<p><small>a note</small><br>\nand more</p>",
    );
}

#[test]
fn mentions_get_names_and_addresses_become_links() {
    let rel = r#"target="_blank" rel="noopener noreferrer nofollow""#;
    check(
        "<#9> <@&9> <@!9>",
        concat!(
            r#"<p><span class="mention" data-channel="9">#unknown</span> "#,
            r#"<span class="mention" data-role="9">@unknown</span> "#,
            r#"<span class="mention" data-user="9">@unknown</span></p>"#,
        ),
    );
    check("<:smile:12> <a:wave:13>", "<p>:smile: :wave:</p>");
    check(
        "<t:1767323045:f> <t:0> <t:253402300800> <t:-1:R>",
        "<p>2026-01-02 03:04 UTC 1970-01-01 00:00 UTC &lt;t:253402300800&gt; &lt;t:-1:R&gt;</p>",
    );
    check(
        "see https://a.example/x?y=1&z=2, and",
        &format!(
            r#"<p>see <a href="https://a.example/x?y=1&amp;z=2" {rel}>https://a.example/x?y=1&amp;z=2</a>, and</p>"#
        ),
    );
    check(
        "[here](https://a.example)",
        &format!(r#"<p><a href="https://a.example" {rel}>here</a></p>"#),
    );
    check(
        "![cat](https://a.example/cat.png)",
        &format!(r#"<p><a href="https://a.example/cat.png" {rel}>cat</a></p>"#),
    );
}

#[test]
fn nothing_that_runs_leaves() {
    let attacks = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)>",
        "<svg><script>alert(1)</script></svg>",
        "<iframe src=javascript:alert(1)>",
        "<a href=javascript:alert(1)>x</a>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:msgbox(1))",
        "![x](javascript:alert(1))",
        "![x](x \"onerror=alert(1)\")",
        "<javascript:alert(1)>",
        "<https://a.example/\"onmouseover=\"alert(1)>",
        "https://a.example/\"onmouseover=\"alert(1)",
        "https://a.example/'><script>alert(1)</script>",
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
        "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
        "<style>@import'javascript:alert(1)'</style>",
        "<body onload=alert(1)>",
        "<input autofocus onfocus=alert(1)>",
        "<details open ontoggle=alert(1)>",
        "<object data=javascript:alert(1)>",
        "<embed src=javascript:alert(1)>",
        "<base href=javascript:/a/>",
        "<form action=javascript:alert(1)><button>x",
        "<meta http-equiv=refresh content=0>",
        "`<script>alert(1)</script>`",
        "```\n</code></pre><script>alert(1)</script>\n```",
        "<@1> <#2> <@&3>",
        "<:\"><img src=x onerror=alert(1)>:1>",
        "**<b onclick=alert(1)>**",
        "<!--><script>alert(1)</script>-->",
        "<![CDATA[<script>alert(1)</script>]]>",
        "<?xml <script>alert(1)</script>?>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "<span class=\"mention\" style=\"position:fixed\" onclick=alert(1)>x</span>",
        "\u{0}<scr\u{0}ipt>alert(1)</script>",
    ];
    for attack in attacks {
        let html = to_html(attack, &Hostile);
        assert_harmless(&html, attack);
        // A second cleaning finds nothing: browsers read it as it was read here.
        assert_eq!(CLEANER.clean(&html).to_string(), html, "{attack}");
    }
}

/// Every element is one of ours, and has no attribute but ours.
#[track_caller]
fn assert_harmless(html: &str, attack: &str) {
    for tag in html.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let (name, rest) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        let name = name.trim_start_matches('/');
        assert!(ELEMENTS.contains(&name), "{attack}: {html}");
        let mut outside = rest.split('"').step_by(2);
        let is_ours = |part: &str| {
            let part = part.trim();
            let ours = [
                "",
                "href=",
                "target=",
                "rel=",
                "class=",
                "data-user=",
                "data-channel=",
                "data-role=",
            ];
            ours.contains(&part)
        };
        assert!(outside.all(is_ours), "{attack}: {html}");
        let address = rest.split("href=\"").nth(1).unwrap_or("https://");
        assert!(
            address.starts_with("https://") || address.starts_with("http://"),
            "{attack}: {html}"
        );
    }
}

#[test]
fn what_is_long_or_deep_is_bounded() {
    let deep = ">".repeat(MOST_BYTES);
    let emphasis = format!("{}{}", "*a ".repeat(2_600), "a*".repeat(2_600));
    let long = format!("{}end", "<@1>".repeat(MOST_BYTES));
    for text in [
        deep,
        emphasis,
        long,
        "[".repeat(MOST_BYTES),
        "*a_".repeat(MOST_BYTES),
    ] {
        let html = to_html(&text, &Hostile);
        assert!(!html.contains("end"));
        assert!(html.len() < MOST_BYTES * 60, "{}", html.len());
        assert!(html.matches("<blockquote>").count() <= DEEPEST);
        assert!(html.matches("<em>").count() <= DEEPEST);
    }
}

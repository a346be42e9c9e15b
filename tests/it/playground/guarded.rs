//! Who may use the page's server: nobody but the page.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clew::playground::{Error, Playground, PlaygroundOptions};
use clew_simulator::{Draft, Id};
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::client;
use super::opened;

/// Every route of the page's server.
const ROUTES: [(&str, &str); 20] = [
    ("GET", "/api/state"),
    ("GET", "/api/events"),
    ("GET", "/api/channels/1/messages"),
    ("POST", "/api/channels/1/messages"),
    ("POST", "/api/channels/1/threads"),
    ("PATCH", "/api/channels/1/messages/2"),
    ("DELETE", "/api/channels/1/messages/2"),
    ("PUT", "/api/channels/1/messages/2/reactions"),
    ("DELETE", "/api/channels/1/messages/2/reactions"),
    ("POST", "/api/channels/1/messages/2/press"),
    ("GET", "/api/channels/1/commands?author=3"),
    ("POST", "/api/channels/1/commands"),
    ("POST", "/api/channels/1/choices"),
    ("POST", "/api/channels/1/webhook"),
    ("POST", "/api/open"),
    ("POST", "/api/dms"),
    ("GET", "/api/turns/1"),
    ("POST", "/api/turns/1/preview"),
    ("PUT", "/api/faults"),
    ("POST", "/api/faults/disconnect"),
];
/// The page itself and its files.
const FILES: [(&str, &str); 2] = [("GET", "/"), ("GET", "/main.js")];

/// Where the page is served.
#[expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
fn address(playground: &Playground) -> SocketAddr {
    let mut parts = playground.link().split('/');
    parts.nth(2).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn other_pages_can_neither_read_nor_post() {
    let (playground, page) = opened(&[]).await;
    let own = format!("http://{}", address(&playground));
    let port = address(&playground).port();
    let foreign: [&[(&str, String)]; 8] = [
        &[("host", format!("clew.example:{port}"))],
        &[("host", "127.0.0.1:1".to_owned())],
        &[("host", format!("localhost.evil.example:{port}"))],
        &[("origin", "https://evil.example".to_owned())],
        &[("origin", "null".to_owned())],
        &[("origin", format!("https://127.0.0.1:{port}"))],
        &[
            ("sec-fetch-site", "cross-site".to_owned()),
            ("sec-fetch-mode", "cors".to_owned()),
        ],
        &[
            ("sec-fetch-site", "same-site".to_owned()),
            ("sec-fetch-mode", "no-cors".to_owned()),
        ],
    ];
    for (method, path) in ROUTES.into_iter().chain(FILES) {
        let method: Method = method.parse().unwrap();
        for headers in foreign {
            let mut request = page.request(method.clone(), path).json(&json!({}));
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 403, "{method} {path} {headers:?}");
            assert!(!answer.text().await.unwrap().contains(&page.token));
        }
    }
    for (method, path) in ROUTES {
        let method: Method = method.parse().unwrap();
        let (client, url) = (client(), format!("{own}{path}"));
        for token in ["", "0123456789abcdef0123456789abcdef", &page.token[1..]] {
            let request = client.request(method.clone(), &url).json(&json!({}));
            let answer = request.header("X-Clew-Token", token).send().await.unwrap();
            assert_eq!(answer.status(), 403, "{method} {path}");
        }
        // A form of another page needs no permission, but cannot send headers.
        let answer = client
            .request(method, &url)
            .body("a=1")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 403);
    }
    assert!(playground.discord().mistake().is_none());
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_own_requests_are_served() {
    let (playground, page) = opened(&[]).await;
    let port = address(&playground).port();
    for headers in [
        vec![
            ("host", format!("localhost:{port}")),
            ("origin", format!("http://localhost:{port}")),
        ],
        vec![
            ("origin", format!("http://127.0.0.1:{port}")),
            ("sec-fetch-site", "same-origin".to_owned()),
        ],
        vec![("sec-fetch-site", "none".to_owned())],
    ] {
        let mut request = page.request(Method::GET, "/api/state");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    // A link from elsewhere may show the page.
    let link = page
        .request(Method::GET, &format!("/?token={}", page.token))
        .header("sec-fetch-site", "cross-site");
    let link = link.header("sec-fetch-mode", "navigate");
    assert_eq!(link.send().await.unwrap().status(), 200);
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_tells_the_browser_what_may_run() {
    let (playground, page) = opened(&[]).await;
    for path in [
        "/",
        "/main.js",
        "/api/state",
        "/api/turns/1",
        "/nothing",
        "/../Cargo.toml",
    ] {
        let answer = page.request(Method::GET, path).send().await.unwrap();
        let headers: &HeaderMap = answer.headers();
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert_eq!(
            policy,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
        assert_eq!(headers["cache-control"], "no-store");
        assert!(!headers.contains_key("access-control-allow-origin"));
    }
    let missing = page
        .refused(Method::GET, "/nothing", Value::Null, 404)
        .await;
    assert_eq!(missing, "there is nothing at /nothing");
    playground.stop().await.unwrap();
}

/// Forms in which the page's path can be written, and a query that does not have the token.
const PAGE_PATHS: [&str; 31] = [
    "/",
    "//",
    "///",
    "/index.html",
    "//index.html",
    "/index.html/",
    "/index%2ehtml",
    "/%69ndex.html",
    "/INDEX.HTML",
    "/index.html%00",
    "/index.html%20",
    "/index.html;token",
    "/index.html.",
    "/index.html/.",
    "/.//index.html",
    "/%2F",
    "/.",
    "/./",
    "/./index.html",
    "/..",
    "/../index.html",
    "/main.js/..",
    "/main.js/../index.html",
    "/%2e/",
    "/%2e%2e/index.html",
    "/%2f",
    "/%2findex.html",
    "/\\index.html",
    "/%5cindex.html",
    "index.html",
    "*",
];
const WRONG_QUERIES: [&str; 6] = [
    "",
    "?",
    "?token=",
    "?token=0123456789abcdef0123456789abcdef",
    "?Token={token}",
    "?x={token}&token",
];

/// The page is only for those who have the link: other accounts of the machine can connect.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_link_gives_out_the_page() {
    for listen in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let options = PlaygroundOptions {
            settings: Vec::new(),
            listen: SocketAddr::from((listen, 0)),
        };
        let playground = Playground::start(options).await.unwrap();
        let (_, token) = playground.link().split_once("?token=").unwrap();
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, address(&playground).port()));
        for path in PAGE_PATHS {
            for query in WRONG_QUERIES {
                let query = query.replace("{token}", token);
                for method in ["GET", "HEAD", "POST", "OPTIONS", "TRACE", "BREW"] {
                    refuses(at, token, &format!("{method} {path}{query}"), "").await;
                }
            }
            // A form that is not the page's is refused with the right token, too.
            let answer = asked(at, &format!("GET {path}?token={token}"), "").await;
            assert!(!answer.contains(token), "{path}");
            let served = answer.contains("<title>Clew playground</title>");
            assert_eq!(served, ["/", "/index.html"].contains(&path), "{path}");
        }
        let whole = format!("GET http://{at}/index.html");
        refuses(at, token, &whole, "").await;
        let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
        refuses(at, token, "GET /", upgrade).await;
        refuses(at, token, "GET /api/events", upgrade).await;
        // The link's token opens the page, not what its scripts ask for.
        refuses(at, token, &format!("GET /api/state?token={token}"), "").await;
        let other = format!("host: evil.example:{}\r\n", at.port());
        refuses(at, token, &format!("GET /?token={token}"), &other).await;
        playground.stop().await.unwrap();
    }
}

/// Sends a request as it is, with a `Host` that is ours unless another is given. Returns the answer.
async fn asked(at: SocketAddr, line: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let host = if headers.starts_with("host:") {
        String::new()
    } else {
        format!("host: {at}\r\n")
    };
    let request = format!("{line} HTTP/1.1\r\n{host}{headers}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// The request is refused, and the answer holds nothing of the page.
async fn refuses(at: SocketAddr, token: &str, line: &str, headers: &str) {
    let answer = asked(at, line, headers).await;
    let is_refused = ["HTTP/1.1 403 ", "HTTP/1.1 400 "]
        .iter()
        .any(|status| answer.starts_with(status));
    assert!(is_refused, "{line} {headers}: {answer}");
    assert!(
        !answer.contains(token) && !answer.contains("<title>"),
        "{line}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_named() {
    let (playground, _page) = opened(&[]).await;
    let options = PlaygroundOptions {
        settings: Vec::new(),
        listen: address(&playground),
    };
    let Err(error @ Error::Listen { .. }) = Playground::start(options).await else {
        panic!("the port is taken");
    };
    assert!(error.to_string().contains("--port"), "{error}");
    playground.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_listeners_are_bounded() {
    let (playground, page) = opened(&[]).await;
    let large = json!({"author": "1", "content": "x".repeat(5 << 20)});
    let refused = page.refused(Method::POST, "/api/dms", large, 413).await;
    assert!(!refused.is_empty());
    // One is open already.
    let mut open = Vec::new();
    for _ in 1..16 {
        let answer = page
            .request(Method::GET, "/api/events")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    let refused = page
        .refused(Method::GET, "/api/events", Value::Null, 503)
        .await;
    assert!(refused.contains("close one"), "{refused}");
    playground.stop().await.unwrap();
}

/// A page that reads nothing loses its stream, and nobody waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_listener_is_cut() {
    let (playground, mut page) = opened(&[]).await;
    let mut slow = TcpStream::connect(address(&playground)).await.unwrap();
    let request = format!(
        "GET /api/events HTTP/1.1\r\nhost: {}\r\nx-clew-token: {}\r\nconnection: close\r\n\r\n",
        address(&playground),
        page.token
    );
    slow.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 256];
    assert!(slow.read(&mut first).await.unwrap() > 0);
    let (general, mira) = (page.channel("general"), page.person("mira"));
    let (general, mira) = (Id(general.parse().unwrap()), Id(mira.parse().unwrap()));
    let post = || {
        let embed = json!({"description": "x".repeat(50_000)});
        let posted = playground
            .discord()
            .post(general, mira, Draft::new("more").embed(embed));
        posted.to_string()
    };
    // Far more than sockets hold and than may wait.
    for nth in 0..900 {
        let posted = post();
        if nth % 100 == 0 {
            page.wait("dispatch", |event| event["d"]["id"] == posted)
                .await;
        }
    }
    let mut all = Vec::new();
    let end = tokio::time::timeout(Duration::from_mins(1), slow.read_to_end(&mut all)).await;
    end.expect("the stream ends").unwrap();
    assert!(all.ends_with(b"0\r\n\r\n"), "it ends cleanly");
    let last = playground
        .discord()
        .post(general, mira, "still here?")
        .to_string();
    page.wait("dispatch", |event| event["d"]["id"] == last)
        .await;
    playground.stop().await.unwrap();
}

//! What the page does, without a browser.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Longer than anything here takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(100);

/// An open page.
pub(crate) struct Page {
    client: Client,
    url: String,
    pub(crate) token: String,
    /// What the stream of events brings.
    events: mpsc::UnboundedReceiver<(String, Value)>,
    /// Those that came while others were waited for.
    kept: Vec<(String, Value)>,
    pub(crate) state: Value,
}

impl Page {
    pub(crate) async fn open(link: &str) -> Self {
        let client = client();
        let (url, token) = link.split_once("/?token=").unwrap();
        let (heard, events) = mpsc::unbounded_channel();
        let mut page = Self {
            client,
            url: url.to_owned(),
            token: token.to_owned(),
            events,
            kept: Vec::new(),
            state: Value::Null,
        };
        let stream = page
            .request(Method::GET, "/api/events")
            .send()
            .await
            .unwrap();
        tokio::spawn(read(stream, heard));
        page.state = page.get("/api/state").await;
        page
    }

    /// A request as the page sends it.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.header("X-Clew-Token", &self.token)
    }

    /// Status and body.
    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = self.request(method, path);
        let request = if body.is_null() {
            request
        } else {
            request.json(body)
        };
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> impl Future<Output = Value> {
        self.expect(Method::GET, path, Value::Null)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: Value) -> impl Future<Output = Value> {
        self.expect(Method::POST, path, body)
    }

    pub(crate) async fn expect(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, answer) = self.send(method, path, &body).await;
        assert_eq!(status, 200, "{path} {body}: {answer}");
        answer
    }

    /// The error of a request that is refused with this status.
    pub(crate) async fn refused(
        &self,
        method: Method,
        path: &str,
        body: Value,
        expected: u16,
    ) -> String {
        let (status, answer) = self.send(method, path, &body).await;
        assert_eq!(status, expected, "{path} {body}: {answer}");
        answer["error"].as_str().expect("a sentence").to_owned()
    }

    /// The id of a channel or thread by its name.
    pub(crate) fn channel(&self, name: &str) -> String {
        let guilds = self.state["guilds"].as_array().unwrap().iter();
        let mut channels = guilds.flat_map(|guild| guild["channels"].as_array().unwrap());
        let found = channels.find(|channel| channel["name"] == name);
        id(found.unwrap_or_else(|| panic!("no channel {name}")))
    }

    /// The id of a person by the user name.
    pub(crate) fn person(&self, name: &str) -> String {
        let mut people = self.state["people"].as_array().unwrap().iter();
        id(people.find(|person| person["username"] == name).unwrap())
    }

    pub(crate) fn bot(&self) -> String {
        id(&self.state["bot"])
    }

    /// Posts a message that mentions the bot, waits for the end of its turn, and returns all
    /// that is known of that.
    pub(crate) async fn ask(&mut self, channel: &str, author: &str, text: &str) -> Value {
        let content = format!("<@{}> {text}", self.bot());
        let body = json!({"author": author, "content": content});
        let asked = self
            .post(&format!("/api/channels/{channel}/messages"), body)
            .await;
        let trigger = id(&asked);
        self.wait("turn", |turn| {
            turn["trigger"] == trigger && !turn["outcome"].is_null()
        })
        .await;
        self.get(&format!("/api/turns/{trigger}")).await
    }

    /// Waits for an event that fits, and returns its data. Events of one name come in their
    /// order; among those of different names there is none.
    pub(crate) async fn wait(&mut self, event: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let data = self.next(event).await;
                if fits(&data) {
                    return data;
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("waited in vain for {event}"))
    }

    /// The next event of a name; those of other names are kept.
    async fn next(&mut self, event: &str) -> Value {
        if let Some(at) = self.kept.iter().position(|(name, _)| name == event) {
            return self.kept.remove(at).1;
        }
        loop {
            let (name, data) = self.events.recv().await.expect("the stream of events");
            if name == event {
                return data;
            }
            self.kept.push((name, data));
        }
    }
}

/// A client that knows no proxy.
pub(crate) fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

pub(crate) fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

/// Reads a stream of events until it ends.
async fn read(stream: Response, heard: mpsc::UnboundedSender<(String, Value)>) {
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut stream = stream.bytes_stream();
    let mut text = Vec::new();
    while let Some(Ok(bytes)) = stream.next().await {
        text.extend_from_slice(&bytes);
        while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = text.drain(..end + 2).collect();
            let event = String::from_utf8(event).unwrap();
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            let (Some(name), Some(data)) = (field("event: "), field("data: ")) else {
                continue;
            };
            let data = serde_json::from_str(data).unwrap();
            if heard.send((name.to_owned(), data)).is_err() {
                return;
            }
        }
    }
}

//! What was collected is judged once more right before each request: whatever is deleted,
//! edited, opted out of or closed by then does not reach the model.

use clew_simulator::{ChannelKind, Draft, Fault, File, Gate as Held, Id, OverwriteOf, Permissions};
use serde_json::json;

use super::{Place, only, place_with};
use crate::support::model::Behaviour;

/// In Boris' messages.
const MARK: &str = "kumquat";

fn image(name: &str) -> File {
    File {
        name: name.to_owned(),
        content_type: "image/gif".to_owned(),
        bytes: b"GIF89a and more".to_vec(),
        description: None,
    }
}

/// Boris' messages: one in the channel, one elsewhere.
struct Theirs {
    here: Id,
    elsewhere: Id,
    news: Id,
    /// Somebody who wrote nothing.
    dana: Id,
}

async fn with_theirs() -> (Place, Theirs) {
    place_with(&[], |world, seeds| {
        let news = world.channel(seeds.guild, ChannelKind::Text, "news");
        let draft = |text: &str| Draft::new(format!("{text} {MARK}")).attachment(image("b.gif"));
        let here = world.seed(seeds.channel, seeds.boris, draft("here"));
        let elsewhere = world.seed(news, seeds.boris, draft("afar"));
        Theirs {
            here,
            elsewhere,
            news,
            dana: world.member(seeds.guild, "Dana"),
        }
    })
    .await
}

impl Place {
    /// Ada replies to Boris and links to what he wrote elsewhere; her own image is not there
    /// until the gate opens.
    fn asks_while_an_image_comes(&self, theirs: &Theirs) -> Held {
        let link = self.link(theirs.news, theirs.elsewhere);
        let question = Draft::new(self.to_us(&format!("and this? {link}")));
        self.asks_with_an_image(question.reply_to(theirs.here))
    }

    fn asks_with_an_image(&self, question: Draft) -> Held {
        let (fault, gate) = Fault::held("GET", "/a.gif");
        self.stage.discord.fault(fault.once());
        self.post(self.channel, self.ada, question.attachment(image("a.gif")));
        gate
    }

    /// Only the bot may read this channel from now on.
    pub(super) fn closes_to_others(&self, channel: Id) {
        let (everyone, us) = (OverwriteOf::Role(self.guild), OverwriteOf::Member(self.us));
        let (none, view) = (Permissions::NONE, Permissions::VIEW_CHANNEL);
        let discord = &self.stage.discord;
        discord.overwrite(channel, everyone, none, view);
        discord.overwrite(channel, us, view, none);
    }

    /// All of the `number`th request to the model, from 1.
    async fn request(&self, number: usize) -> String {
        let requests = self.stage.model.wait_requests(number).await;
        requests[number - 1].to_string()
    }
}

/// What the model is asked if this happens while an image is fetched.
async fn asked_after(happens: impl AsyncFnOnce(&Place, &Theirs)) -> String {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    let gate = p.asks_while_an_image_comes(&theirs);
    let fetched = p.stage.discord.wait_request("GET", "/a.gif", 1).await;
    fetched.unwrap();
    happens(&p, &theirs).await;
    p.seen().await;
    gate.open();
    p.answer(p.channel, 1).await;
    let requests = p.stage.model.requests();
    bot.stop().await;
    assert_eq!(requests.len(), 1);
    requests[0].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stays_is_asked_with() {
    let asked = asked_after(async |_, _| ()).await;
    assert_eq!(asked.matches(MARK).count(), 2, "{asked}");
    assert_eq!(asked.matches("image_url\":{").count(), 3, "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_while_an_image_is_fetched_is_not_asked_with() {
    let asked = asked_after(async |p, theirs| {
        p.stage.discord.delete(p.channel, theirs.here);
        p.stage.discord.delete(theirs.news, theirs.elsewhere);
    })
    .await;
    assert!(!asked.contains(MARK) && !asked.contains("b.gif"), "{asked}");
    assert!(asked.contains("and this?"), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_edited_while_an_image_is_fetched_is_asked_with_as_it_reads_then() {
    let asked = asked_after(async |p, theirs| {
        p.stage.discord.edit(p.channel, theirs.here, "pears");
        p.stage.discord.edit(theirs.news, theirs.elsewhere, "plums");
    })
    .await;
    assert!(!asked.contains(MARK), "{asked}");
    assert!(
        asked.contains("pears") && asked.contains("plums"),
        "{asked}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_removed_while_an_image_is_fetched_is_not_asked_with() {
    let asked = asked_after(async |p, theirs| {
        let discord = &p.stage.discord;
        let mut edit = discord.message_object(p.channel, theirs.here);
        edit["guild_id"] = json!(p.guild.to_string());
        edit["attachments"] = json!([]);
        edit["edited_timestamp"] = json!("2100-01-01T00:00:00.000000+00:00");
        discord.dispatch_raw("MESSAGE_UPDATE", &edit.to_string());
    })
    .await;
    assert_eq!(asked.matches(MARK).count(), 2, "{asked}");
    assert_eq!(asked.matches("image_url\":{").count(), 2, "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_opts_out_while_an_image_is_fetched_is_not_asked_with() {
    let asked = asked_after(async |p, _| p.opts_out(p.boris).await).await;
    assert!(!asked.contains(MARK) && !asked.contains("b.gif"), "{asked}");
    assert!(asked.contains("and this?"), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_closes_while_an_image_is_fetched_is_not_asked_with() {
    let asked = asked_after(async |p, theirs| {
        p.closes_to_others(theirs.news);
    })
    .await;
    assert_eq!(asked.matches(MARK).count(), 1, "{asked}");
    assert!(!asked.contains("afar"), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_the_same_channel_is_not_asked_with_once_its_asker_may_not_read_it() {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    let link = p.link(p.channel, theirs.here);
    let gate = p.asks_with_an_image(Draft::new(p.to_us(&format!("and this? {link}"))));
    let fetched = p.stage.discord.wait_request("GET", "/a.gif", 1).await;
    fetched.unwrap();
    let (none, history) = (Permissions::NONE, Permissions::READ_MESSAGE_HISTORY);
    let ada = OverwriteOf::Member(p.ada);
    p.stage.discord.overwrite(p.channel, ada, none, history);
    p.seen().await;
    gate.open();
    p.answer(p.channel, 1).await;
    let asked = p.request(1).await;
    assert!(
        asked.contains("and this?") && !asked.contains(MARK),
        "{asked}"
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_between_rounds_is_not_asked_with_again() {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    p.stage.model.script(reads(p.channel, theirs.here));
    let (second, gate) = reads(theirs.news, theirs.elsewhere).held();
    p.stage.model.script(second);
    let question = Draft::new(p.to_us("what of it?")).reply_to(theirs.here);
    p.post(p.channel, p.ada, question);
    let before = p.request(2).await;
    assert_eq!(before.matches("here kumquat").count(), 2, "{before}");
    p.stage.discord.delete(p.channel, theirs.here);
    p.seen().await;
    gate.step(1);
    let after = p.request(3).await;
    assert!(!after.contains("here kumquat"), "{after}");
    assert!(
        after.contains("(What this showed was changed or removed.)"),
        "{after}"
    );
    p.answer(p.channel, 1).await;
    bot.stop().await;
}

/// The model reads what Boris wrote elsewhere with a tool, and another message after `happens`. What it is asked
/// with then.
async fn asked_after_tools(happens: impl AsyncFnOnce(&Place, &Theirs)) -> String {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    p.stage.model.script(reads(theirs.news, theirs.elsewhere));
    let own = p.post(p.channel, p.ada, "apples");
    let (second, gate) = reads(p.channel, own).held();
    p.stage.model.script(second);
    p.post(p.channel, p.ada, p.to_us("what of it?"));
    p.request(2).await;
    happens(&p, &theirs).await;
    p.seen().await;
    gate.step(1);
    let after = p.request(3).await;
    p.answer(p.channel, 1).await;
    bot.stop().await;
    after
}

fn reads(channel: Id, message: Id) -> Behaviour {
    let arguments = json!({"message": message.to_string(), "channel": channel.to_string()});
    let arguments = arguments.to_string();
    Behaviour::calls("", &[("get_message", &arguments)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_a_channel_that_closes_is_not_asked_with_again() {
    let kept = asked_after_tools(async |_, _| ()).await;
    assert!(kept.contains("afar kumquat"), "{kept}");
    let closed = asked_after_tools(async |p, theirs| {
        p.closes_to_others(theirs.news);
    });
    let closed = closed.await;
    assert!(!closed.contains("afar kumquat"), "{closed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_goes_with_its_author_alone() {
    let gone = asked_after_tools(async |p, _| p.opts_out(p.boris).await);
    let gone = gone.await;
    assert!(!gone.contains("afar kumquat"), "{gone}");
    let kept = asked_after_tools(async |p, theirs| p.opts_out(theirs.dana).await);
    let kept = kept.await;
    assert!(kept.contains("afar kumquat"), "{kept}");
}

/// A message that was withheld when it was read does not fall when somebody else opts out.
#[tokio::test(flavor = "multi_thread")]
async fn a_withheld_result_stays_when_others_opt_out() {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    p.opts_out(p.boris).await;
    p.stage.model.script(reads(theirs.news, theirs.elsewhere));
    let own = p.post(p.channel, p.ada, "apples");
    let (second, gate) = reads(p.channel, own).held();
    p.stage.model.script(second);
    p.post(p.channel, p.ada, p.to_us("what of it?"));
    let before = p.request(2).await;
    assert!(!before.contains("kumquat"), "{before}");
    p.opts_out(theirs.dana).await;
    gate.step(1);
    let after = p.request(3).await;
    assert!(!after.contains("(What this showed"), "{after}");
    p.answer(p.channel, 1).await;
    bot.stop().await;
}

/// What the bot holds from before an opt-out is withheld when a tool reads it.
#[tokio::test(flavor = "multi_thread")]
async fn who_opts_out_before_a_tool_reads_is_not_read() {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    let (first, gate) = reads(p.channel, theirs.here).held();
    p.stage.model.script(first);
    let question = Draft::new(p.to_us("what of it?")).reply_to(theirs.here);
    p.post(p.channel, p.ada, question);
    let before = p.request(1).await;
    assert!(before.contains("here kumquat"), "{before}");
    p.opts_out(p.boris).await;
    gate.step(1);
    let after = p.request(2).await;
    assert!(!after.contains("kumquat"), "{after}");
    p.answer(p.channel, 1).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_deleted_before_a_retry_is_not_asked_with_again() {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    p.stage.model.script(reads(theirs.news, theirs.elsewhere));
    let retry = vec![("retry-after", "2".to_owned())];
    let busy = Behaviour::Status(503, "{}".to_owned(), retry);
    p.stage.model.script(busy);
    p.post(p.channel, p.ada, p.to_us("what of it?"));
    let before = p.request(2).await;
    assert!(before.contains("afar kumquat"), "{before}");
    p.stage.discord.delete(theirs.news, theirs.elsewhere);
    let after = p.request(3).await;
    assert!(!after.contains("afar kumquat"), "{after}");
    p.answer(p.channel, 1).await;
    bot.stop().await;
}

/// A fact goes with the words that it was learnt from.
#[tokio::test(flavor = "multi_thread")]
async fn a_fact_whose_message_is_edited_between_rounds_is_not_asked_with_again() {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    let fact = json!({"fact": "likes kumquat jam"}).to_string();
    p.stage
        .model
        .script(Behaviour::calls("", &[("remember", &fact)]));
    let stated = p.post(
        p.channel,
        p.ada,
        p.to_us("remember that I like kumquat jam"),
    );
    p.answer(p.channel, 1).await;
    let (first, gate) = reads(theirs.news, theirs.elsewhere).held();
    p.stage.model.script(first);
    p.post(p.channel, p.boris, "or plums");
    p.post(p.channel, p.ada, p.to_us("what do I like?"));
    let before = p.request(3).await;
    assert!(before.contains("likes kumquat jam"), "{before}");
    p.stage.discord.edit(p.channel, stated, "never mind");
    p.seen().await;
    gate.step(1);
    let after = p.request(4).await;
    assert!(!after.contains("kumquat jam"), "{after}");
    p.answer(p.channel, 2).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_before_a_retry_is_not_asked_with_again() {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    let busy = Behaviour::Status(503, "{}".to_owned(), vec![("retry-after", "2".to_owned())]);
    p.stage.model.script(busy);
    let question = Draft::new(p.to_us("what of it?")).reply_to(theirs.here);
    p.post(p.channel, p.ada, question);
    let before = p.request(1).await;
    assert!(before.contains(MARK), "{before}");
    p.stage.discord.delete(p.channel, theirs.here);
    p.answer(p.channel, 1).await;
    let requests = p.stage.model.requests();
    assert_eq!(requests.len(), 2);
    let after = requests[1].to_string();
    assert!(!after.contains(MARK), "{after}");
    let lines = bot.stop().await;
    assert_eq!(only(&lines, "request_failed")["attempt"], 1);
    assert_eq!(only(&lines, "request_ok")["attempt"], 2);
}

/// Whoever edits on and on does not keep the model busy.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_changes_again_and_again_is_given_up() {
    let (p, theirs) = with_theirs().await;
    let bot = p.start().await;
    let gates = [(); 4].map(|()| {
        let retry = vec![("retry-after", "0".to_owned())];
        let (busy, gate) = Behaviour::Status(503, "{}".to_owned(), retry).held();
        p.stage.model.script(busy);
        gate
    });
    let question = Draft::new(p.to_us("what of it?")).reply_to(theirs.here);
    p.post(p.channel, p.ada, question);
    for (nth, gate) in gates.iter().enumerate() {
        p.request(nth + 1).await;
        let words = format!("pears {nth}");
        p.stage.discord.edit(p.channel, theirs.here, &words);
        p.seen().await;
        gate.step(1);
    }
    p.answer(p.channel, 1).await;
    assert_eq!(p.stage.model.requests().len(), 4);
    bot.stop().await;
}

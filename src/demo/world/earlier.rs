//! Scenes about what was said with the bot before.

use super::super::scene::{Answered, DemoScene, Expect};
use super::super::talk::DemoTalk;
use super::super::words;
use super::Plant;
use clew_simulator::{ChannelKind, Draft};

impl Plant {
    /// A reply to an earlier answer of the bot.
    pub(super) fn direct(&mut self) -> DemoScene {
        let channel = self.world.direct(self.ines);
        let mut talk = DemoTalk::ago(&self.world, channel, 25 * 60, 60);
        let asked = "How long does clear water tank B last if the inflow stops?";
        let asked = talk.say(&mut self.world, self.ines, asked);
        let said = "About six hours: 1,400 m3 at a demand of 230 m3/h.";
        let bot = self.world.bot;
        let said = talk.say(&mut self.world, bot, Draft::new(said).reply_to(asked));
        DemoScene {
            title: "A direct message",
            setting: "Ines replies to an answer of the bot. Nobody has to mention it there.",
            rule: "in a direct conversation the line of replies, the bot's own words in it",
            alone: "half of what?",
            because: "a reply asks about the line of replies",
            needs_model: false,
            settings: &[],
            channel,
            asked_before: Vec::new(),
            before: None,
            asker: self.ines,
            question: Draft::new("And at night, with half of that?").reply_to(said),
            expect: Expect {
                case: "direct",
                messages: 2,
                gets: 1,
                answered: Answered::Question,
                tools: &[],
                quoted: &["tank B last", "1,400 m3"],
            },
        }
    }

    /// Something told the bot before, beyond the history that a prompt shows.
    pub(super) fn recalled(&mut self) -> DemoScene {
        let stores = self.channel(ChannelKind::Text, "stores");
        let asked_before = words::STORES.map(|text| self.to_bot(text).content);
        DemoScene {
            title: "A question about something said to the bot before",
            setting: "Ada told it where the spare pump is, and asked about other things since; \
                      MAX_CONTEXT_MESSAGES=2 leaves room for the last of these.",
            rule: "of what was said before the stored history, the exchanges that match the \
                   question",
            alone: "which shelf?",
            because: "it matches what Ada said",
            needs_model: true,
            settings: &[("MAX_CONTEXT_MESSAGES", "2")],
            channel: stores,
            asked_before: asked_before.to_vec(),
            before: None,
            asker: self.crew[0],
            question: self.to_bot("on which shelf is the spare pump?"),
            expect: Expect {
                case: "lone",
                messages: 0,
                gets: 0,
                answered: Answered::Question,
                tools: &[],
                quoted: &["spare sump pump is on shelf 14"],
            },
        }
    }
}

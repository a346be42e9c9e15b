//! Message events as Discord sends them, about 1 KB each.

use std::fmt::Write as _;

use clew_simulator::Id;

/// The text of every event.
pub(crate) const TEXT: &str =
    "the pump on line 3 runs hot again, has anybody looked at the bearings since Monday?";

/// The place and the id of a message.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) guild: u64,
    pub(crate) channel: u64,
    pub(crate) id: u64,
}

/// The data of a `MESSAGE_CREATE` by one of 50 people, addressed to nobody.
pub(crate) fn create(place: Place) -> String {
    let mut json = message(place);
    json.insert_str(json.len() - 1, &of_gateway(place, ""));
    json
}

/// The same as a reply, with the message that it replies to.
pub(crate) fn reply(place: Place) -> String {
    let Place { channel, id, .. } = place;
    let parent = id - (1 << 22);
    let carried = message(Place {
        id: parent,
        ..place
    });
    let mut json = message(place).replacen("\"type\":0", "\"type\":19", 1);
    let reference = format!(
        r#","message_reference":{{"type":0,"channel_id":"{channel}","message_id":"{parent}"}},"referenced_message":{carried}"#
    );
    json.insert_str(json.len() - 1, &of_gateway(place, &reference));
    json
}

fn message(place: Place) -> String {
    let Place { channel, id, .. } = place;
    let author = 700_000_000_000_000_000 + id % 50;
    let mut json = String::with_capacity(1_400);
    write!(
        json,
        r#"{{"type":0,"tts":false,"timestamp":"2026-02-03T10:20:30.456000+00:00","pinned":false,"nonce":"1336421957353627648","mentions":[],"mention_roles":[],"mention_everyone":false,"id":"{id}","flags":0,"embeds":[],"edited_timestamp":null,"content":"{TEXT}","components":[],"channel_type":0,"channel_id":"{channel}","author":{{"username":"person{author}","public_flags":0,"primary_guild":null,"id":"{author}","global_name":"A Person","display_name_styles":null,"discriminator":"0","collectibles":null,"clan":null,"avatar_decoration_data":null,"avatar":"a1b2c3d4e5f60718293a4b5c6d7e8f90"}},"attachments":[]}}"#
    )
    .unwrap();
    json
}

fn of_gateway(place: Place, further: &str) -> String {
    let guild = place.guild;
    format!(
        r#","member":{{"roles":["710000000000000001","710000000000000002"],"premium_since":null,"pending":false,"nick":"Nick of Somebody","mute":false,"joined_at":"2024-05-06T07:08:09.123000+00:00","flags":0,"deaf":false,"communication_disabled_until":null,"banner":null,"avatar":null}}{further},"guild_id":"{guild}""#
    )
}

/// The places of events in a number of channels in turn, with ids growing from `first`.
pub(crate) fn places(
    guild: Id,
    channels: &[Id],
    first: u64,
    count: u64,
) -> impl Iterator<Item = Place> {
    let guild = guild.0;
    (0..count)
        .zip(channels.iter().cycle())
        .map(move |(number, channel)| Place {
            guild,
            channel: channel.0,
            id: first + (number << 22),
        })
}

//! Whether everybody who can read an answer may read what it was made from.
//!
//! An answer stands in a channel and is read by all who can view it, not only by
//! whoever asked. Who the members are is unknown to a bot; so the question is
//! asked of everybody who could be one: for any set of roles, and for everybody
//! whom an overwrite names.

use std::collections::BTreeSet;

use super::access::bits::{ADMINISTRATOR, CONNECT, READ_MESSAGE_HISTORY, VIEW_CHANNEL};
use crate::model::{Channel, ChannelKind, Guild, Overwrite, OverwriteTarget, RoleId};

/// The bits that decide.
const DECISIVE: u64 = ADMINISTRATOR | VIEW_CHANNEL | READ_MESSAGE_HISTORY | CONNECT;
/// Most combinations of roles and people looked at, about a millisecond each
/// hundred thousand. A server with more gets "no".
const MOST_CASES: usize = 500_000;

/// A channel or thread, with the channel whose overwrites apply to it: a
/// thread's parent, otherwise the channel itself.
#[derive(Debug, Clone, Copy)]
pub struct Spot<'a> {
    /// The channel or thread.
    pub channel: &'a Channel,
    /// Whose overwrites apply.
    pub judged: &'a Channel,
}

/// Whether everybody who can view `place` may read the history of `source`, both
/// in `guild`. Unknown is no: overwrites or roles that are not known, another
/// server, a private thread's members.
///
/// A place that is one person's own (a direct message) is not asked about here.
pub fn everybody_may_read(guild: &Guild, place: Spot<'_>, source: Spot<'_>) -> bool {
    let is_here = |spot: Spot<'_>| {
        spot.channel.guild == Some(guild.id) && spot.judged.guild == Some(guild.id)
    };
    if !is_here(place) || !is_here(source) {
        return false;
    }
    if place.channel.id == source.channel.id {
        return true;
    }
    // Its members are not known; those who can view its parent may be fewer or more.
    if source.channel.kind == ChannelKind::PrivateThread {
        return false;
    }
    let Some(layout) = Layout::of(guild, place, source) else {
        return false;
    };
    !layout.has_outsider()
}

/// What one role, or one person's own overwrite, does in both channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Effect {
    /// Permissions in the whole server.
    base: u64,
    place: Change,
    source: Change,
}

/// What an overwrite grants and denies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    allow: u64,
    deny: u64,
}

/// Both channels, reduced to what decides.
struct Layout {
    everyone: Effect,
    /// Each different role once, without administrators, who may read all.
    roles: Vec<Effect>,
    /// Each different pair of a person's own overwrites once; first that of
    /// people without any.
    people: Vec<Effect>,
    /// What reading the source takes.
    needed: u64,
}

impl Layout {
    fn of(guild: &Guild, place: Spot<'_>, source: Spot<'_>) -> Option<Self> {
        let in_place = place.judged.overwrites.as_deref()?;
        let in_source = source.judged.overwrites.as_deref()?;
        let change = |overwrites: &[Overwrite], target: OverwriteTarget| {
            let found = overwrites.iter().find(|one| one.target == target);
            found.map_or(Change::default(), |one| Change {
                allow: one.allow & DECISIVE,
                deny: one.deny & DECISIVE,
            })
        };
        let effect = |base: u64, target: OverwriteTarget| Effect {
            base: base & DECISIVE,
            place: change(in_place, target),
            source: change(in_source, target),
        };
        let everyone = RoleId::new(guild.id.get());
        let mut of_everyone = None;
        let mut roles = BTreeSet::new();
        for (role, base) in &guild.roles {
            let effect = effect(*base, OverwriteTarget::Role(*role));
            if *role == everyone {
                of_everyone = Some(effect);
            } else if base & ADMINISTRATOR == 0 {
                roles.insert(effect);
            }
        }
        let mut people = BTreeSet::from([Effect::default()]);
        for overwrite in in_place.iter().chain(in_source) {
            match overwrite.target {
                OverwriteTarget::Member(user) if guild.owner == Some(user) => {}
                OverwriteTarget::Member(user) => {
                    people.insert(effect(0, OverwriteTarget::Member(user)));
                }
                OverwriteTarget::Role(role) => {
                    guild.roles.iter().find(|(known, _)| *known == role)?;
                }
            }
        }
        let needs_connect = matches!(source.judged.kind, ChannelKind::Voice | ChannelKind::Stage);
        let connect = if needs_connect { CONNECT } else { 0 };
        Some(Self {
            everyone: of_everyone?,
            roles: roles.into_iter().collect(),
            people: people.into_iter().collect(),
            needed: VIEW_CHANNEL | READ_MESSAGE_HISTORY | connect,
        })
    }

    /// Whether somebody could view the place and not read the source. If so, two
    /// roles are enough for it: one that shows the place and one that hides the
    /// source, since each permission is granted or denied by a single role.
    fn has_outsider(&self) -> bool {
        if self.everyone.base & ADMINISTRATOR != 0 {
            return false;
        }
        let roles = self.roles.len();
        if (roles * roles / 2 + roles + 1).saturating_mul(self.people.len()) > MOST_CASES {
            return true;
        }
        let none = Effect::default();
        let with_none = |first: usize| std::iter::once(&none).chain(&self.roles[first..]);
        let pairs = with_none(0).enumerate().flat_map(|(number, one)| {
            let others = with_none(number.min(roles));
            others.map(move |other| [one, other])
        });
        pairs.into_iter().any(|held| {
            let mut people = self.people.iter();
            people.any(|own| self.is_outsider(&held, own))
        })
    }

    fn is_outsider(&self, held: &[&Effect; 2], own: &Effect) -> bool {
        let place = self.permissions(held, own, |effect| effect.place);
        let source = self.permissions(held, own, |effect| effect.source);
        place & VIEW_CHANNEL != 0 && source & self.needed != self.needed
    }

    /// Discord's arithmetic, as in [`super::access::permissions_in`].
    fn permissions(
        &self,
        held: &[&Effect; 2],
        own: &Effect,
        change: impl Fn(&Effect) -> Change,
    ) -> u64 {
        let base = held
            .iter()
            .fold(self.everyone.base, |all, one| all | one.base);
        let everyone = change(&self.everyone);
        let roles = held.iter().fold(Change::default(), |all, one| {
            let one = change(one);
            Change {
                allow: all.allow | one.allow,
                deny: all.deny | one.deny,
            }
        });
        [everyone, roles, change(own)]
            .into_iter()
            .fold(base, |all, one| all & !one.deny | one.allow)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::access::judge;
    use crate::model::{ChannelId, GuildId, UserId};

    const GUILD: GuildId = GuildId::new(1);
    const READ: u64 = VIEW_CHANNEL | READ_MESSAGE_HISTORY;
    const EVERYONE: OverwriteTarget = OverwriteTarget::Role(RoleId::new(1));
    const STAFF: OverwriteTarget = OverwriteTarget::Role(RoleId::new(2));
    const GUEST: OverwriteTarget = OverwriteTarget::Role(RoleId::new(3));
    const ADA: OverwriteTarget = OverwriteTarget::Member(UserId::new(11));

    fn overwrite((target, allow, deny): (OverwriteTarget, u64, u64)) -> Overwrite {
        Overwrite {
            target,
            allow,
            deny,
        }
    }

    fn channel(id: u64, kind: ChannelKind, overwrites: Option<Vec<Overwrite>>) -> Channel {
        Channel {
            guild: Some(GUILD),
            overwrites,
            ..Channel::new(ChannelId::new(id), kind)
        }
    }

    fn text(id: u64, overwrites: &[(OverwriteTarget, u64, u64)]) -> Channel {
        let overwrites = overwrites.iter().copied().map(overwrite).collect();
        channel(id, ChannelKind::Text, Some(overwrites))
    }

    fn guild(everyone: u64, staff: u64) -> Guild {
        let role = |id, bits| (RoleId::new(id), bits);
        Guild {
            id: GUILD,
            owner: Some(UserId::new(10)),
            roles: vec![role(1, everyone), role(2, staff), role(3, 0)],
        }
    }

    fn asked(guild: &Guild, place: &Channel, source: &Channel) -> bool {
        let spot = |channel| Spot {
            channel,
            judged: channel,
        };
        everybody_may_read(guild, spot(place), spot(source))
    }

    #[track_caller]
    fn check(
        place: &[(OverwriteTarget, u64, u64)],
        source: &[(OverwriteTarget, u64, u64)],
        expected: bool,
    ) {
        let found = asked(&guild(READ, READ), &text(2, place), &text(3, source));
        assert_eq!(found, expected);
    }

    #[test]
    fn readers_of_the_place_have_to_be_readers_of_the_source() {
        let staff_only = [(EVERYONE, 0, READ), (STAFF, READ, 0)];
        check(&[], &[], true);
        check(&[], &staff_only, false);
        check(&staff_only, &[], true);
        check(&staff_only, &staff_only, true);
        check(&[(GUEST, 0, READ)], &[(GUEST, 0, READ)], true);
        check(&[], &[(GUEST, 0, READ)], false);
        check(&[], &[(ADA, 0, READ)], false);
        check(&[(ADA, 0, VIEW_CHANNEL)], &[(ADA, 0, READ)], true);
        check(&[(EVERYONE, 0, READ), (ADA, READ, 0)], &staff_only, false);
        check(&[], &[(EVERYONE, 0, READ_MESSAGE_HISTORY)], false);
    }

    #[test]
    fn unknown_is_no() {
        let everybody = guild(READ, READ);
        let (place, source) = (text(2, &[]), text(3, &[]));
        let unknown = channel(4, ChannelKind::Text, None);
        assert!(!asked(&everybody, &place, &unknown));
        assert!(!asked(&everybody, &unknown, &source));
        let stranger = OverwriteTarget::Role(RoleId::new(99));
        assert!(!asked(&everybody, &place, &text(3, &[(stranger, READ, 0)])));
        let private = channel(3, ChannelKind::PrivateThread, Some(Vec::new()));
        assert!(!asked(&everybody, &place, &private));
        assert!(asked(&everybody, &private, &private));
        let mut elsewhere = source.clone();
        elsewhere.guild = Some(GuildId::new(9));
        assert!(!asked(&everybody, &place, &elsewhere));
        let no_roles = Guild {
            roles: Vec::new(),
            ..everybody
        };
        assert!(!asked(&no_roles, &place, &source));
    }

    #[test]
    fn voice_needs_connect_and_administrators_may_all() {
        let voice = channel(3, ChannelKind::Voice, Some(Vec::new()));
        assert!(!asked(&guild(READ, READ), &text(2, &[]), &voice));
        assert!(asked(&guild(READ | CONNECT, 0), &text(2, &[]), &voice));
        let hidden = [(EVERYONE, 0, READ)];
        let admins = guild(READ, ADMINISTRATOR);
        assert!(asked(&admins, &text(2, &hidden), &text(3, &hidden)));
        assert!(asked(
            &guild(ADMINISTRATOR, 0),
            &text(2, &[]),
            &text(3, &hidden)
        ));
    }

    /// Everybody may read the source, but there are too many cases to see it.
    #[test]
    fn a_server_with_too_many_cases_gets_no() {
        let spread = |number: u64| {
            let bit = |position: u64| (number >> position) & 1;
            (bit(0) * VIEW_CHANNEL) | (bit(1) * READ_MESSAGE_HISTORY) | (bit(2) * CONNECT)
        };
        let asked_with = |roles: u64| {
            let role = |number: u64| RoleId::new(number + 2);
            let guild = Guild {
                id: GUILD,
                owner: None,
                roles: std::iter::once((RoleId::new(1), READ))
                    .chain((0..roles).map(|number| (role(number), spread(number))))
                    .collect(),
            };
            let changes = (0..roles).map(|number| Overwrite {
                target: OverwriteTarget::Role(role(number)),
                allow: spread(number >> 3),
                deny: spread(number >> 6),
            });
            let people = (0..8).map(|number| Overwrite {
                target: OverwriteTarget::Member(UserId::new(number + 1)),
                allow: spread(number),
                deny: 0,
            });
            let place = channel(2, ChannelKind::Text, Some(changes.chain(people).collect()));
            asked(&guild, &place, &text(3, &[]))
        };
        assert!(asked_with(100));
        assert!(!asked_with(512));
    }

    /// Everybody who could be a member, one by one.
    fn by_trying(guild: &Guild, place: &Channel, source: &Channel) -> bool {
        let roles: Vec<RoleId> = guild.roles[1..].iter().map(|(id, _)| *id).collect();
        let mut sets = (0..1_u32 << roles.len()).map(|set| -> Vec<RoleId> {
            let is_in = |number: &usize| (set >> number) & 1 == 1;
            let numbers = (0..roles.len()).filter(is_in);
            numbers.map(|number| roles[number]).collect()
        });
        sets.all(|held| {
            (20..24).map(UserId::new).all(|user| {
                let may = |channel| judge(guild, user, &held, channel, channel);
                !may(place).may_view() || may(source).may_read()
            })
        })
    }

    fn layout() -> impl Strategy<Value = Vec<Overwrite>> {
        let target = prop_oneof![
            (1_u64..6).prop_map(|id| OverwriteTarget::Role(RoleId::new(id))),
            (20_u64..23).prop_map(|id| OverwriteTarget::Member(UserId::new(id))),
        ];
        let some = prop::sample::select(vec![0, VIEW_CHANNEL, READ_MESSAGE_HISTORY, READ]);
        let one = (target, some.clone(), some);
        prop::collection::vec(one.prop_map(overwrite), 0..7).prop_map(|mut all| {
            let mut seen = Vec::new();
            all.retain(|one| {
                let is_new = !seen.contains(&one.target);
                seen.push(one.target);
                is_new
            });
            all
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        /// The same as asking of each set of roles and each person.
        #[test]
        fn two_roles_are_enough(
            bases in prop::collection::vec(0_usize..5, 5),
            place in layout(),
            source in layout(),
        ) {
            let bits = [0, VIEW_CHANNEL, READ_MESSAGE_HISTORY, READ, ADMINISTRATOR];
            let role = |(number, base): (u64, &usize)| (RoleId::new(number), bits[*base]);
            let guild = Guild {
                id: GUILD,
                owner: None,
                roles: (1..).zip(&bases).map(role).collect(),
            };
            let place = channel(2, ChannelKind::Text, Some(place));
            let source = channel(3, ChannelKind::Text, Some(source));
            prop_assert_eq!(
                asked(&guild, &place, &source),
                by_trying(&guild, &place, &source)
            );
        }
    }
}

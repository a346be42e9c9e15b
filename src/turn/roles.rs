//! The asker's roles: those that came with the trigger. An agent run takes long enough for
//! them to change, so that its tools go by those of the last minute.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Turn;
use clew_context::model::{Access, GuildId, RoleId, TurnRequest, UnixMillis};
use clew_discord::guild_state::AnswerPlace;

/// After this time they are read again, before tools run.
const MAX_AGE: Duration = Duration::from_mins(1);

/// The asker's roles in an agent run.
#[derive(Debug)]
pub(super) struct LatestRoles(Mutex<ReadRoles>);

#[derive(Debug)]
struct ReadRoles {
    /// None if they are unknown: then nothing is allowed.
    roles: Option<Vec<RoleId>>,
    at: UnixMillis,
}

impl LatestRoles {
    /// Those that came with the call.
    pub(super) fn of(request: &TurnRequest, now: UnixMillis) -> Self {
        Self(Mutex::new(ReadRoles {
            roles: request.asker_roles.clone(),
            at: now,
        }))
    }
}

/// Where the answer will be read, by the roles that came with the trigger.
pub(super) fn answer_place(request: &TurnRequest) -> AnswerPlace<'_> {
    AnswerPlace {
        asker: request.asker(),
        roles: request.asker_roles.as_deref(),
        channel: request.trigger.channel,
        is_private: request.is_private,
    }
}

impl ReadRoles {
    /// A clock that is set back makes them old.
    fn are_fresh(&self, now: UnixMillis) -> bool {
        self.roles.is_some() && now.before(MAX_AGE) < self.at && self.at <= now
    }
}

impl Turn<'_> {
    /// Judges by the roles that the asker has, as far as is known.
    pub(super) fn with_roles<T>(&self, judge: impl FnOnce(Option<&[RoleId]>) -> T) -> T {
        let Some(LatestRoles(latest)) = &self.roles else {
            return judge(self.job.request.asker_roles.as_deref());
        };
        let latest = latest.lock();
        judge(latest.roles.as_deref())
    }

    /// Reads the roles of an agent run's asker again if it is time.
    pub(super) async fn refresh_roles(&self) {
        let (Some(LatestRoles(latest)), Some(guild)) = (&self.roles, self.ids.guild) else {
            return;
        };
        let now = self.services.memory.now();
        if latest.lock().are_fresh(now) {
            return;
        }
        let roles = self.read_roles(guild).await;
        let mut latest = latest.lock();
        *latest = ReadRoles { roles, at: now };
    }

    /// The asker's roles as they are now, none through an app; `None` if they cannot be read, as
    /// of somebody who is no member any more.
    pub(super) async fn roles_now(&self) -> Option<Vec<RoleId>> {
        match self.ids.guild {
            Some(guild) if self.proxy().is_none() => self.read_roles(guild).await,
            _ => Some(Vec::new()),
        }
    }

    /// Whether an asker with these roles may view the trigger's channel, as far as is known.
    pub(super) fn may_be_here(&self, roles: &[RoleId]) -> bool {
        let (guild_state, asker) = (&self.services.guild_state, self.job.request.asker());
        let access = guild_state.access(asker, Some(roles), self.trigger().channel);
        self.proxy().is_some() || access != Access::Denied
    }

    async fn read_roles(&self, guild: GuildId) -> Option<Vec<RoleId>> {
        let deadline = Instant::now() + self.services.settings.tools.timeout;
        let (reader, asker) = (self.services.rest.reader(), self.job.request.asker());
        let roles = reader.member_roles(guild, asker, deadline).await;
        roles
            .inspect_err(|error| tracing::info!(%error, "the roles of an asker are unknown"))
            .ok()
    }
}

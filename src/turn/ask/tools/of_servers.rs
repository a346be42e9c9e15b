//! Calls of servers' tools in a turn: for whom, on which terms, and after what.

use std::collections::BTreeSet;

use super::ToolLoop;
use crate::model::{Agent, Consent, Receipt};
use crate::telemetry::event::ToolOutcome;
use crate::tools::{AgreedTool, Arguments, Asker, Caller, CallerTools, Terms};
use crate::turn::Turn;
use crate::turn::ask::consent::{self, Allowed, AskedCall, NotAllowed};
use crate::turn::background::Background;
use crate::turn::gather::TurnMaterial;
use clew_context::model::RoleId;
use clew_store::model::StoredRole;

impl ToolLoop<'_> {
    /// Whether the model has read what came from elsewhere in this turn: links, what any tool gave,
    /// what stored answers were made from.
    pub(super) fn has_read_elsewhere(&self, asker: &Asker<'_>) -> bool {
        let mut results = self.rounds.iter().flat_map(|round| &round.calls);
        !asker.seen.is_empty()
            || results.any(|called| {
                let asked = matches!(
                    called.result.consent,
                    Some(Consent::Auto | Consent::Allowed)
                );
                called.result.outcome == ToolOutcome::Ok || asked
            })
    }

    /// Whether the block or the conversation's history has an answer of ours that was made from
    /// what came from elsewhere: it may repeat it. What is not known of an answer counts as such.
    pub(super) async fn shows_what_was_read(
        &self,
        material: &TurnMaterial,
        background: &Background,
    ) -> bool {
        let (memory, us) = (&self.turn.services.memory, &material.collected.turn.us);
        let shown = material.block().items().map(|item| &item.message);
        let shown = shown.filter(|message| message.author.id == us.user);
        let rows = background.rows.iter();
        let said = rows.filter(|row| row.role == StoredRole::Assistant);
        let answers: BTreeSet<_> = shown
            .map(|message| (message.channel, Some(message.id)))
            .chain(said.map(|row| (row.channel, row.message)))
            .collect();
        for (channel, message) in answers {
            let stored = match message {
                Some(message) => memory.receipt_of(channel, message).await.ok().flatten(),
                None => None,
            };
            let receipt = stored.and_then(|stored| Receipt::parse(&stored.body));
            if receipt.is_none_or(|receipt| receipt.is_of_elsewhere(channel)) {
                return true;
            }
        }
        false
    }

    /// The tool of a server that a call may be made of now; asks people if it has to.
    pub(super) async fn agreed(
        &self,
        asker: &Asker<'_>,
        has_read: bool,
        name: &str,
        arguments: &Arguments,
    ) -> Result<(AgreedTool, Allowed), NotAllowed> {
        let tools = asker.of_servers.filter(|_| self.named(name).is_some());
        let Some((tools, tool)) = tools.and_then(|all| Some((all, all.agreed(name, has_read)?)))
        else {
            return Err(consent::NOT_ASKED);
        };
        let Terms::Consent(approvers) = tool.terms.clone() else {
            return Ok((tool, Allowed::alone()));
        };
        let call = AskedCall {
            tool: &tool,
            arguments,
        };
        let allowed = self.asked.ask(self.turn, call, approvers).await?;
        // Rights and the tool may be others by now.
        let again = match self.turn.roles_now().await {
            Some(roles) if self.turn.may_be_here(&roles) => {
                tools.with_roles(&roles).agreed(name, true)
            }
            _ => None,
        };
        let stands = again.is_some_and(|again| {
            again.names() == tool.names() && again.fingerprint() == tool.fingerprint()
        });
        if stands && self.turn.must_not_be_blocked().is_ok() {
            Ok((tool, allowed))
        } else {
            Err(self.asked.overruled(self.turn, allowed).await)
        }
    }
}

/// Whether the turn's server may have a role.
pub(super) fn has_role<'t>(turn: &'t Turn<'_>) -> impl Fn(RoleId) -> bool + Sync + 't {
    let (guild_state, guild) = (&turn.services.guild_state, turn.ids.guild);
    move |role| guild.is_some_and(|guild| !guild_state.lacks_role(guild, role))
}

/// What the asker may use of servers' tools, by the roles that they have now.
pub(super) fn of_servers<'c>(
    turn: &'c Turn<'_>,
    material: &TurnMaterial,
    agent: &'c Agent,
    roles: &'c [RoleId],
    has_role: &'c (dyn Fn(RoleId) -> bool + Sync),
) -> CallerTools<'c> {
    let channel = material.collected.turn.channel.as_ref();
    turn.services.tool_servers.for_caller(Caller {
        agent: agent.name.as_str(),
        guild: turn.ids.guild,
        channel: turn.trigger().channel,
        parent: channel.and_then(|channel| channel.parent),
        roles,
        has_role,
        asker: turn.proxy().is_none().then(|| turn.job.request.asker()),
        is_private: turn.job.request.is_private,
        activity: &turn.job.activity,
    })
}

/// The asker's roles; none if they are unknown.
pub(super) fn roles(turn: &Turn<'_>) -> Vec<RoleId> {
    turn.with_roles(|roles| roles.unwrap_or_default().to_vec())
}

//! The link to add the bot to a server.

use clew_context::model::ApplicationId;
use twilight_model::guild::Permissions;

/// Requested permissions, by Discord's names; the README explains each.
const PERMISSIONS: [(Permissions, &str); 7] = [
    (Permissions::VIEW_CHANNEL, "View Channels"),
    (Permissions::READ_MESSAGE_HISTORY, "Read Message History"),
    (Permissions::SEND_MESSAGES, "Send Messages"),
    (Permissions::CREATE_PUBLIC_THREADS, "Create Public Threads"),
    (
        Permissions::SEND_MESSAGES_IN_THREADS,
        "Send Messages in Threads",
    ),
    (Permissions::ATTACH_FILES, "Attach Files"),
    (Permissions::ADD_REACTIONS, "Add Reactions"),
];

/// The invite link, with the scopes and permissions the bot needs.
pub fn invite(application: ApplicationId) -> String {
    let all = PERMISSIONS.iter().map(|(permission, _)| *permission);
    let all: Permissions = all.collect();
    format!(
        "https://discord.com/oauth2/authorize?client_id={application}\
         &scope=bot+applications.commands&permissions={}",
        all.bits()
    )
}

/// The names of those that `permissions` lacks; administrators lack none.
pub(crate) fn missing(permissions: u64) -> Vec<&'static str> {
    let has = Permissions::from_bits_truncate(permissions);
    if has.contains(Permissions::ADMINISTRATOR) {
        return Vec::new();
    }
    let lacking = PERMISSIONS
        .iter()
        .filter(|(permission, _)| !has.contains(*permission));
    lacking.map(|(_, name)| *name).collect()
}

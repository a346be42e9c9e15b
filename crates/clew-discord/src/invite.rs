//! The link to add the bot to a server.

use clew_context::model::ApplicationId;
use twilight_model::guild::Permissions;

/// Requested permissions; the README explains each.
const PERMISSIONS: Permissions = Permissions::VIEW_CHANNEL
    .union(Permissions::READ_MESSAGE_HISTORY)
    .union(Permissions::SEND_MESSAGES)
    .union(Permissions::CREATE_PUBLIC_THREADS)
    .union(Permissions::SEND_MESSAGES_IN_THREADS)
    .union(Permissions::ATTACH_FILES)
    .union(Permissions::ADD_REACTIONS);

/// The invite link, with the scopes and permissions the bot needs.
pub fn invite(application: ApplicationId) -> String {
    format!(
        "https://discord.com/oauth2/authorize?client_id={application}\
         &scope=bot+applications.commands&permissions={}",
        PERMISSIONS.bits()
    )
}

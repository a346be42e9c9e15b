//! Compares registered commands with our definitions, ignoring what Discord
//! adds (ids, versions, empty lists, explicit defaults).

use twilight_model::application::command::{Command, CommandOption, CommandOptionChoice};
use twilight_util::builder::command::CommandBuilder;

/// Compares the parts we define. A command of one server does not set where it
/// can be used, so that is skipped then.
pub(super) fn same(registered: &[Command], wanted: &[Command], everywhere: bool) -> bool {
    let plain = |commands: &[Command]| {
        let commands = commands.iter().map(|one| plain(one, everywhere));
        let mut commands: Vec<Command> = commands.collect();
        let place = |one: &Command| (u8::from(one.kind), one.name.clone());
        commands.sort_by_cached_key(place);
        commands
    };
    plain(registered) == plain(wanted)
}

/// Only the parts of a command that we define.
fn plain(command: &Command, everywhere: bool) -> Command {
    let (name, description) = (&command.name, &command.description);
    let mut plain = CommandBuilder::new(name, description, command.kind).build();
    plain.default_member_permissions = command.default_member_permissions;
    if everywhere {
        plain.contexts = Some(sorted(command.contexts.as_ref()));
        plain.integration_types = Some(sorted(command.integration_types.as_ref()));
    }
    plain.options = command.options.iter().map(plain_option).collect();
    plain
}

/// Only the parts of an option that we define; the order of options matters.
fn plain_option(option: &CommandOption) -> CommandOption {
    let plain_choice = |one: &CommandOptionChoice| CommandOptionChoice {
        name_localizations: None,
        ..one.clone()
    };
    let choices = option.choices.iter().flatten().map(plain_choice);
    let options = option.options.iter().flatten().map(plain_option);
    CommandOption {
        required: Some(option.required.unwrap_or(false)),
        autocomplete: Some(option.autocomplete.unwrap_or(false)),
        min_length: Some(option.min_length.unwrap_or(0)),
        choices: Some(choices.collect()),
        channel_types: Some(sorted(option.channel_types.as_ref())),
        options: Some(options.collect()),
        name_localizations: None,
        description_localizations: None,
        ..option.clone()
    }
}

/// Contexts, installation or channel types in the order of Discord's numbers; no list is an
/// empty one.
fn sorted<T: Copy + Into<u8>>(items: Option<&Vec<T>>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().flatten().copied().collect();
    items.sort_by_key(|item| (*item).into());
    items
}

#[cfg(test)]
mod tests {
    use twilight_model::application::command::CommandOptionValue;
    use twilight_model::guild::Permissions;
    use twilight_model::id::Id;

    use super::super::definitions::tests::sample;
    use super::*;

    /// Our commands as Discord returns them: reordered, with its additions.
    fn echoed() -> Vec<Command> {
        let mut echoed = sample(true);
        echoed.reverse();
        for command in &mut echoed {
            command.id = Some(Id::new(5));
            command.version = Id::new(6);
            command.nsfw = Some(false);
            command.contexts.as_mut().unwrap().reverse();
            command.options.iter_mut().for_each(fill_in);
        }
        echoed
    }

    fn fill_in(option: &mut CommandOption) {
        option.required.get_or_insert(false);
        option.autocomplete.get_or_insert(false);
        option.choices.get_or_insert_default();
        for inner in option.options.get_or_insert_default() {
            fill_in(inner);
        }
    }

    /// The echoed command with this name.
    fn named<'a>(echoed: &'a mut [Command], name: &str) -> &'a mut Command {
        echoed.iter_mut().find(|one| one.name == name).unwrap()
    }

    #[test]
    fn what_discord_adds_is_no_difference() {
        let wanted = sample(true);
        assert!(same(&echoed(), &wanted, true));
        assert!(same(&echoed(), &sample(false), false));
        let json = serde_json::to_string(&wanted).unwrap();
        let read: Vec<Command> = serde_json::from_str(&json).unwrap();
        assert!(same(&read, &wanted, true));
    }

    #[test]
    fn every_difference_of_ours_counts() {
        #[track_caller]
        fn check(change: impl FnOnce(&mut Vec<Command>)) {
            let mut echoed = echoed();
            change(&mut echoed);
            assert!(!same(&echoed, &sample(true), true));
        }
        fn inner(command: &mut Command, sub: usize) -> &mut Vec<CommandOption> {
            command.options[sub].options.as_mut().unwrap()
        }
        check(Vec::clear);
        check(|all| drop(all.pop()));
        check(|all| all[0].description.push('!'));
        check(|all| all[0].contexts = None);
        check(|all| all[0].integration_types = None);
        check(|all| named(all, "settings").default_member_permissions = None);
        check(|all| {
            named(all, "ask").default_member_permissions = Some(Permissions::MANAGE_GUILD);
        });
        check(|all| named(all, "ask").options[0].max_length = Some(100));
        check(|all| named(all, "ask").options[0].required = Some(true));
        check(|all| named(all, "memory").options.swap(0, 1));
        check(|all| drop(inner(named(all, "memory"), 0).pop()));
        check(|all| inner(named(all, "memory"), 0)[0].min_length = None);
        check(|all| inner(named(all, "memory"), 0)[0].required = None);
        check(|all| inner(named(all, "memory"), 1)[0].autocomplete = None);
        let set = |all: &mut Vec<Command>| inner(named(all, "settings"), 0).clone();
        let put = |all: &mut Vec<Command>, options| *inner(named(all, "settings"), 0) = options;
        for change in [
            |set: &mut Vec<CommandOption>| set[0].max_length = None,
            |set: &mut Vec<CommandOption>| set[0].min_value = Some(CommandOptionValue::Integer(1)),
            |set: &mut Vec<CommandOption>| set[1].channel_types = None,
            |set: &mut Vec<CommandOption>| drop(set[2].choices.as_mut().unwrap().pop()),
            |set: &mut Vec<CommandOption>| set[2].choices.as_mut().unwrap()[0].name.push('!'),
        ] {
            check(|all| {
                let mut options = set(all);
                change(&mut options);
                put(all, options);
            });
        }
        assert!(!same(&sample(false), &sample(true), true));
    }
}

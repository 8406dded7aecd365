//! Flags that published SDKs, adapters and scripts pass and that mean nothing here: a run that has them continues with one
//! warning. A flag that asks for a limit is never among them: what cannot be kept is refused.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// A flag that is taken and has no effect.
struct Foreign {
    name: &'static str,
    takes: FlagValue,
    /// The reason why it has no effect.
    reason: &'static str,
}

#[derive(Clone, Copy)]
enum FlagValue {
    Nothing,
    /// A value, which may be left out.
    Perhaps,
    Value,
}

const fn flag(name: &'static str, takes: FlagValue, reason: &'static str) -> Foreign {
    Foreign { name, takes, reason }
}

const NO_BROWSER: &str = "no browser is driven here";
const NO_CLOUD: &str = "sessions run on this machine alone";
const NO_REMOTE: &str = "a session cannot be watched from elsewhere";
const NO_PANE: &str = "no tmux session is made for a worktree";

const FOREIGN: [Foreign; 20] = [
    flag("background", FlagValue::Nothing, "the run stays in the foreground"),
    flag("bg", FlagValue::Nothing, "the run stays in the foreground"),
    flag("brief", FlagValue::Nothing, "answers are as long as the model makes them"),
    flag("channels", FlagValue::Value, "there are no channels here"),
    flag("chrome", FlagValue::Nothing, NO_BROWSER),
    flag("cloud", FlagValue::Nothing, NO_CLOUD),
    flag("desktop", FlagValue::Nothing, NO_CLOUD),
    flag("environment", FlagValue::Value, NO_CLOUD),
    flag("file", FlagValue::Value, "files are not fetched from the provider"),
    flag("from-pr", FlagValue::Perhaps, "sessions are not linked to pull requests"),
    flag("ide", FlagValue::Nothing, "editors reach a session through their own protocol"),
    flag("no-chrome", FlagValue::Nothing, NO_BROWSER),
    flag("plugin-url", FlagValue::Value, "plugins come from directories and marketplaces"),
    flag("rc", FlagValue::Perhaps, NO_REMOTE),
    flag("remote-control", FlagValue::Perhaps, NO_REMOTE),
    flag("remote-control-session-name-prefix", FlagValue::Value, NO_REMOTE),
    flag("sdk-url", FlagValue::Value, "a host speaks over standard input and output"),
    flag("system-prompt-snapshot", FlagValue::Value, "the system prompt is not kept"),
    flag("teleport", FlagValue::Perhaps, NO_CLOUD),
    flag("tmux", FlagValue::Perhaps, NO_PANE),
];

/// The flags of others that a command line has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForeignArgs(Vec<(&'static str, &'static str)>);

impl ForeignArgs {
    /// One line for each.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, reason)| format!("--{name} has no effect: {reason}"))
    }
}

impl FromArgMatches for ForeignArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = |flag: &&Foreign| match flag.takes {
            FlagValue::Nothing => matches.get_flag(flag.name),
            FlagValue::Perhaps | FlagValue::Value => matches.contains_id(flag.name),
        };
        Ok(Self(FOREIGN.iter().filter(is_given).map(|flag| (flag.name, flag.reason)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ForeignArgs {
    fn augment_args(command: Command) -> Command {
        let argument = |flag: &Foreign| {
            let argument = Arg::new(flag.name).long(flag.name).hide(true);
            match flag.takes {
                FlagValue::Nothing => argument.action(ArgAction::SetTrue),
                FlagValue::Perhaps => argument.action(ArgAction::Append).num_args(0..=1),
                FlagValue::Value => argument.action(ArgAction::Append).num_args(1),
            }
        };
        command.args(FOREIGN.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

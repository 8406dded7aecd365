//! Whether a plugin is on, who says so, and how much it may do.

use std::fmt;
use std::path::PathBuf;

use super::name::PluginId;
use super::plugin::{EnabledBy, Power};
use crate::settings::{Level, Off, Origin, PluginSwitch};

/// A plugin that is not on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisabledPlugin {
    pub id: PluginId,
    /// As far as it is known.
    pub version: Option<String>,
    /// `None` where it is not installed.
    pub root: Option<PathBuf>,
    pub why: WhyDisabled,
}

/// The reason why a plugin is not on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyDisabled {
    /// Settings switch it off.
    Settings(Origin),
    /// No setting switches it on, and it is off by default.
    Default,
    /// No setting switches it on, and it was installed for other projects.
    Elsewhere,
    /// Settings switch it on, and it is not there.
    NotInstalled(Origin),
    /// Managed settings do not let its marketplace be used.
    Denied(String),
    /// It cannot be read; the problems say why.
    Broken,
    /// Another plugin has its name.
    Shadowed(PluginId),
}

impl fmt::Display for WhyDisabled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(origin) => write!(formatter, "switched off in {origin}"),
            Self::Default => formatter.write_str("it is not switched on"),
            Self::Elsewhere => formatter.write_str("installed for other projects"),
            Self::NotInstalled(origin) => {
                write!(formatter, "not installed, though {origin} wants it")
            }
            Self::Denied(reason) => formatter.write_str(reason),
            Self::Broken => formatter.write_str("cannot be read"),
            Self::Shadowed(by) => write!(formatter, "{by} has the same name"),
        }
    }
}

/// The decision about a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    On(EnabledBy, Power),
    Off(WhyDisabled),
}

/// The facts that decide if no setting does: whether the plugin is installed for this user and project, and the
/// default of its manifest.
#[derive(Clone, Copy, Debug)]
pub(super) struct PluginDefaults {
    pub(super) is_for_user: bool,
    pub(super) default_enabled: bool,
}

/// Decides about an installed plugin. What counts in the settings decides; an untrusted repository can
/// neither switch off what the user has nor give power to what it switches on.
pub(super) fn decide(switches: &[PluginSwitch], id: &PluginId, unsaid: PluginDefaults) -> Decision {
    let id = id.to_string();
    let about = || switches.iter().filter(|switch| switch.id == id);
    if let Some(switch) = about().find(|switch| switch.off.is_none()) {
        return if switch.is_on {
            Decision::On(EnabledBy::Settings(switch.origin.clone()), Power::Full)
        } else {
            Decision::Off(WhyDisabled::Settings(switch.origin.clone()))
        };
    }
    if unsaid.is_for_user && unsaid.default_enabled {
        return Decision::On(EnabledBy::Default, Power::Full);
    }
    let is_waiting = |it: &PluginSwitch| it.off.as_ref().is_some_and(Off::is_for_want_of_trust);
    let untrusted = about().find(|switch| is_waiting(switch));
    match untrusted.filter(|switch| switch.is_on) {
        Some(switch) => {
            let origin = switch.origin.clone();
            let why = match &switch.off {
                Some(Off::Unaccepted(reason)) => reason.to_string(),
                _ => "this folder is not trusted; help: `centurion trust grant`".to_owned(),
            };
            let reason = format!("only {origin} switches the plugin on, and {why}");
            Decision::On(EnabledBy::Settings(origin), Power::Limited { reason })
        }
        None if unsaid.is_for_user => Decision::Off(WhyDisabled::Default),
        None => Decision::Off(WhyDisabled::Elsewhere),
    }
}

/// The setting that blocks a plugin of `--plugin-dir`: only managed settings can.
pub(super) fn managed_block(switches: &[PluginSwitch], id: &PluginId) -> Option<Origin> {
    let id = id.to_string();
    let managed = switches.iter().find(|it| it.id == id && it.origin.level == Level::Managed)?;
    (!managed.is_on).then(|| managed.origin.clone())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;

    fn switch(level: Level, is_on: bool, off: Option<Off>) -> PluginSwitch {
        let (file, root) = (Arc::from(Path::new("/s.json")), Arc::from(Path::new("/")));
        let origin = Origin { level, file, line: 2, root };
        PluginSwitch { id: "p@m".to_owned(), is_on, origin, off }
    }

    fn outcome(switches: &[PluginSwitch], is_for_user: bool, default_enabled: bool) -> String {
        let id = "p@m".parse().unwrap();
        match decide(switches, &id, PluginDefaults { is_for_user, default_enabled }) {
            Decision::On(by, power) => {
                let by = match by {
                    EnabledBy::Settings(origin) => origin.level.to_string(),
                    EnabledBy::Default => "default".to_owned(),
                    EnabledBy::Flag => "flag".to_owned(),
                };
                let power = if power == Power::Full { "full" } else { "limited" };
                format!("{by} {power}")
            }
            Decision::Off(why) => why.to_string(),
        }
    }

    #[test]
    fn the_users_word_counts_and_a_repositorys_only_as_far_as_it_is_trusted() {
        // D-9, S-073
        use Level::{Flag, Local, Managed, Project, User};
        let untrusted = Some(Off::Untrusted);
        let off_in = |level: &str| format!("switched off in /s.json:2 ({level})");
        let on = |level| switch(level, true, None);
        let off = |level| switch(level, false, None);
        for (switches, is_for_user, expected) in [
            (vec![on(User)], true, "user full".to_owned()),
            (vec![on(Flag), off(User)], true, "flag full".to_owned()),
            (vec![off(Managed), on(User)], true, off_in("managed")),
            (vec![on(Managed)], false, "managed full".to_owned()),
            (vec![on(Local)], false, "local full".to_owned()),
            (vec![on(Project)], false, "project full".to_owned()),
            (vec![switch(Project, true, untrusted.clone())], false, "project limited".to_owned()),
            (vec![switch(Local, true, untrusted.clone())], false, "local limited".to_owned()),
            (vec![switch(Project, true, untrusted.clone()), off(User)], true, off_in("user")),
            (
                vec![switch(Project, true, untrusted.clone()), on(User)],
                true,
                "user full".to_owned(),
            ),
            (vec![switch(Project, false, untrusted.clone())], true, "default full".to_owned()),
            (vec![switch(Project, true, untrusted)], true, "default full".to_owned()),
            (vec![], true, "default full".to_owned()),
            (vec![], false, "installed for other projects".to_owned()),
        ] {
            assert_eq!(outcome(&switches, is_for_user, true), expected, "{switches:?}");
        }
        assert_eq!(outcome(&[], true, false), "it is not switched on");
        assert_eq!(outcome(&[on(User)], true, false), "user full");
    }
}

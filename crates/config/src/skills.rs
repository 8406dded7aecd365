//! Skills and commands: texts that a person or a model may invoke, as data. Running them is for others.
//!
//! A catalog knows of each skill what is told of it (its card, from the head of its file); the whole file is read
//! when the skill is used.

mod bundled;
mod card;
mod catalog;
mod definition;
mod expand;
mod listing;
mod lookup;
mod place;
mod power;
mod preload;
mod reading;
mod resources;
mod sources;
#[cfg(test)]
mod tests;

pub use card::SkillCard;
pub(crate) use catalog::directory_power;
pub use catalog::{
    CheckedSkills, MOST_LISTED, OffSkill, OffSwitch, ShadowedSkill, SkillCatalog, SkillEntry,
    SkillLoader,
};
pub use definition::{
    RuleValueError, SKILL_GRAMMAR, SKILL_KEYS, Shell, SkillDefinition, SkillFileError, SkillKind,
    SkillOrigin, SkillSource, read_skill,
};
pub use expand::{
    ArgumentWords, CommandForm, ExpandError, Expanded, FilledText, Invocation, Piece, QuotingError,
    SkillCommand, Template, expand, split_arguments,
};
pub use listing::{ListingBudget, SkillListing};
pub use lookup::SkillLookupError;
pub use place::{SkillsOfPlace, read_skills_at};
pub(crate) use power::commands_of_text;
pub use preload::{Preload, Preloaded, SkillText};
pub use reading::{ReadSkill, SkillReadError};
pub use resources::Resources;
pub use sources::{PluginSkills, SkillSources};

//! Skills and commands: texts that a person or a model may invoke, as data. Running them is for others.

mod catalog;
mod definition;
mod lookup;
mod preload;
mod resources;
#[cfg(test)]
mod tests;

pub(crate) use catalog::directory_power;
pub use catalog::{PluginSkills, ShadowedSkill, SkillCatalog, SkillLoader, SkillSources};
pub use definition::{
    SKILL_GRAMMAR, SKILL_KEYS, Shell, SkillDefinition, SkillFileError, SkillKind, SkillOrigin,
    SkillSource, read_skill,
};
pub use lookup::SkillLookupError;
pub use preload::{Preload, Preloaded, SkillText};
pub use resources::Resources;

//! Plugins: directories that bring agents, skills, commands, hooks and servers. This finds them, reads
//! what is in them, says which are switched on and how much each may do, and keeps what was installed.
//!
//! Nothing here fetches or runs anything: a directory that was fetched is handed in. Running what plugins
//! bring is for others, too.

mod accepted;
mod adapt;
mod bundle;
mod catalog;
mod decision;
mod install;
mod layout;
mod looks;
mod manifest;
mod marketplace;
mod name;
mod options;
mod plugin;
mod policy;
mod skills_dir;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod tree;
mod validate;
mod variables;

pub use accepted::AcceptedTree;
pub(crate) use accepted::directory_power;
pub(crate) use adapt::{adapt_agent, adapt_skill};
pub use bundle::{Bundle, MainAgent, PluginHooks};
pub use catalog::{PluginCatalog, PluginLoader, PluginSources};
pub use decision::{DisabledPlugin, WhyDisabled};
pub use install::{Installation, Installed, StoreError};
pub use layout::{PartPathError, part};
pub use manifest::Manifest;
pub use marketplace::{MARKETPLACE_FILE, Marketplace, MarketplaceEntry};
pub use name::{
    INLINE, LOCAL, PluginId, PluginNameError, SKILLS_DIR, check_marketplace_name, check_plugin_name,
};
pub use plugin::{EnabledBy, Plugin, PluginPlace, Power};
pub use policy::MarketplacePolicy;
pub(crate) use skills_dir::manifest_of;
pub use source::{EntrySource, GitSource, MarketplaceSource, SourceError, without_secrets};
pub use store::{InstallScope, InstalledPlugin, KnownMarketplace, PluginStores, StoreContents};
pub use tree::CopyError;
pub use validate::{Validation, validate};
pub use variables::PluginVariables;

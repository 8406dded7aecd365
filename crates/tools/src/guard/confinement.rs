//! The confinement of one command, as Centurion passes it to the step that becomes the shell.

use std::fs;
use std::io;
use std::path::Path;

use centurion_sandbox::{CommandPlace, Plan};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confinement {
    pub(crate) plan: Plan,
    pub(crate) place: CommandPlace,
}

impl Confinement {
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    pub(super) fn load(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }
}

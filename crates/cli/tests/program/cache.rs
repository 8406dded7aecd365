//! A provider's cache, as far as requests show it.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// The number of blocks before a breakpoint in which a provider looks for what it has cached.
const LOOKBACK: usize = 20;

/// The cache of a provider that caches by breakpoints.
#[derive(Default)]
pub(crate) struct Cache(HashSet<u64>);

/// The charge for one request, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Charged {
    pub(crate) read: usize,
    pub(crate) written: usize,
    pub(crate) plain: usize,
}

impl Charged {
    /// The cost, with bytes that are not cached as the unit.
    pub(crate) fn cost(self) -> f64 {
        let [read, written, plain] = [self.read, self.written, self.plain]
            .map(|bytes| f64::from(u32::try_from(bytes).unwrap()));
        0.1 * read + 1.25 * written + plain
    }

    pub(crate) fn all(self) -> usize {
        self.read + self.written + self.plain
    }
}

impl Cache {
    /// Takes a request: the longest part that was written before is read, if it ends at a breakpoint or a little before.
    pub(crate) fn take(&mut self, request: &Value) -> Charged {
        // Each model has a cache of its own.
        let tools = request["tools"].to_string();
        let mut parts = vec![(request["model"].to_string(), tools, false)];
        let messages = request["messages"].as_array().unwrap().iter();
        let spoken = messages.flat_map(|message| {
            let role = message["role"].as_str().unwrap();
            message["content"].as_array().unwrap().iter().map(move |block| (role, block))
        });
        let system = request["system"].as_array().unwrap().iter().map(|block| ("system", block));
        // Messages of another kind of request are not read again; the most tokens of an answer do not matter.
        let kind = ["thinking", "output_config", "tool_choice"].map(|key| request[key].to_string());
        let kind = kind.concat();
        let kind_of = |role: &str| if role == "system" { String::new() } else { kind.clone() };
        for (role, block) in system.chain(spoken) {
            let mut block = block.clone();
            let ends = block.as_object_mut().unwrap().remove("cache_control").is_some();
            parts.push((kind_of(role), format!("{role}{block}"), ends));
        }
        let (mut hasher, mut size) = (DefaultHasher::new(), 0);
        let mut ends = Vec::new();
        for (kind, text, _) in &parts {
            (kind, text).hash(&mut hasher);
            size += text.len();
            ends.push((hasher.finish(), size));
        }
        let is_marked = |at: &usize| parts[*at].2;
        let marked: Vec<usize> = (0..parts.len()).filter(is_marked).collect();
        let found = marked.iter().flat_map(|at| &ends[at.saturating_sub(LOOKBACK)..=*at]);
        let read = found.filter(|(hash, _)| self.0.contains(hash)).map(|(_, size)| *size).max();
        let read = read.unwrap_or_default();
        let breakpoints = marked.len();
        let written = marked.last().map_or(0, |at| ends[*at].1) - read;
        self.0.extend(marked.iter().map(|at| ends[*at].0));
        let charged = Charged { read, written, plain: size - read - written };
        assert!(breakpoints <= 4, "a provider refuses more: {breakpoints}");
        charged
    }
}

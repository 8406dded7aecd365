//! What happens in one forest, all of it from its seed: who starts whom, what each agent does and how it
//! ends, what a person does meanwhile, and how the process ends.

use std::time::Duration;

use crate::dice::Dice;

/// The most agents that one forest has, beside the lead.
const MOST_NODES: usize = 14;
/// The lead is node 0: no agent starts it.
pub(crate) const LEAD: usize = 0;

/// A forest.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) settings: UserSettings,
    /// What a person does, and when.
    pub(crate) interventions: Vec<(Duration, Intervention)>,
    pub(crate) fate: Fate,
}

/// One agent.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) depth: usize,
    pub(crate) in_background: bool,
    pub(crate) is_named: bool,
    pub(crate) turns: Vec<Turn>,
    pub(crate) ending: Ending,
    /// How long its last words take.
    pub(crate) latency: Duration,
    /// What each of its requests consumes.
    pub(crate) tokens: (u64, u64),
}

/// One answer with calls.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) latency: Duration,
    pub(crate) actions: Vec<Action>,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Start(usize),
    Read,
    /// Something that a person has to allow.
    Ask,
    Tell(usize),
    Stop(usize),
    /// Asks how another one stands; only the lead can.
    Look(usize),
}

/// What a model says last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Text,
    /// The provider fails once, and then there is a text.
    Flaky,
    Empty,
    Errors,
    Refusal,
    MaxTokens,
    /// Nothing comes, ever.
    Stall,
}

/// What the user set.
#[derive(Debug)]
pub(crate) struct UserSettings {
    pub(crate) running: usize,
    pub(crate) depth: u32,
    pub(crate) spawns: Option<u64>,
    /// What one agent may spend with everything below it.
    pub(crate) tokens: Option<u64>,
    pub(crate) dollars: Option<f64>,
    pub(crate) auto_background: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) interrupt_ends_background: bool,
}

/// What a person does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Intervention {
    Interrupt,
    /// Calls that wait continue without their agents.
    Detach,
    StopAll,
    StopOne(usize),
}

/// How the first process ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    Lives,
    /// It is gone at this moment.
    Dies(Duration),
    /// It was gone after this share of its records.
    Cut(f64),
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let dice = Dice::new(seed ^ 0x000f_0e57);
        let count = 1 + dice.below(MOST_NODES);
        let mut parents = vec![LEAD];
        let mut nodes = vec![Node { ending: Ending::Text, ..Node::of(&dice, 0) }];
        for _ in 0..count {
            // One of the last few is a parent more often, so that trees grow deep.
            let recent = nodes.len().saturating_sub(1 + dice.below(3));
            let parent = if dice.chance(60) { recent } else { dice.below(nodes.len()) };
            parents.push(parent);
            nodes.push(Node::of(&dice, nodes[parent].depth + 1));
        }
        let total = nodes.len();
        for node in &mut nodes {
            let turns = dice.below(4);
            node.turns = (0..turns).map(|_| Turn::of(&dice, total)).collect();
        }
        for turn in &mut nodes[LEAD].turns {
            if dice.chance(25) {
                turn.actions.push(Action::Look(1 + dice.below(total - 1)));
            }
        }
        for (child, parent) in parents.into_iter().enumerate().skip(1) {
            let turns = &mut nodes[parent].turns;
            if turns.is_empty() {
                turns.push(Turn { latency: dice.time(), ..Turn::default() });
            }
            let turn = dice.below(turns.len());
            turns[turn].actions.insert(0, Action::Start(child));
        }
        let interventions =
            (0..dice.below(4)).map(|_| (dice.time() * 2, Intervention::of(&dice, total)));
        Self {
            seed,
            settings: UserSettings::of(&dice),
            interventions: sorted(interventions.collect()),
            fate: match dice.below(10) {
                0..4 => Fate::Lives,
                4..7 => Fate::Dies(dice.time() * 3),
                _ => Fate::Cut(dice.fraction()),
            },
            nodes,
        }
    }
}

fn sorted(mut interventions: Vec<(Duration, Intervention)>) -> Vec<(Duration, Intervention)> {
    interventions.sort_by_key(|(at, _)| *at);
    interventions
}

impl Node {
    fn of(dice: &Dice, depth: usize) -> Self {
        Self {
            depth,
            in_background: dice.chance(50),
            is_named: dice.chance(50),
            turns: Vec::new(),
            ending: Ending::of(dice),
            latency: dice.time(),
            tokens: (100 + dice.below(4_000) as u64, 10 + dice.below(1_500) as u64),
        }
    }
}

impl Turn {
    fn of(dice: &Dice, nodes: usize) -> Self {
        let mut actions = Vec::new();
        let other = || 1 + dice.below(nodes - 1);
        if dice.chance(40) {
            actions.push(Action::Read);
        }
        if dice.chance(20) {
            actions.push(Action::Ask);
        }
        if dice.chance(25) {
            actions.push(Action::Tell(other()));
        }
        if dice.chance(12) {
            actions.push(Action::Stop(other()));
        }
        if actions.is_empty() {
            actions.push(Action::Read);
        }
        Self { latency: dice.time(), actions }
    }
}

impl Ending {
    fn of(dice: &Dice) -> Self {
        match dice.below(100) {
            0..55 => Self::Text,
            55..62 => Self::Flaky,
            62..70 => Self::Empty,
            70..78 => Self::Errors,
            78..85 => Self::Refusal,
            85..92 => Self::MaxTokens,
            _ => Self::Stall,
        }
    }
}

impl UserSettings {
    fn of(dice: &Dice) -> Self {
        let some = |percent| dice.chance(percent);
        Self {
            running: if some(35) { 1 } else { 1 + dice.below(8) },
            depth: if some(20) { 1 + u32::try_from(dice.below(5)).unwrap() } else { 5 },
            spawns: some(15).then(|| dice.below(10) as u64),
            tokens: some(15).then(|| 15_000 + dice.below(60_000) as u64),
            dollars: some(10).then(|| 0.05 + dice.fraction()),
            auto_background: some(15).then(|| dice.time()),
            wait: some(30).then(|| Duration::from_mins(10)),
            interrupt_ends_background: some(20),
        }
    }
}

impl Intervention {
    fn of(dice: &Dice, nodes: usize) -> Self {
        match dice.below(10) {
            0..4 => Self::Interrupt,
            4..7 => Self::Detach,
            7 => Self::StopAll,
            _ => Self::StopOne(1 + dice.below(nodes - 1)),
        }
    }
}

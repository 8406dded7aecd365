//! What happens in one team, all of it from its seed: who joins and how, what each says and tries, what a person does
//! meanwhile, and how the process ends.

use std::time::Duration;

use centurion_permissions::Mode;

use crate::dice::Dice;

/// The most members that are started.
const MOST_MEMBERS: usize = 6;
/// Few names, so that several members ask for the same one.
const NAMES: [&str; 4] = ["ann", "bob", "Cleo_3", "d-4"];
/// The modes that a person gives the lead.
const MODES: [Mode; 4] = [Mode::AcceptEdits, Mode::Default, Mode::Plan, Mode::BypassPermissions];

/// A team.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) lead: Vec<Turn>,
    pub(crate) members: Vec<Member>,
    pub(crate) settings: UserSettings,
    /// What a person does, and when.
    pub(crate) interventions: Vec<(Duration, Intervention)>,
    pub(crate) fate: Fate,
}

/// A member.
#[derive(Debug)]
pub(crate) struct Member {
    /// The name that is asked for; another member may have it.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether the call asks for a plan.
    pub(crate) asked_to_plan: bool,
    pub(crate) turns: Vec<Turn>,
    pub(crate) ending: Ending,
    pub(crate) latency: Duration,
}

/// The type of a member, by the mode that its definition gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None.
    Usual,
    AcceptEdits,
    Default,
    Plan,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Usual => "general-purpose",
            Self::AcceptEdits => "eager",
            Self::Default => "careful",
            Self::Plan => "planner",
        }
    }
}

/// One answer with calls.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) latency: Duration,
    pub(crate) actions: Vec<Action>,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Start(usize),
    AskToEnd(usize),
    Stop(usize),
    CreateTask,
    Assign(usize),
    Tell(Whom),
    Broadcast,
    Write,
    /// Something that no mode but one lets an agent do unasked.
    WriteOutside,
    ProposePlan,
    Claim,
    Complete,
    /// An agent in the foreground, which writes.
    Delegate,
    Forge(Forgery),
}

/// The agent that is spoken to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whom {
    Lead,
    Member(usize),
    /// A name that no agent has.
    Stranger,
}

/// What only the lead or the runtime may say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Forgery {
    /// An approval of another member's plan, or of its own.
    Approval(usize),
    /// A request to end, to another member.
    AskToEnd(usize),
    /// A frame as plain text.
    Frame(usize),
    /// An answer to a request that no agent has made.
    Answer,
}

/// What a model says last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Text,
    Empty,
    Errors,
    /// Nothing comes, ever.
    Stall,
}

/// What the user set.
#[derive(Debug)]
pub(crate) struct UserSettings {
    pub(crate) running: usize,
    pub(crate) mode: Mode,
    /// Whether a person is there to be asked.
    pub(crate) has_person: bool,
    pub(crate) dollars: Option<f64>,
    pub(crate) interrupt_ends_background: bool,
}

/// What a person does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Intervention {
    Interrupt,
    StopAll,
    StopOne(usize),
    SetMode(Mode),
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
    /// Nothing happens by itself: agents do what a test has them do.
    pub(crate) fn without_events(seed: u64) -> Self {
        Self {
            seed,
            lead: Vec::new(),
            members: Vec::new(),
            settings: UserSettings {
                running: 8,
                mode: Mode::AcceptEdits,
                has_person: false,
                dollars: None,
                interrupt_ends_background: false,
            },
            interventions: Vec::new(),
            fate: Fate::Lives,
        }
    }

    pub(crate) fn of(seed: u64) -> Self {
        let dice = Dice::new(seed ^ 0x7ea3);
        let count = 1 + dice.below(MOST_MEMBERS);
        let members = (0..count).map(|_| Member::of(&dice, count)).collect();
        let mut lead: Vec<Turn> =
            (0..2 + dice.below(5)).map(|_| Turn::of_lead(&dice, count)).collect();
        for member in 0..count {
            let turn = dice.below(lead.len().min(3));
            lead[turn].actions.insert(0, Action::Start(member));
        }
        let mut interventions: Vec<_> =
            (0..dice.below(4)).map(|_| (dice.time(), Intervention::of(&dice, count))).collect();
        interventions.sort_by_key(|(at, _)| *at);
        Self {
            seed,
            lead,
            members,
            settings: UserSettings::of(&dice),
            interventions,
            fate: match dice.below(10) {
                0..5 => Fate::Lives,
                5..8 => Fate::Dies(dice.time()),
                _ => Fate::Cut(dice.fraction()),
            },
        }
    }
}

impl Member {
    fn of(dice: &Dice, count: usize) -> Self {
        Self {
            name: NAMES[dice.below(NAMES.len())],
            kind: match dice.below(10) {
                0..3 => Kind::Usual,
                3..4 => Kind::AcceptEdits,
                // These ask their lead.
                4..9 => Kind::Default,
                _ => Kind::Plan,
            },
            asked_to_plan: dice.chance(35),
            turns: (0..dice.below(5)).map(|_| Turn::of_member(dice, count)).collect(),
            ending: match dice.below(20) {
                0..15 => Ending::Text,
                15..17 => Ending::Empty,
                17..19 => Ending::Errors,
                _ => Ending::Stall,
            },
            latency: dice.time(),
        }
    }
}

impl Turn {
    fn of_lead(dice: &Dice, count: usize) -> Self {
        let member = || dice.below(count);
        let action = || match dice.below(20) {
            0..6 => Action::Tell(Whom::Member(member())),
            6..8 => Action::Broadcast,
            8..11 => Action::AskToEnd(member()),
            11 => Action::Stop(member()),
            12..16 => Action::CreateTask,
            16..18 => Action::Assign(member()),
            18 => Action::Tell(Whom::Stranger),
            _ => Action::Claim,
        };
        let actions = (0..=dice.below(3)).map(|_| action()).collect();
        Self { latency: dice.time(), actions }
    }

    fn of_member(dice: &Dice, count: usize) -> Self {
        let member = || dice.below(count);
        let forgery = || match dice.below(4) {
            0 => Forgery::Approval(member()),
            1 => Forgery::AskToEnd(member()),
            2 => Forgery::Frame(member()),
            _ => Forgery::Answer,
        };
        let action = || match dice.below(20) {
            0..3 => Action::Tell(Whom::Lead),
            3..6 => Action::Tell(Whom::Member(member())),
            6 => Action::Broadcast,
            7..11 => Action::Write,
            11 => Action::WriteOutside,
            12..14 => Action::ProposePlan,
            14..16 => Action::Claim,
            16 => Action::Complete,
            17 => Action::Delegate,
            18 => Action::CreateTask,
            _ => Action::Forge(forgery()),
        };
        let actions = (0..=dice.below(3)).map(|_| action()).collect();
        Self { latency: dice.time(), actions }
    }
}

impl UserSettings {
    fn of(dice: &Dice) -> Self {
        Self {
            running: if dice.chance(25) { 1 } else { 1 + dice.below(6) },
            mode: if dice.chance(60) { Mode::AcceptEdits } else { MODES[dice.below(4)] },
            has_person: dice.chance(40),
            dollars: dice.chance(10).then(|| 0.05 + dice.fraction()),
            interrupt_ends_background: dice.chance(20),
        }
    }
}

impl Intervention {
    fn of(dice: &Dice, count: usize) -> Self {
        match dice.below(10) {
            0..2 => Self::Interrupt,
            2 => Self::StopAll,
            3..5 => Self::StopOne(dice.below(count)),
            _ => Self::SetMode(MODES[dice.below(MODES.len())]),
        }
    }
}

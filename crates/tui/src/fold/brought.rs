//! Facts that a person brings along: their ways from settings, keys, images, and what their own programs make.

use centurion_protocol::AgentId;

use super::{Fact, ask, chat, images};
use crate::draft::Vi;
use crate::effect::Effect;
use crate::model::Model;
use crate::model::screen::Screen;
use crate::text::coloured;

/// Takes one of these facts.
pub(super) fn fact(model: &mut Model, fact: Fact, effects: &mut Vec<Effect>) {
    match fact {
        Fact::Pick(picker) => super::show_screen(model, Screen::Picker(picker)),
        Fact::PlanEdited { number, text } => ask::plan_edited(model, number, text),
        Fact::Taste { has_vi, is_still, is_far, wants_status, theme, tui } => {
            let taste = &mut model.taste;
            match (has_vi, &taste.vi) {
                (true, None) => taste.vi = Some(Vi::default()),
                (false, Some(_)) => taste.vi = None,
                _ => {}
            }
            (taste.is_still, taste.is_far) = (is_still || taste.is_plain, is_far);
            taste.wants_status = wants_status && !taste.is_plain;
            if !taste.wants_status {
                taste.status.clear();
                taste.agent_rows.clear();
            }
            effects.extend([Effect::Restyle(theme), Effect::Use(tui)]);
        }
        Fact::StatusLine(lines) => {
            model.taste.status = lines.iter().map(|line| coloured(line)).collect();
        }
        Fact::AgentRows(rows) => {
            let row = |(id, text): (AgentId, String)| (id, coloured(&text));
            model.taste.agent_rows = rows.into_iter().map(row).collect();
        }
        Fact::Image(image) => images::came(model, image, effects),
        Fact::Pasted(text) => {
            model.draft_mut().paste(&text);
            chat::draft_changed(model, effects);
        }
        Fact::Keys(bindings) => model.bindings = bindings,
        _ => {}
    }
}

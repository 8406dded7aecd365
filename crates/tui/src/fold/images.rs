//! Images of a draft: they come, and go along with the prompt that names them.

use super::chat;
use crate::attachment::Attachment;
use crate::effect::Effect;
use crate::model::Model;
use crate::model::prompts::PromptNumber;

/// The most images in memory: a text of the history may name one of them again.
const MOST: usize = 20;

/// Puts an image into the draft, as a chip.
pub(super) fn came(model: &mut Model, image: Attachment, effects: &mut Vec<Effect>) {
    model.images.last += 1;
    let id = model.images.last;
    let label = format!("image {id}");
    model.draft_mut().attach(id, &label);
    model.images.kept.push_back((format!("[{label}]"), image));
    if model.images.kept.len() > MOST {
        model.images.kept.pop_front();
    }
    chat::draft_changed(model, effects);
}

/// Sends the images along that a prompt names.
pub(super) fn attach(model: &Model, number: PromptNumber, text: &str, effects: &mut Vec<Effect>) {
    let named = model.images.kept.iter().filter(|(label, _)| text.contains(label.as_str()));
    let images: Vec<Attachment> = named.map(|(_, image)| image.clone()).collect();
    if !images.is_empty() {
        effects.push(Effect::Attach { number, images });
    }
}

//! Characters that show nothing: a text with them is not what a person reads.

/// Whether nothing is shown for the character: what Unicode calls default ignorable. It hides words from people,
/// turns their direction, or makes two texts look the same.
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The same, but for those that join letters or choose how one is drawn: scripts and emoji need them.
pub fn is_hidden(character: char) -> bool {
    let shapes = matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    is_invisible(character) && !shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_is_invisible_and_letters_are_not() {
        for hidden in "\u{ad}\u{200b}\u{200e}\u{202e}\u{2066}\u{3164}\u{feff}\u{e0041}".chars() {
            assert!(is_invisible(hidden) && is_hidden(hidden), "{hidden:?}");
        }
        for shapes in "\u{200c}\u{200d}\u{fe0f}".chars() {
            assert!(is_invisible(shapes) && !is_hidden(shapes), "{shapes:?}");
        }
        for seen in " az~äß€漢😀\n\t".chars() {
            assert!(!is_invisible(seen), "{seen:?}");
        }
    }
}

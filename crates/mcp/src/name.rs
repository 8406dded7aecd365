//! The names of a server's offers for models and people.

/// The name of a server's tool: `mcp__<server>__<tool>`.
pub fn tool_name(server: &str, tool: &str) -> String {
    format!("mcp__{}__{}", plain(server), plain(tool))
}

/// The command that a server's prompt becomes: `mcp__<server>__<prompt>`.
pub fn prompt_name(server: &str, prompt: &str) -> String {
    tool_name(server, prompt)
}

/// Replaces characters that a tool's name may not contain.
fn plain(name: &str) -> String {
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || matches!(symbol, '_' | '-');
    name.chars().map(|symbol| if is_plain(symbol) { symbol } else { '_' }).collect()
}

/// Cuts a text to this many bytes, between characters, and marks the cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    const MARK: &str = "… (cut)";
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(MARK.len()));
    format!("{}{MARK}", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_only_what_a_tool_name_may() {
        assert_eq!(tool_name("files", "read-it_2"), "mcp__files__read-it_2");
        assert_eq!(tool_name("plugin:p:s", "do.this/é"), "mcp__plugin_p_s__do_this__");
    }

    #[test]
    fn a_cut_keeps_whole_characters_and_the_bound() {
        assert_eq!(cut("short", 10), "short");
        let text = "é".repeat(2_000);
        let short = cut(&text, 2_048);
        assert!(short.len() <= 2_048 && short.ends_with("… (cut)"), "{}", short.len());
        assert!(text.starts_with(short.trim_end_matches("… (cut)")));
    }
}

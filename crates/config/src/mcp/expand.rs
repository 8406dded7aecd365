//! Variables in what a server is started with: `${NAME}` and `${NAME:-otherwise}`.

use std::collections::BTreeMap;

use centurion_protocol::Env;

/// The values of variables.
#[derive(Clone, Copy, Debug)]
pub struct McpVariables<'v> {
    pub env: &'v Env,
    /// Values that this program knows, such as `CLAUDE_PROJECT_DIR`; they count before the environment.
    pub known: &'v BTreeMap<String, String>,
}

impl<'v> McpVariables<'v> {
    fn get(&self, name: &str) -> Option<&'v str> {
        let known = self.known.get(name).map(String::as_str);
        // A variable may be set to nothing, which is not the same as not set.
        known.or_else(|| self.env.iter().find(|(it, _)| *it == name).map(|(_, value)| value))
    }

    /// The text with its variables replaced, once: what comes in is not looked at again. A variable that
    /// is not set and has nothing to stand for it stays as it is written, and is told.
    pub(super) fn expand(&self, text: &str, missing: &mut Vec<String>) -> String {
        replace(text, |name, otherwise| match (self.get(name), otherwise) {
            (Some(value), None) => Some(value),
            (Some(value), Some(_)) if !value.is_empty() => Some(value),
            (_, Some(otherwise)) => Some(otherwise),
            (None, None) => {
                missing.push(name.to_owned());
                None
            }
        })
    }

    /// The text with only what this program knows replaced: the rest is for the shell that will read it.
    pub(crate) fn expand_known(&self, text: &str) -> String {
        replace(text, |name, otherwise| {
            let known = self.known.get(name).map(String::as_str);
            known.filter(|_| otherwise.is_none())
        })
    }
}

/// Asks about each variable with what stands after its `:-`; `None` leaves it as it is.
fn replace<'t>(
    text: &'t str,
    mut value_of: impl FnMut(&'t str, Option<&'t str>) -> Option<&'t str>,
) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("${") {
        expanded.push_str(before);
        // A variable does not continue behind the beginning of the next one.
        let own = from.find("${").unwrap_or(from.len());
        let end = from.get(..own).and_then(|own| own.find('}'));
        let value = end.and_then(|end| {
            let (inside, after) = (from.get(..end)?, from.get(end + 1..)?);
            let (name, otherwise) = match inside.split_once(":-") {
                Some((name, otherwise)) => (name, Some(otherwise)),
                None => (inside, None),
            };
            let value = if is_name(name) { value_of(name, otherwise) } else { None };
            Some((value?, after))
        });
        let (value, after) = value.unwrap_or(("${", from));
        expanded.push_str(value);
        rest = after;
    }
    expanded.push_str(rest);
    expanded
}

/// Plugins have names with a dot.
fn is_name(name: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-');
    name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_') && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_once() {
        let env = Env::from([
            ("A", "one"),
            ("EMPTY", ""),
            ("NESTED", "${A}"),
            ("CLAUDE_PROJECT_DIR", "/wrong"),
        ]);
        let known = BTreeMap::from([
            ("CLAUDE_PROJECT_DIR".to_owned(), "/repo".to_owned()),
            ("user_config.key".to_owned(), "k".to_owned()),
        ]);
        let variables = McpVariables { env: &env, known: &known };
        for (text, expected, unset) in [
            ("${A}-${A:-x}", "one-one", &[][..]),
            ("${NONE:-x y}/${NONE:-}", "x y/", &[]),
            ("${EMPTY}|${EMPTY:-x}", "|x", &[]),
            ("a${NONE}b", "a${NONE}b", &["NONE"]),
            ("${NESTED}", "${A}", &[]),
            ("${CLAUDE_PROJECT_DIR}/x", "/repo/x", &[]),
            ("${user_config.key}", "k", &[]),
            ("$A ${} ${1} ${A ${A:+x} $${A", "$A ${} ${1} ${A ${A:+x} $${A", &[]),
            ("${NONE${A}", "${NONEone", &[]),
        ] {
            let mut missing = Vec::new();
            assert_eq!(variables.expand(text, &mut missing), expected, "{text}");
            assert_eq!(missing, unset, "{text}");
        }
        let helper = "${CLAUDE_PROJECT_DIR}/h ${A} ${CLAUDE_PROJECT_DIR:-x}";
        assert_eq!(variables.expand_known(helper), "/repo/h ${A} ${CLAUDE_PROJECT_DIR:-x}");
    }

    #[test]
    fn a_long_text_of_beginnings_takes_no_time() {
        let (env, known) = (Env::default(), BTreeMap::new());
        let variables = McpVariables { env: &env, known: &known };
        let text = "${".repeat(100_000);
        assert_eq!(variables.expand(&text, &mut Vec::new()), text);
    }
}

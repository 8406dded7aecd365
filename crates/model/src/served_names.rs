//! The provider's own names of models, where they are not the usual ones.

use std::collections::BTreeMap;

use crate::catalog::split_suffix;

/// Names on the wire, by the full names that prices, windows and lists use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedNames(BTreeMap<String, String>);

impl ServedNames {
    /// The name to send for a model.
    pub(crate) fn of<'a>(&'a self, model: &'a str) -> &'a str {
        let plain = split_suffix(model).0;
        self.0.get(model).or_else(|| self.0.get(plain)).map_or(plain, String::as_str)
    }
}

impl FromIterator<(String, String)> for ServedNames {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_goes_by_the_name_that_it_was_given() {
        let serving = |pairs: &[(&str, &str)]| -> ServedNames {
            pairs.iter().map(|(name, served)| ((*name).to_owned(), (*served).to_owned())).collect()
        };
        let names = serving(&[("a", "arn:a"), ("a[1m]", "arn:large")]);
        assert_eq!((names.of("a"), names.of("a[1m]")), ("arn:a", "arn:large"));
        assert_eq!((names.of("b"), names.of("b[1m]")), ("b", "b"));
        assert_eq!(serving(&[("a", "arn:a")]).of("a[1m]"), "arn:a");
    }
}

//! Values of frontmatter: text as it was written, lists and maps, each with its line.

use serde_json::{Map, Number, Value as Json};

/// A value and the line on which it begins, counted from one in the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub line: usize,
    pub shape: Shape,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing after the colon, `~` or `null`.
    Null,
    Text(Text),
    List(Vec<Value>),
    Map(Vec<Member>),
}

/// Text that keeps how it was written: `1.0` is a version to one reader and a number to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub text: String,
    /// Whether it can only be text: it stood in quotes or in a block of lines.
    pub is_quoted: bool,
}

/// One key of a map with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub key: String,
    /// The line of the key.
    pub line: usize,
    pub value: Value,
}

impl Value {
    pub fn new(line: usize, shape: Shape) -> Self {
        Self { line, shape }
    }

    /// Text that could also be a number or a truth value.
    pub fn plain(line: usize, text: impl Into<String>) -> Self {
        Self::new(line, Shape::Text(Text { text: text.into(), is_quoted: false }))
    }

    /// Text that is nothing but text.
    pub fn quoted(line: usize, text: impl Into<String>) -> Self {
        Self::new(line, Shape::Text(Text { text: text.into(), is_quoted: true }))
    }

    /// The text of a scalar, as it was written.
    pub fn as_text(&self) -> Option<&str> {
        match &self.shape {
            Shape::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.shape, Shape::Null)
    }

    /// The truth value that it says. Besides `true` and `false`, what older YAML had for them.
    pub fn as_bool(&self) -> Option<bool> {
        match self.as_text()?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }

    /// The kind of value, for a message.
    pub fn kind(&self) -> &'static str {
        match self.shape {
            Shape::Null => "nothing",
            Shape::Text(_) => "text",
            Shape::List(_) => "a list",
            Shape::Map(_) => "a map",
        }
    }

    /// The same as JSON, for readers that share their form with settings. Only `true` and `false` are
    /// truth values, and only JSON's numbers are numbers.
    pub fn to_json(&self) -> Json {
        match &self.shape {
            Shape::Null => Json::Null,
            Shape::Text(text) => text.to_json(),
            Shape::List(items) => items.iter().map(Self::to_json).collect(),
            Shape::Map(members) => {
                let pairs = members.iter().map(|it| (it.key.clone(), it.value.to_json()));
                Json::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// A value of JSON that came without lines of its own.
    pub fn of_json(value: &Json, line: usize) -> Self {
        let shape = match value {
            Json::Null => Shape::Null,
            Json::Bool(value) => return Self::plain(line, value.to_string()),
            Json::Number(number) => return Self::plain(line, number.to_string()),
            Json::String(text) => return Self::quoted(line, text),
            Json::Array(items) => {
                Shape::List(items.iter().map(|item| Self::of_json(item, line)).collect())
            }
            Json::Object(members) => {
                let member = |(key, value): (&String, &Json)| Member {
                    key: key.clone(),
                    line,
                    value: Self::of_json(value, line),
                };
                Shape::Map(members.iter().map(member).collect())
            }
        };
        Self::new(line, shape)
    }
}

impl Text {
    fn to_json(&self) -> Json {
        if !self.is_quoted {
            match self.text.as_str() {
                "true" | "True" | "TRUE" => return Json::Bool(true),
                "false" | "False" | "FALSE" => return Json::Bool(false),
                other => {
                    if let Ok(number) = other.parse::<Number>() {
                        return Json::Number(number);
                    }
                }
            }
        }
        Json::String(self.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_text_becomes_what_json_has_for_it() {
        let json = |text: &str| Value::plain(1, text).to_json();
        assert_eq!(json("true"), json!(true));
        assert_eq!(json("-2.5"), json!(-2.5));
        assert_eq!(json("30"), json!(30));
        for text in ["yes", "0x10", "1_000", ".5", "1.0.0", "2024-01-01", "null "] {
            assert_eq!(json(text), json!(text));
        }
        assert_eq!(Value::quoted(1, "true").to_json(), json!("true"));
    }

    #[test]
    fn json_survives_the_way_there_and_back() {
        let value = json!({"a": [1, "1", null, true, "true"], "b": {"c": -1.5}});
        assert_eq!(Value::of_json(&value, 3).to_json(), value);
    }

    #[test]
    fn truth_is_told_in_many_words() {
        let truth = |text: &str| Value::plain(1, text).as_bool();
        for text in ["true", "Yes", "on", "1", "TRUE"] {
            assert_eq!(truth(text), Some(true), "{text}");
        }
        for text in ["false", "No", "off", "0"] {
            assert_eq!(truth(text), Some(false), "{text}");
        }
        assert_eq!(truth("maybe"), None);
        assert_eq!(Value::new(1, Shape::List(vec![])).as_bool(), None);
    }
}

//! Cron expressions: five fields, read once into sets of numbers.
//!
//! A field is a list of numbers, ranges and steps; months and days of the week also have names. Where both
//! day fields name days, one of them is enough. No crate is used for this: those on jiff take no time zone
//! that is handed in, or want both day fields to fit.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The reason why a text is no cron expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum ExpressionError {
    #[error(
        "a cron expression has five fields (minute, hour, day of month, month, day of week) and \
         `{text}` has {count}: write it like `30 9 * * mon-fri`"
    )]
    Fields { text: String, count: usize },
    #[error("`{item}` is no {field}: {reason}")]
    Item { field: &'static str, item: String, reason: ItemError },
}

/// The reason why an item of a field cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum ItemError {
    #[error("the range runs backwards; write two, {from}-{most} and on")]
    Backwards { from: String, most: u8 },
    #[error("a step is a number from 1 to {most}")]
    Step { most: u8 },
    #[error(
        "give numbers from {least} to {most}{}, ranges (a-b), steps (*/n), lists (a,b) or *",
        .name.map(|name| format!(", names like {name}")).unwrap_or_default()
    )]
    Number { least: u8, most: u8, name: Option<&'static str> },
}

/// A set of numbers below 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn contains(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.0.checked_shr(number).unwrap_or(0) & 1 == 1)
    }

    /// Its numbers below `end`, in order.
    pub(super) fn below(self, end: i8) -> impl Iterator<Item = i8> {
        (0..end).filter(move |number| self.contains(*number))
    }

    fn add(&mut self, number: u8) {
        self.0 |= 1_u64.checked_shl(u32::from(number)).unwrap_or(0);
    }
}

/// When something is due, in local time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Expression {
    /// As it was written, with single spaces.
    text: String,
    pub(super) minutes: Numbers,
    pub(super) hours: Numbers,
    pub(super) days: Numbers,
    pub(super) months: Numbers,
    /// Sunday is zero.
    pub(super) weekdays: Numbers,
    /// True if a day is meant that one of the two day fields names; otherwise it is in both.
    pub(super) either_day: bool,
}

/// The limits of a field.
struct Field {
    name: &'static str,
    least: u8,
    most: u8,
    /// Names for the numbers from `least` on.
    names: &'static [&'static str],
}

const MINUTE: Field = Field { name: "minute", least: 0, most: 59, names: &[] };
const HOUR: Field = Field { name: "hour", least: 0, most: 23, names: &[] };
const DAY: Field = Field { name: "day of the month", least: 1, most: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// Sunday is both ends.
const WEEKDAY: Field = Field {
    name: "day of the week",
    least: 0,
    most: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Expression {
    pub(crate) fn parse(text: &str) -> Result<Self, ExpressionError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(ExpressionError::Fields { text: text.to_owned(), count: fields.len() });
        };
        let mut expression = Self {
            text: fields.join(" "),
            minutes: MINUTE.parse(minutes)?,
            hours: HOUR.parse(hours)?,
            days: DAY.parse(days)?,
            months: MONTH.parse(months)?,
            weekdays: WEEKDAY.parse(weekdays)?,
            // A field with a star leaves the choice to the other one.
            either_day: !days.contains('*') && !weekdays.contains('*'),
        };
        if expression.weekdays.contains(7) {
            expression.weekdays.add(0);
        }
        Ok(expression)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

impl TryFrom<String> for Expression {
    type Error = ExpressionError;

    fn try_from(text: String) -> Result<Self, ExpressionError> {
        Self::parse(&text)
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.text
    }
}

impl Field {
    fn parse(&self, list: &str) -> Result<Numbers, ExpressionError> {
        let mut numbers = Numbers::default();
        for item in list.split(',') {
            let (from, to, step) = self.item(item).map_err(|reason| ExpressionError::Item {
                field: self.name,
                item: item.to_owned(),
                reason,
            })?;
            for number in (from..=to).step_by(step) {
                numbers.add(number);
            }
        }
        Ok(numbers)
    }

    /// One item of a list: from where to where, and in which steps.
    fn item(&self, item: &str) -> Result<(u8, u8, usize), ItemError> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (item, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((from, to)) => self.range(from, to)?,
            // Steps that begin somewhere continue to the end.
            None => {
                let from = self.number(range)?;
                (from, if step.is_some() { self.most } else { from })
            }
        };
        Ok((from, to, step.unwrap_or(1)))
    }

    fn range(&self, from: &str, to: &str) -> Result<(u8, u8), ItemError> {
        let (first, last) = (self.number(from)?, self.number(to)?);
        // A week may be said to end with its Sunday.
        let last = if last == 0 && first > 0 { self.most } else { last };
        if first > last {
            return Err(ItemError::Backwards { from: from.to_owned(), most: self.most });
        }
        Ok((first, last))
    }

    fn step(&self, step: &str) -> Result<usize, ItemError> {
        let read = step.parse::<u8>().ok().filter(|step| (1..=self.most).contains(step));
        read.map(usize::from).ok_or(ItemError::Step { most: self.most })
    }

    fn number(&self, text: &str) -> Result<u8, ItemError> {
        let named =
            self.names.iter().zip(self.least..).find(|(name, _)| text.eq_ignore_ascii_case(name));
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let written = || text.parse::<u8>().ok().filter(|_| is_digits);
        let number = named.map(|(_, number)| number).or_else(written);
        let Self { least, most, .. } = *self;
        let name = self.names.get(1).copied();
        number.filter(|number| (least..=most).contains(number)).ok_or(ItemError::Number {
            least,
            most,
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(list: &[i8]) -> Numbers {
        let mut numbers = Numbers::default();
        for number in list {
            numbers.add(u8::try_from(*number).unwrap());
        }
        numbers
    }

    #[test]
    fn fields_are_numbers_ranges_steps_lists_and_names() {
        // S-216
        let all = |expression: &Expression, field: char| match field {
            'm' => expression.minutes,
            'h' => expression.hours,
            'd' => expression.days,
            'M' => expression.months,
            _ => expression.weekdays,
        };
        for (text, field, expected) in [
            ("5 * * * *", 'm', &[5][..]),
            ("05 * * * *", 'm', &[5]),
            ("*/15 * * * *", 'm', &[0, 15, 30, 45]),
            ("10-20/5,59 * * * *", 'm', &[10, 15, 20, 59]),
            ("50/4 * * * *", 'm', &[50, 54, 58]),
            ("0 9,17 * * *", 'h', &[9, 17]),
            ("0 20-23 * * *", 'h', &[20, 21, 22, 23]),
            ("0 0 */10 * *", 'd', &[1, 11, 21, 31]),
            ("0 0 1 jan,JUL *", 'M', &[1, 7]),
            ("0 0 1 Oct-Dec *", 'M', &[10, 11, 12]),
            ("0 0 * * mon-fri", 'w', &[1, 2, 3, 4, 5]),
            ("0 0 * * sun", 'w', &[0]),
            ("0 0 * * 7", 'w', &[0, 7]),
            ("0 0 * * fri-sun", 'w', &[0, 5, 6, 7]),
        ] {
            let expression = Expression::parse(text).unwrap();
            assert_eq!(all(&expression, field), numbers(expected), "{text}");
        }
    }

    #[test]
    fn one_of_two_day_fields_is_enough_where_both_name_days() {
        for (text, expected) in [
            ("0 0 13 * fri", true),
            ("0 0 13 * *", false),
            ("0 0 * * fri", false),
            ("0 0 */2 * fri", false),
            ("0 0 1-31 * fri", true),
        ] {
            assert_eq!(Expression::parse(text).unwrap().either_day, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_says_what_to_write() {
        for (text, expected) in [
            ("", "has five fields"),
            ("* * * *", "has 4: write it like"),
            ("0 * * * * *", "has 6: write it like"),
            ("@daily", "has 1: write it like"),
            ("60 * * * *", "`60` is no minute: give numbers from 0 to 59, ranges"),
            ("* 24 * * *", "`24` is no hour: give numbers from 0 to 23"),
            ("* * 0 * *", "`0` is no day of the month: give numbers from 1 to 31"),
            ("* * * 13 *", "`13` is no month: give numbers from 1 to 12, names like feb"),
            ("* * * * 8", "`8` is no day of the week: give numbers from 0 to 7, names like mon"),
            ("* * * * someday", "`someday` is no day of the week"),
            ("x * * * *", "`x` is no minute"),
            ("-1 * * * *", "`-1` is no minute"),
            ("+1 * * * *", "`+1` is no minute"),
            ("1, * * * *", "`` is no minute"),
            ("1-2-3 * * * *", "`1-2-3` is no minute"),
            ("*/0 * * * *", "a step is a number from 1 to 59"),
            ("*/90 * * * *", "a step is a number from 1 to 59"),
            ("*/x * * * *", "a step is a number from 1 to 59"),
            ("* 22-3 * * *", "the range runs backwards; write two, 22-23 and on"),
            ("*5 * * * *", "`*5` is no minute"),
            ("? * * * *", "`?` is no minute"),
            ("999999999999 * * * *", "is no minute"),
        ] {
            let error = Expression::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn an_expression_is_kept_as_its_text() {
        let expression = Expression::parse("  */5\t9-17 * *  mon-fri ").unwrap();
        let text = serde_json::to_string(&expression).unwrap();
        assert_eq!(text, "\"*/5 9-17 * * mon-fri\"");
        assert_eq!(serde_json::from_str::<Expression>(&text).unwrap(), expression);
        assert!(serde_json::from_str::<Expression>("\"often\"").is_err());
    }
}

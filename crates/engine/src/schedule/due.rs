//! When an expression is due next in a time zone, also where the clocks change.
//!
//! Times are local. One that the clocks jump over is due as much later as they jumped. One that comes twice
//! is due the first time; where every hour is meant it is due both times, because an hour must pass there
//! as everywhere.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::expression::Expression;

/// The largest move of local time by a change of the clocks.
const CHANGE: SignedDuration = SignedDuration::from_hours(3);
/// The number of days that are searched: between two leap days there may be eight years.
const SEARCHED_DAYS: usize = 3000;
const HOURS: i8 = 24;
const MINUTES: i8 = 60;

impl Expression {
    /// The first time after `after`; `None` if there is none.
    pub(crate) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let here = zone.to_datetime(after);
        let mut best: Option<(Timestamp, DateTime)> = None;
        // Around a change a later local time may come before an earlier one.
        for local in self.local_times(here.saturating_sub(CHANGE)) {
            if best.is_some_and(|(_, found)| local > found.saturating_add(CHANGE)) {
                break;
            }
            for time in self.times(local, zone).into_iter().flatten() {
                if time > after && best.is_none_or(|(found, _)| time < found) {
                    best = Some((time, local));
                }
            }
        }
        best.map(|(time, _)| time)
    }

    /// All local times that fit, in order.
    fn local_times(&self, start: DateTime) -> impl Iterator<Item = DateTime> {
        let days = std::iter::successors(Some(start.date()), |day| day.tomorrow().ok());
        let days = days.take(SEARCHED_DAYS).filter(|day| self.fits(*day));
        let hours = days.flat_map(|day| self.hours.below(HOURS).map(move |hour| (day, hour)));
        let times = hours.flat_map(|(day, hour)| {
            self.minutes.below(MINUTES).map(move |minute| day.at(hour, minute, 0, 0))
        });
        times.filter(move |time| *time >= start)
    }

    fn fits(&self, day: Date) -> bool {
        let by_number = self.days.contains(day.day());
        let by_weekday = self.weekdays.contains(day.weekday().to_sunday_zero_offset());
        let is_day =
            if self.either_day { by_number || by_weekday } else { by_number && by_weekday };
        is_day && self.months.contains(day.month())
    }

    /// When a local time is: once, or twice where the clocks were set back.
    fn times(&self, local: DateTime, zone: &TimeZone) -> [Option<Timestamp>; 2] {
        let time = zone.to_ambiguous_timestamp(local);
        let is_hourly =
            self.hours.below(HOURS).count() == usize::try_from(HOURS).unwrap_or_default();
        match time.offset() {
            AmbiguousOffset::Fold { .. } if is_hourly => [time.earlier().ok(), time.later().ok()],
            _ => [time.compatible().ok(), None],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(text: &str, after: &str, zone: &str) -> Option<String> {
        let zone = TimeZone::get(zone).unwrap();
        let due = Expression::parse(text).unwrap().next(after.parse().unwrap(), &zone)?;
        Some(due.to_zoned(zone).strftime("%Y-%m-%d %H:%M %:z").to_string())
    }

    #[test]
    fn the_next_time_is_the_first_that_fits() {
        for (text, after, expected) in [
            ("*/5 * * * *", "2026-01-01T00:00:00Z", "2026-01-01 00:05 +00:00"),
            ("*/5 * * * *", "2026-01-01T00:04:59.999Z", "2026-01-01 00:05 +00:00"),
            ("* * * * *", "2026-12-31T23:59:00Z", "2027-01-01 00:00 +00:00"),
            ("30 9 * * mon-fri", "2026-01-02T09:30:00Z", "2026-01-05 09:30 +00:00"),
            ("0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31 00:00 +00:00"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29 00:00 +00:00"),
            ("0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29 00:00 +00:00"),
            // Either day.
            ("0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02 00:00 +00:00"),
            ("0 0 13 * fri", "2026-01-09T00:00:00Z", "2026-01-13 00:00 +00:00"),
            // Both days.
            ("0 0 */2 * fri", "2026-01-02T00:00:00Z", "2026-01-09 00:00 +00:00"),
            ("0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04 00:00 +00:00"),
        ] {
            assert_eq!(next(text, after, "UTC").as_deref(), Some(expected), "{text} after {after}");
        }
        assert_eq!(next("0 0 30 2 *", "2026-01-01T00:00:00Z", "UTC"), None);
    }

    #[test]
    fn clocks_that_change_lose_nothing_and_repeat_only_what_is_hourly() {
        // Europe: 2026-03-29 02:00 is 03:00, and 2026-10-25 03:00 is 02:00 again.
        let berlin = "Europe/Berlin";
        for (text, after, expected) in [
            ("30 9 * * *", "2026-03-29T00:00:00Z", "2026-03-29 09:30 +02:00"),
            ("30 2 * * *", "2026-03-29T00:00:00Z", "2026-03-29 03:30 +02:00"),
            ("30 2 * * *", "2026-03-29T01:30:00Z", "2026-03-30 02:30 +02:00"),
            ("30 * * * *", "2026-03-29T00:30:00Z", "2026-03-29 03:30 +02:00"),
            ("*/20 * * * *", "2026-03-29T00:40:00Z", "2026-03-29 03:00 +02:00"),
            ("*/20 * * * *", "2026-03-29T01:00:00Z", "2026-03-29 03:20 +02:00"),
            ("30 2 * * *", "2026-10-24T23:00:00Z", "2026-10-25 02:30 +02:00"),
            ("30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26 02:30 +01:00"),
            ("30 * * * *", "2026-10-25T00:30:00Z", "2026-10-25 02:30 +01:00"),
            ("30 * * * *", "2026-10-25T01:30:00Z", "2026-10-25 03:30 +01:00"),
        ] {
            assert_eq!(
                next(text, after, berlin).as_deref(),
                Some(expected),
                "{text} after {after}"
            );
        }
        // Half an hour is set back here.
        let due = next("*/15 * * * *", "2026-04-04T14:45:00Z", "Australia/Lord_Howe");
        assert_eq!(due.as_deref(), Some("2026-04-05 01:30 +10:30"));
    }

    #[test]
    fn every_minute_around_a_change_is_due_once_in_order() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let every_minute = Expression::parse("* * * * *").unwrap();
        // The clocks change at one o'clock.
        for start in ["2026-03-29T00:30:00Z", "2026-10-25T00:30:00Z"] {
            let mut time: Timestamp = start.parse().unwrap();
            for _ in 0..120 {
                let due = every_minute.next(time, &zone).unwrap();
                assert_eq!(due.duration_since(time), SignedDuration::from_mins(1), "after {time}");
                time = due;
            }
        }
    }
}

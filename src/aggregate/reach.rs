//! Whether each target can be reached, as its last request says.

use crate::measurement::{Outcome, RequestRecord};

/// What is known of each target, in the order of targets.
#[derive(Debug, Clone)]
pub struct Reach(Vec<Option<bool>>);

impl Reach {
    /// Nothing known yet of `targets` targets.
    #[must_use]
    pub fn new(targets: usize) -> Self {
        Self(vec![None; targets])
    }

    /// Adds a record; tells whether its target can be reached if that is news. That one can be
    /// reached at first is none.
    pub fn observe(&mut self, record: &RequestRecord) -> Option<bool> {
        let now = match record.outcome {
            Outcome::Dns | Outcome::Connect | Outcome::Tls | Outcome::TimeoutConnect => false,
            _ if record.http_status.is_some() => true,
            // Nothing came, and no connection was refused either.
            _ => return None,
        };
        let known = self.0.get_mut(record.stream.target_index)?;
        let is_news = known.unwrap_or(true) != now;
        *known = Some(now);
        is_news.then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::fixture::{failed, ok, stream};

    #[test]
    fn a_change_is_told_once() {
        let stream = stream(0);
        let good = ok(&stream, 0, &[5]).record;
        let refused = failed(&stream, 0, Outcome::Connect, None).record;
        let hung = failed(&stream, 0, Outcome::TimeoutTotal, None).record;
        let broken = failed(&stream, 0, Outcome::HttpStatus, Some(500)).record;
        let mut reach = Reach::new(1);
        let seen: Vec<_> = [&good, &hung, &refused, &hung, &refused, &broken, &good]
            .map(|record| reach.observe(record))
            .into();
        let wanted = [None, None, Some(false), None, None, Some(true), None];
        assert_eq!(seen, wanted);
        assert_eq!(Reach::new(1).observe(&refused), Some(false));
        assert_eq!(Reach::new(0).observe(&refused), None, "nobody's target");
    }
}

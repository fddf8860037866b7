//! Reads the driver again and again, for all targets whose GPUs are in this machine.

use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use super::driver::{DriverError, GpuDriver};
use crate::clock::TimeAnchor;
use crate::config::GpuSelect;
use crate::measurement::{Gpu, GpuSample};
use crate::telemetry::SelfMetrics;

/// A driver that is not there is asked for again after this long: it may be loaded later, and
/// asking costs a search for a file.
const ABSENT: Duration = Duration::from_mins(1);

/// One target whose GPUs are in this machine.
#[derive(Debug, Clone)]
pub struct NvmlTarget {
    /// Position of the target in the run's list of targets.
    pub target_index: usize,
    /// Name of the target, for counters.
    pub target: String,
    /// Which GPUs; only their numbers count.
    pub select: GpuSelect,
}

/// The reading of the driver.
#[derive(Debug)]
pub struct NvmlWatch {
    /// Whose GPUs they are.
    pub targets: Vec<NvmlTarget>,
    /// Interval.
    pub every: Duration,
    /// The program's clock.
    pub anchor: TimeAnchor,
    /// Counts results.
    pub own: SelfMetrics,
}

/// A driver, as far as it is open, and whether the log has its state.
#[derive(Default)]
struct Opened {
    driver: Option<Box<dyn GpuDriver>>,
    said: Option<&'static str>,
}

impl NvmlWatch {
    /// Reads on the calling thread until `samples` is closed. `open` is asked for a driver at
    /// first, and again whenever there is none.
    pub fn run(
        self,
        open: impl Fn() -> Result<Box<dyn GpuDriver>, DriverError>,
        samples: &mpsc::Sender<GpuSample>,
    ) {
        let mut opened = Opened::default();
        while !samples.is_closed() {
            let (read, pause) = self.turn(&mut opened, &open);
            for sample in read {
                if samples.blocking_send(sample).is_err() {
                    return;
                }
            }
            // Early if somebody wakes it, which nobody does.
            thread::park_timeout(pause);
        }
    }

    /// One reading: samples of all targets, and how long to pause.
    fn turn(
        &self,
        opened: &mut Opened,
        open: &impl Fn() -> Result<Box<dyn GpuDriver>, DriverError>,
    ) -> (Vec<GpuSample>, Duration) {
        if opened.driver.is_none() {
            match open() {
                Ok(driver) => opened.driver = Some(driver),
                Err(error) => {
                    self.count(opened, ("unreachable", &error.to_string()));
                    return (Vec::new(), ABSENT.max(self.every));
                }
            }
        }
        let Some(driver) = &mut opened.driver else {
            return (Vec::new(), self.every);
        };
        match driver.read() {
            Ok(gpus) => {
                self.say(opened, ("ok", &format!("{} GPUs", gpus.len())));
                (self.samples(&gpus), self.every)
            }
            Err(error) => {
                opened.driver = None;
                self.count(opened, ("unreachable", &error.to_string()));
                (Vec::new(), self.every)
            }
        }
    }

    fn samples(&self, gpus: &[(u32, Gpu)]) -> Vec<GpuSample> {
        let at = self.anchor.now();
        let mut samples = Vec::new();
        for target in &self.targets {
            let asked = &target.select.index;
            let chosen = gpus.iter().filter(|(index, gpu)| {
                (asked.is_empty() || asked.contains(index)) && !gpu.fields.is_empty()
            });
            let chosen: Vec<Gpu> = chosen.map(|(_, gpu)| gpu.clone()).collect();
            let result = if chosen.is_empty() {
                "not_selected"
            } else {
                "ok"
            };
            self.own.gpu_scrapes(&target.target, result).inc();
            if !chosen.is_empty() {
                samples.push(GpuSample {
                    target_index: target.target_index,
                    at,
                    gpus: chosen.into(),
                    pods: Vec::new(),
                });
            }
        }
        samples
    }

    /// Counts for all targets that nothing was read, and says so once.
    fn count(&self, opened: &mut Opened, (result, why): (&'static str, &str)) {
        for target in &self.targets {
            self.own.gpu_scrapes(&target.target, result).inc();
        }
        self.say(opened, (result, why));
    }

    fn say(&self, opened: &mut Opened, (result, why): (&'static str, &str)) {
        if opened.said != Some(result) {
            let targets = self.targets.len();
            tracing::info!(result, why, targets, "reading the GPUs of this machine");
            opened.said = Some(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use super::*;
    use crate::measurement::GpuField;

    /// What a driver does when it is opened or read: each answer once, then the last for ever.
    type Answer = Result<Vec<(u32, Gpu)>, DriverError>;

    struct Fake(Rc<RefCell<Vec<Answer>>>);

    impl GpuDriver for Fake {
        fn read(&mut self) -> Answer {
            let mut answers = self.0.borrow_mut();
            if answers.len() > 1 {
                answers.remove(0)
            } else {
                answers[0].clone()
            }
        }
    }

    fn gpu(index: u32, busy: f64) -> (u32, Gpu) {
        let mut gpu = Gpu::named(&index.to_string());
        gpu.fields.set(GpuField::Utilization, Some(busy));
        (index, gpu)
    }

    fn watch(selections: &[&[u32]]) -> NvmlWatch {
        let targets = selections
            .iter()
            .enumerate()
            .map(|(index, asked)| NvmlTarget {
                target_index: index,
                target: format!("t{index}"),
                select: GpuSelect {
                    index: asked.to_vec(),
                    ..GpuSelect::default()
                },
            });
        NvmlWatch {
            targets: targets.collect(),
            every: Duration::from_secs(10),
            anchor: TimeAnchor::start(),
            own: SelfMetrics::new().expect("our metrics do not collide"),
        }
    }

    fn lost() -> DriverError {
        DriverError::Lost("the GPU is gone".to_owned())
    }

    #[tokio::test]
    async fn each_target_has_its_own_gpus() {
        let watch = watch(&[&[], &[1], &[7]]);
        let answers = Rc::new(RefCell::new(vec![Ok(vec![gpu(0, 0.5), gpu(1, 1.0)])]));
        let open = || Ok(Box::new(Fake(Rc::clone(&answers))) as Box<dyn GpuDriver>);
        let (samples, pause) = watch.turn(&mut Opened::default(), &open);
        let found: Vec<_> = samples
            .iter()
            .map(|sample| (sample.target_index, sample.gpus.len()))
            .collect();
        assert_eq!(found, [(0, 2), (1, 1)]);
        assert_eq!(pause, Duration::from_secs(10));
        assert_eq!(watch.own.gpu_scrapes("t2", "not_selected").get(), 1);
        assert_eq!(watch.own.gpu_scrapes("t1", "ok").get(), 1);
    }

    #[tokio::test]
    async fn without_a_driver_it_is_asked_for_rarely_and_said_once() {
        let watch = watch(&[&[]]);
        let asked = Cell::new(0);
        let open = || {
            asked.set(asked.get() + 1);
            Err(DriverError::Absent("no such file".to_owned()))
        };
        let mut opened = Opened::default();
        for _ in 0..3 {
            let (samples, pause) = watch.turn(&mut opened, &open);
            assert!(samples.is_empty());
            assert_eq!(pause, ABSENT);
        }
        assert_eq!((asked.get(), opened.said), (3, Some("unreachable")));
    }

    #[tokio::test]
    async fn a_driver_that_is_lost_is_opened_again() {
        let watch = watch(&[&[]]);
        let answers = Rc::new(RefCell::new(vec![
            Ok(vec![gpu(0, 0.5)]),
            Err(lost()),
            Ok(vec![gpu(0, 0.7)]),
        ]));
        let asked = Cell::new(0);
        let open = || {
            asked.set(asked.get() + 1);
            Ok(Box::new(Fake(Rc::clone(&answers))) as Box<dyn GpuDriver>)
        };
        let mut opened = Opened::default();
        let mut counts = Vec::new();
        for _ in 0..3 {
            counts.push(watch.turn(&mut opened, &open).0.len());
        }
        assert_eq!((counts, asked.get()), (vec![1, 0, 1], 2));
    }

    #[tokio::test]
    async fn a_gpu_that_says_nothing_is_no_sample() {
        let watch = watch(&[&[]]);
        let answers = Rc::new(RefCell::new(vec![Ok(vec![(0, Gpu::named("0"))])]));
        let open = || Ok(Box::new(Fake(Rc::clone(&answers))) as Box<dyn GpuDriver>);
        assert!(watch.turn(&mut Opened::default(), &open).0.is_empty());
    }

    /// Whatever this machine has: it opens, or says why not, and never fails otherwise.
    #[test]
    fn the_driver_of_this_machine_is_there_or_not() {
        match super::super::open_driver() {
            Ok(mut driver) => {
                driver.read().expect("a driver that opens says how many");
            }
            Err(DriverError::Absent(why)) => assert!(!why.is_empty()),
            Err(DriverError::Lost(why)) => panic!("lost before it was read: {why}"),
        }
    }
}

//! The gauges that are read when somebody looks: budgets, slots, the surface they go to.

use std::sync::Arc;

use tokio::net::TcpListener;

use super::App;
use super::dispatch::DAY_NS;
use crate::export::catalog;
use crate::export::prometheus::Gauge;
use crate::web::{Exposure, RunInfo, SurfaceState, router};

impl App {
    /// The page, the API and `/metrics`, with the listener they are served on.
    pub(super) fn surface(&mut self) -> Option<(TcpListener, axum::Router)> {
        let listener = self.listener.take()?;
        let loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        let exposure = if loopback { Exposure::Loopback } else { Exposure::Beyond };
        Some((listener, router(self.surface_state(), exposure)))
    }
}

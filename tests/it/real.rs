//! The binary against programs of others: a real inference server, a real Prometheus, a real
//! OTLP receiver. `tests/run` installs them and says where they are.

mod canary;
mod components;
mod outage;
mod proxy;

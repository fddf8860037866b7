//! The binary against programs of others: a real inference server, a real Prometheus, a real
//! OTLP receiver. `tests/run` installs them and says where they are. What is below `large` needs
//! a component that is too large for every run: `tests/real NAME` runs it.

mod asking;
mod boards;
mod canary;
mod collector;
mod components;
mod day;
mod grafana;
mod init;
mod joined;
mod large;
mod lengths;
mod llama;
mod outage;
mod pages;
mod prometheus;
mod proxy;
mod remote_write;
mod restart;
mod rules;
mod schema;
mod states;
mod tee;
mod watched;

//! Against one large component at a time: `tests/real NAME` installs it, says where it is, and
//! runs the module of that name. `tests/run` leaves all of them out.

mod aiperf;
mod drill;
mod dynamo;
mod guidellm;
mod litellm;
mod netns;
mod nginx;
mod outages;
mod peers;
mod phoenix;
mod promtool;
mod victoria;

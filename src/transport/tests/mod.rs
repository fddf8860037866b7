//! Transport over real loopback sockets.

mod stamps;

//! When each request is due: arrival processes, lazy and seeded.

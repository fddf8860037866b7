//! The one integration binary: every tier that needs more than one room.

//! Our own list of plain words, of which prompts are made.
//!
//! Each is one token of the vocabularies of GPT-2, `cl100k_base` and `o200k_base` when a space
//! stands before it, so that a text of N of them has N tokens for most servers.

/// Short everyday words; their number is a power of two, so that choosing one is unbiased.
pub(super) const WORDS: [&str; 256] = [
    "airport", "album", "amber", "anchor", "angle", "animal", "apple", "army", "arrow", "artist",
    "attic", "autumn", "avenue", "bacon", "badge", "baker", "balance", "bamboo", "bank", "barley",
    "barn", "baseball", "basket", "battery", "beach", "beacon", "bean", "bear", "bedroom", "bell",
    "bird", "blade", "blanket", "boat", "bone", "book", "boot", "border", "bottle", "bowl", "box",
    "branch", "bread", "breeze", "brick", "bridge", "bronze", "brush", "bucket", "bull", "bus",
    "butter", "button", "cabin", "cable", "cake", "calendar", "camera", "camp", "canal", "candle",
    "canvas", "canyon", "car", "card", "carpet", "cart", "castle", "cat", "cave", "cellar",
    "chain", "chair", "chalk", "cheese", "cherry", "chest", "chicken", "church", "circle", "city",
    "clay", "cliff", "clinic", "clock", "closet", "cloud", "coal", "coast", "coat", "coffee",
    "coin", "collar", "college", "colony", "column", "comet", "concert", "cookie", "copper",
    "coral", "corn", "corner", "cottage", "cotton", "couch", "country", "court", "crane",
    "cricket", "crystal", "curtain", "dairy", "dawn", "delta", "desert", "diamond", "dolphin",
    "dragon", "drawer", "drum", "eagle", "earth", "echo", "elbow", "engine", "evening", "farm",
    "feather", "fence", "ferry", "field", "finger", "flame", "flower", "forest", "fossil",
    "fountain", "fox", "frost", "garden", "garlic", "gate", "ginger", "glacier", "glass", "globe",
    "glove", "gold", "goose", "grain", "granite", "grape", "grass", "gravel", "guitar", "hammer",
    "harbor", "harvest", "hedge", "hill", "honey", "horizon", "horse", "island", "ivory", "jacket",
    "jungle", "kettle", "kitchen", "ladder", "lake", "lamp", "lantern", "lava", "leaf", "lemon",
    "letter", "lion", "magnet", "maple", "marble", "market", "metal", "mill", "mint", "mirror",
    "moon", "moss", "mountain", "mouse", "needle", "nest", "nickel", "night", "north", "oak",
    "ocean", "olive", "onion", "orange", "orbit", "owl", "paddle", "palace", "paper", "path",
    "peach", "pearl", "pepper", "pigeon", "pillow", "pine", "planet", "plum", "pond", "potato",
    "prism", "quartz", "rabbit", "rain", "ribbon", "rice", "river", "rock", "rope", "rose",
    "saddle", "sail", "salmon", "salt", "sand", "season", "shadow", "shell", "shore", "silk",
    "silver", "sky", "sled", "slope", "smoke", "snow", "spark", "spice", "spring", "squirrel",
    "stable", "star", "stone", "stream", "sugar", "summer", "sunset", "table", "temple",
];

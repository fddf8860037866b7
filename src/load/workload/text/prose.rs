//! Sentences and paragraphs: people and things that did something somewhere.
//!
//! Everything lies in the past, so that verbs do not change with who acts; no noun, and nothing
//! that may stand before one, begins with a vowel where `a` could come before it.

use std::collections::VecDeque;

use super::super::draws::Draws;
use super::Unit;

/// Things and people, one each.
pub(super) const NOUNS: [&str; 157] = [
    "man",
    "woman",
    "child",
    "teacher",
    "doctor",
    "farmer",
    "driver",
    "writer",
    "worker",
    "student",
    "friend",
    "brother",
    "sister",
    "mother",
    "father",
    "king",
    "captain",
    "soldier",
    "lawyer",
    "painter",
    "baker",
    "butcher",
    "sailor",
    "singer",
    "nurse",
    "judge",
    "guard",
    "guest",
    "neighbor",
    "boy",
    "girl",
    "house",
    "garden",
    "river",
    "mountain",
    "forest",
    "field",
    "village",
    "city",
    "street",
    "road",
    "bridge",
    "market",
    "school",
    "church",
    "shop",
    "kitchen",
    "window",
    "door",
    "table",
    "chair",
    "lamp",
    "clock",
    "book",
    "letter",
    "map",
    "picture",
    "story",
    "song",
    "boat",
    "ship",
    "train",
    "car",
    "wheel",
    "horse",
    "dog",
    "cat",
    "bird",
    "fish",
    "tree",
    "flower",
    "leaf",
    "stone",
    "hill",
    "lake",
    "sea",
    "beach",
    "valley",
    "path",
    "gate",
    "wall",
    "roof",
    "room",
    "hall",
    "tower",
    "castle",
    "station",
    "hotel",
    "ticket",
    "box",
    "bag",
    "bottle",
    "cup",
    "plate",
    "knife",
    "rope",
    "coat",
    "hat",
    "shoe",
    "ring",
    "coin",
    "key",
    "mirror",
    "candle",
    "fire",
    "smoke",
    "storm",
    "cloud",
    "wind",
    "rain",
    "snow",
    "sun",
    "moon",
    "star",
    "morning",
    "night",
    "winter",
    "summer",
    "spring",
    "day",
    "week",
    "year",
    "number",
    "word",
    "question",
    "plan",
    "dream",
    "memory",
    "promise",
    "secret",
    "problem",
    "rule",
    "law",
    "price",
    "game",
    "prize",
    "team",
    "party",
    "meeting",
    "message",
    "newspaper",
    "machine",
    "tool",
    "hammer",
    "needle",
    "thread",
    "paper",
    "basket",
    "blanket",
    "pillow",
    "carpet",
    "piano",
    "guitar",
    "drum",
    "flag",
    "farm",
    "fence",
];
/// Several.
const PLURALS: [&str; 43] = [
    "people",
    "children",
    "friends",
    "students",
    "workers",
    "farmers",
    "soldiers",
    "neighbors",
    "visitors",
    "books",
    "letters",
    "pictures",
    "stories",
    "songs",
    "boats",
    "horses",
    "dogs",
    "birds",
    "trees",
    "flowers",
    "leaves",
    "stones",
    "hills",
    "houses",
    "streets",
    "shops",
    "windows",
    "doors",
    "tables",
    "clouds",
    "stars",
    "words",
    "questions",
    "plans",
    "ideas",
    "dreams",
    "games",
    "rules",
    "machines",
    "tools",
    "papers",
    "coins",
    "keys",
];
/// What they are like.
pub(super) const ADJECTIVES: [&str; 79] = [
    "small",
    "large",
    "long",
    "short",
    "tall",
    "young",
    "dark",
    "bright",
    "quiet",
    "loud",
    "cold",
    "warm",
    "soft",
    "hard",
    "heavy",
    "light",
    "clean",
    "dirty",
    "dry",
    "wet",
    "new",
    "good",
    "bad",
    "rich",
    "poor",
    "kind",
    "strange",
    "simple",
    "rare",
    "common",
    "slow",
    "quick",
    "fast",
    "late",
    "deep",
    "wide",
    "narrow",
    "round",
    "flat",
    "sharp",
    "strong",
    "weak",
    "brave",
    "happy",
    "sad",
    "tired",
    "hungry",
    "busy",
    "free",
    "full",
    "white",
    "black",
    "red",
    "green",
    "blue",
    "brown",
    "gray",
    "yellow",
    "wooden",
    "broken",
    "hidden",
    "famous",
    "local",
    "public",
    "private",
    "modern",
    "beautiful",
    "careful",
    "gentle",
    "proud",
    "silent",
    "sweet",
    "fresh",
    "secret",
    "plain",
    "rough",
    "smooth",
    "thin",
    "thick",
];
/// What was done to something.
const DID: [&str; 49] = [
    "saw",
    "found",
    "took",
    "carried",
    "opened",
    "closed",
    "painted",
    "built",
    "sold",
    "bought",
    "kept",
    "lost",
    "watched",
    "followed",
    "remembered",
    "described",
    "moved",
    "cleaned",
    "repaired",
    "brought",
    "sent",
    "drew",
    "read",
    "wrote",
    "showed",
    "liked",
    "loved",
    "needed",
    "wanted",
    "heard",
    "touched",
    "passed",
    "crossed",
    "reached",
    "left",
    "held",
    "pulled",
    "pushed",
    "turned",
    "covered",
    "measured",
    "counted",
    "visited",
    "noticed",
    "forgot",
    "studied",
    "changed",
    "finished",
    "started",
];
/// What was done.
const WENT: [&str; 24] = [
    "walked", "waited", "stood", "sat", "slept", "worked", "talked", "laughed", "sang", "stayed",
    "lived", "arrived", "returned", "ran", "played", "rested", "traveled", "moved", "fell",
    "danced", "smiled", "listened", "stopped", "looked",
];
/// How one thing is to another.
const PLACED: [&str; 18] = [
    "near", "behind", "under", "above", "beside", "beyond", "across", "inside", "outside", "from",
    "with", "without", "toward", "past", "through", "around", "against", "between",
];
/// How it was done.
const HOW: [&str; 19] = [
    "slowly",
    "quickly",
    "quietly",
    "carefully",
    "often",
    "never",
    "always",
    "again",
    "together",
    "alone",
    "early",
    "late",
    "today",
    "there",
    "here",
    "well",
    "soon",
    "twice",
    "gently",
];
/// Beginnings of a sentence.
const FIRST: [&str; 12] = [
    "Later",
    "Soon",
    "Today",
    "Then",
    "Sometimes",
    "Still",
    "Often",
    "Once",
    "Now",
    "Meanwhile",
    "Finally",
    "Perhaps",
];
/// Which one.
const WHICH: [&str; 10] = [
    "the", "this", "that", "every", "one", "her", "his", "their", "our", "my",
];
/// Which one, at the beginning.
const WHICH_FIRST: [&str; 10] = [
    "The", "This", "That", "Every", "One", "Her", "His", "Their", "Our", "My",
];
/// First names.
pub(super) const NAMES: [&str; 16] = [
    "Anna", "Tom", "Maria", "Peter", "Paul", "David", "Sarah", "James", "Mark", "Laura", "Simon",
    "Alice", "Henry", "Martin", "Robert", "Jane",
];
/// Who, at the beginning.
const WHO_FIRST: [&str; 6] = ["She", "He", "They", "We", "I", "You"];
/// Who.
const WHO: [&str; 6] = ["she", "he", "they", "we", "you", "it"];
/// What joins two sentences.
const LINKS: [&str; 9] = [
    "and", "but", "while", "because", "so", "before", "after", "until", "when",
];

/// Sentences of a paragraph.
const SENTENCES: (u32, u32) = (3, 7);

/// A paragraph, and the break after it.
pub(super) fn paragraph(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    let sentences = draws.within(SENTENCES.0, SENTENCES.1);
    for number in 1..=sentences {
        sentence(draws, out);
        out.push_back(Unit::mark(if number == sentences { ".\n\n" } else { "." }));
    }
}

/// A sentence, without its end.
pub(super) fn sentence(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    match draws.below(8) {
        0 => {
            word(out, draws.pick(&FIRST));
            out.push_back(Unit::mark(","));
            someone(draws, out);
        }
        1 => word(out, draws.pick(&WHO_FIRST)),
        2 => word(out, draws.pick(&NAMES)),
        3 => {
            word(out, "The");
            word(out, draws.pick(&ADJECTIVES));
            word(out, draws.pick(&PLURALS));
        }
        _ => {
            word(out, draws.pick(&WHICH_FIRST));
            thing(draws, out);
        }
    }
    deed(draws, out);
    if draws.one_in(3) {
        out.push_back(Unit::mark(","));
        word(out, draws.pick(&LINKS));
        someone(draws, out);
        deed(draws, out);
    }
}

/// Who did it, inside of a sentence.
fn someone(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    match draws.below(4) {
        0 => word(out, draws.pick(&WHO)),
        1 => word(out, draws.pick(&NAMES)),
        _ => something(draws, out),
    }
}

/// What was done.
fn deed(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    if draws.one_in(3) {
        word(out, draws.pick(&WENT));
        if draws.one_in(2) {
            word(out, draws.pick(&HOW));
        }
    } else {
        word(out, draws.pick(&DID));
        something(draws, out);
    }
    if draws.one_in(2) {
        word(out, draws.pick(&PLACED));
        something(draws, out);
    }
}

/// One thing, or several.
pub(super) fn something(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    if draws.one_in(5) {
        word(out, "the");
        word(out, draws.pick(&PLURALS));
        return;
    }
    word(
        out,
        if draws.one_in(3) {
            "a"
        } else {
            draws.pick(&WHICH)
        },
    );
    thing(draws, out);
}

/// A noun, often with what it is like.
fn thing(draws: &mut Draws, out: &mut VecDeque<Unit>) {
    if draws.one_in(2) {
        word(out, draws.pick(&ADJECTIVES));
    }
    word(out, draws.pick(&NOUNS));
}

fn word(out: &mut VecDeque<Unit>, text: &'static str) {
    out.push_back(Unit::word(text));
}

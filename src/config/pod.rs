//! Where a pod's own description of itself lies, and what of it names an image.

use std::path::PathBuf;

/// The volume of the downward API in which a target's pod is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodInfoConfig {
    /// Its directory.
    pub dir: PathBuf,
    /// Keys of labels and annotations that name the image. One without a `/` stands for any key
    /// whose part behind the `/` it is.
    pub image_keys: Vec<String>,
}

impl PodInfoConfig {
    /// The keys of a configuration that names none.
    pub const IMAGE_KEYS: [&'static str; 4] = [
        "image",
        "image-tag",
        "image-digest",
        "app.kubernetes.io/version",
    ];

    /// The volume at `dir`, with the usual keys.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            image_keys: Self::IMAGE_KEYS.map(str::to_owned).into(),
        }
    }

    /// Whether the label or annotation `key` names the image.
    #[must_use]
    pub fn names_image(&self, key: &str) -> bool {
        let last = key.rsplit_once('/').map_or(key, |(_, last)| last);
        let mut keys = self.image_keys.iter();
        keys.any(|wanted| wanted == key || (wanted == last && !wanted.contains('/')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_a_prefix_stands_for_all_prefixes() {
        let usual = PodInfoConfig::at("/etc/podinfo");
        for (key, expected) in [
            ("image", true),
            ("ci.example/image", true),
            ("ci.example/image-digest", true),
            ("app.kubernetes.io/version", true),
            ("version", false),
            ("other.example/version", false),
            ("image.example/name", false),
            ("ci.example/base-image", false),
            ("Image", false),
        ] {
            assert_eq!(usual.names_image(key), expected, "{key}");
        }
    }
}

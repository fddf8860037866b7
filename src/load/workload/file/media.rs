//! The texts, pictures, sounds and videos of one turn, as `AIPerf` writes them.
//!
//! Each may stand alone, in a list, or in a list of named lists. What is shown must be a URL,
//! which may hold it; the name of a local file is refused, since no file is opened here.

use std::sync::Arc;

use serde_json::Value;

use super::super::Media;

/// The text of the turn, and what it shows.
pub(super) fn shown(json: &str) -> Result<(String, Vec<Media>), String> {
    let given: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut texts = Vec::new();
    for key in ["text", "texts"] {
        collect(given.get(key), &mut texts);
    }
    let mut media = Vec::new();
    for (keys, read) in [
        (["image", "images"], image as fn(&str) -> Option<Media>),
        (["audio", "audios"], audio),
        (["video", "videos"], video),
    ] {
        for key in keys {
            let mut values = Vec::new();
            collect(given.get(key), &mut values);
            for value in values {
                media.push(read(&value).ok_or_else(|| wrong(key, &value))?);
            }
        }
    }
    if texts.is_empty() && media.is_empty() {
        return Err("text: `(nothing)`\n  wanted: a text, or something to show".to_owned());
    }
    Ok((texts.join("\n"), media))
}

/// Every text in `value`: alone, in a list, or in the `contents` of an object of a list.
fn collect(value: Option<&Value>, into: &mut Vec<String>) {
    match value {
        Some(Value::String(text)) => into.push(text.clone()),
        Some(Value::Array(items)) => items.iter().for_each(|item| collect(Some(item), into)),
        Some(Value::Object(object)) => collect(object.get("contents"), into),
        _ => {}
    }
}

fn wrong(key: &str, value: &str) -> String {
    let beginning: String = value.chars().take(60).collect();
    let wanted = if key.starts_with("audio") {
        "`wav,` or `mp3,` and base64, or a `data:` URL of one of these"
    } else {
        "an `http`, `https` or `data:` URL"
    };
    format!("{key}: `{beginning}`\n  wanted: {wanted}")
}

fn url(text: &str) -> Option<Arc<str>> {
    let is_url = ["http://", "https://", "data:"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    is_url.then(|| Arc::from(text))
}

fn image(text: &str) -> Option<Media> {
    url(text).map(Media::Image)
}

fn video(text: &str) -> Option<Media> {
    url(text).map(Media::Video)
}

fn audio(text: &str) -> Option<Media> {
    let (format, data) = match text.strip_prefix("data:audio/") {
        Some(rest) => rest.split_once(";base64,")?,
        None => text.split_once(',')?,
    };
    let format = match format {
        "wav" | "x-wav" => "wav",
        "mp3" | "mpeg" => "mp3",
        _ => return None,
    };
    Some(Media::Audio {
        format,
        data: Arc::from(data),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_understood() {
        let (text, media) = shown(
            r#"{"texts":[{"name":"q","contents":["a","b"]}],"image":"data:image/png;base64,AA==",
                "audios":["wav,BBBB","data:audio/mpeg;base64,CC=="],"videos":["https://x/v.mp4"]}"#,
        )
        .expect("good");
        assert_eq!(text, "a\nb");
        assert_eq!(
            media,
            [
                Media::Image("data:image/png;base64,AA==".into()),
                Media::Audio {
                    format: "wav",
                    data: "BBBB".into()
                },
                Media::Audio {
                    format: "mp3",
                    data: "CC==".into()
                },
                Media::Video("https://x/v.mp4".into()),
            ]
        );
    }

    #[test]
    fn a_local_file_is_refused() {
        assert_eq!(
            shown(r#"{"image":"cat.png"}"#).expect_err("no URL"),
            "image: `cat.png`\n  wanted: an `http`, `https` or `data:` URL"
        );
        shown(r#"{"audio":"cat.ogg"}"#).expect_err("no sound that is known");
        shown("{}").expect_err("nothing to send");
    }
}

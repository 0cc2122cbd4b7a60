//! Suggestions for options and commands that do not exist, if they are near to what was typed.
//!
//! clap suggests names that share letters in any place, such as `samples` for `completions`.

use clap::error::{ContextKind, ContextValue};

/// Leaves suggestions out that are not near to what was typed.
pub(crate) fn without_misleading(mut error: clap::Error) -> clap::Error {
    for (typed, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ] {
        let typed = match error.get(typed) {
            Some(ContextValue::String(typed)) => typed.clone(),
            _ => continue,
        };
        let near: Vec<String> = match error.get(suggested) {
            Some(ContextValue::String(name)) => vec![name.clone()],
            Some(ContextValue::Strings(names)) => names.clone(),
            _ => continue,
        };
        let near: Vec<String> = near.into_iter().filter(|name| is_near(&typed, name)).collect();
        if near.is_empty() {
            error.remove(suggested);
            // The line shows the option that was suggested.
            error.remove(ContextKind::Usage);
        } else if let Some(ContextValue::Strings(_)) = error.get(suggested) {
            error.insert(suggested, ContextValue::Strings(near));
        }
    }
    error
}

/// Whether one is a slip of the other, or its beginning.
fn is_near(typed: &str, name: &str) -> bool {
    let plain = |text: &str| -> String {
        let text = text.trim_start_matches('-');
        text.split(['=', ' ']).next().unwrap_or_default().to_lowercase()
    };
    let (typed, name) = (plain(typed), plain(name));
    let slips = (typed.chars().count().max(name.chars().count()) / 3).max(1);
    let begins = typed.chars().count() >= 3 && name.starts_with(&typed);
    begins || strsim::osa_distance(&typed, &name) <= slips
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        for (typed, name) in [
            ("--lable", "--label"),
            ("trian", "train"),
            ("--val", "--valid"),
            ("--epoch", "--epochs"),
        ] {
            assert!(is_near(typed, name), "{typed} {name}");
        }
        for (typed, name) in [
            ("completion", "samples"),
            ("export", "experiment"),
            ("--lr", "--tolerance"),
            ("fit", "infer"),
        ] {
            assert!(!is_near(typed, name), "{typed} {name}");
        }
    }
}
